"""`mast-trace demo`."""

from __future__ import annotations

import asyncio
import functools
import logging
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TaskID, TextColumn
from rich.text import Text

from mast_trace.taxonomy import mode_words
from mast_trace_collector.plugins import answers
from mast_trace_dashboards.cli.commands.show import as_dict
from mast_trace_dashboards.cli.options import AsJson
from mast_trace_dashboards.cli.output import FittedTable, console, print_json, shown_progress, warn
from mast_trace_dashboards.cli.render import RunView, load, outcome, place, run_view
from mast_trace_dashboards.cli.until_stopped import stop_signal
from mast_trace_dashboards.local import demo as script
from mast_trace_dashboards.plugins import Plugin
from mast_trace_dashboards.printable import ID_SHOWN

if TYPE_CHECKING:
    from rich.console import Console

    from mast_trace_dashboards.local.all_in_one import AllInOne
    from mast_trace_dashboards.local.announcement import RunningInstance

_STOP_SECONDS = 40.0


def demo(
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep serving afterwards, until Ctrl-C.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Run real agents that fail in known ways, and show the findings. Needs no network and no key.

    LangGraph and AG2 programs run against a scripted model; everything else is real.

    Example: `mast-trace demo --keep`
    """
    script.check_packages()
    script.check_room()
    script.examples()
    with ExitStack() as stack:
        if keep:
            folder = Path(tempfile.mkdtemp(prefix="mast-trace-demo-"))
        else:
            temporary = tempfile.TemporaryDirectory(
                prefix="mast-trace-demo-", ignore_cleanup_errors=True
            )
            folder = Path(stack.enter_context(temporary))
        asyncio.run(_demo(folder, keep=keep, as_json=as_json))


async def _demo(folder: Path, *, keep: bool, as_json: bool) -> None:
    logging.getLogger().setLevel(logging.WARNING)
    up = script.demo_up(folder)
    try:
        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn())
        with shown_progress(*columns, MofNCompleteColumn()) as progress:
            running, finished = await _play(up, progress)
        shown = load(up.store, script.featured(finished).row["TraceId"])
        if as_json:
            everything = [load(up.store, one.row["TraceId"]) for one in finished]
            print_json(
                [
                    {"program": one.act.program, "scenario": one.act.scenario, **as_dict(each)}
                    for one, each in zip(finished, everything, strict=True)
                ]
            )
        else:
            report(console(), finished, shown)
            console().print(_next(running, shown, keep=keep), soft_wrap=True)
        if keep or (not as_json and await asyncio.to_thread(_wishes_more, running)):
            await up.wait(stop_signal(_STOP_SECONDS))
    finally:
        await up.stop()


async def _play(
    up: AllInOne, progress: Progress
) -> tuple[RunningInstance, list[script.FinishedAct]]:
    acts = script.ACTS
    starting = progress.add_task("Starting receivers, database and judge", total=1)
    running = await up.start()
    progress.update(starting, completed=1)
    _tell(progress, "Receivers, database and judge have started.")
    playing = progress.add_task("Running agents", total=len(acts))
    ended = count(1)

    def has_run(act: script.Act) -> None:
        progress.advance(playing)
        _tell(progress, f"{act} has run ({next(ended)} of {len(acts)}).")

    await script.play(running, acts, has_run)
    judging = progress.add_task("Judging", total=len(acts))
    finished = await script.verdicts(
        up, acts, lambda judged: progress.update(judging, completed=judged)
    )
    _tell(progress, f"All {len(acts)} runs are judged.")
    featured = script.featured(finished)
    for _, act in answers(Plugin, lambda each: each.last_act()):
        if act is not None:
            playing = progress.add_task(act.title, total=act.total)
            await asyncio.to_thread(
                act.play,
                up.store,
                featured.row,
                featured.act.program,
                featured.act.scenario,
                functools.partial(_advance, progress, playing),
            )
            _tell(progress, act.done.format(featured.act))
    # A replay adds its conclusion to what the list says.
    return running, await script.verdicts(up, acts)


def _advance(progress: Progress, task: TaskID, done: int) -> None:
    progress.update(task, completed=done)


def _tell(progress: Progress, done: str) -> None:
    """Print a step that is done, where no bars move: silence would last until the end."""
    if progress.disable:
        warn(done)


def report(out: Console, finished: Sequence[script.FinishedAct], shown: RunView) -> None:
    """Print the demo's result: all runs as a table, and one of them in full."""
    table = FittedTable()
    for name in ("RUN", "FRAMEWORK", "THE TEAM ...", "OUTCOME", "MODES", "LOOK FIRST AT"):
        table.add_column(name, no_wrap=name not in {"THE TEAM ...", "MODES", "LOOK FIRST AT"})
    for one in finished:
        table.add_row(
            one.row["TraceId"][:ID_SHOWN],
            one.row["Framework"],
            one.act.story,
            outcome(one.row),
            Text("\n".join(map(mode_words, one.row["Modes"])) or "-"),
            place(one.row),
        )
    out.print(table)
    out.print()
    for part in run_view(shown):
        out.print(part)


def _wishes_more(running: RunningInstance) -> bool:
    """Ask whether to keep serving, where a person can answer."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return False
    return typer.confirm(f"\nKeep serving {running.web} until Ctrl-C?", default=True)


def _next(running: RunningInstance, shown: RunView, *, keep: bool) -> Text:
    trace_id = shown.row["TraceId"]
    run = trace_id[:ID_SHOWN]
    if keep:
        lines = [
            f"Open this run in a browser: {running.web}/runs/{trace_id}",
            f"Still serving {running.data_dir}; Ctrl-C stops. In another terminal:",
            f"  mast-trace show {run} --full --data-dir {running.data_dir}",
            f"  mast-trace runs --data-dir {running.data_dir}",
            f"Its ClickHouse address, for Grafana and other tools: {running.clickhouse}",
        ]
    else:
        lines = [
            "Next:",
            "  mast-trace demo --keep   the same, and keeps serving so that you can look around",
            "  mast-trace up            record your own agents: add mast_trace.instrument() to them",
            f"The programs: {script.examples()}",
        ]
    return Text("\n" + "\n".join(lines))
