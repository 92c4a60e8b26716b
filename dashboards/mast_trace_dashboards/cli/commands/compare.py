"""`mast-trace compare`: two runs side by side, from the step at which they part."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.text import Text

from mast_trace_collector.config import CollectorConfig
from mast_trace_dashboards.cli.open_store import open_store
from mast_trace_dashboards.cli.options import AsJson, ConfigFile, DataDir, Project, RunName, Url
from mast_trace_dashboards.cli.output import FittedTable, console, plain, print_json
from mast_trace_dashboards.cli.render import load, outcome, place
from mast_trace_dashboards.found_run import nearest_good
from mast_trace_dashboards.printable import clip
from mast_trace_dashboards.run_names import NotFound, resolve_run
from mast_trace_dashboards.web.comparisons import LONGEST, StepPair, compared
from mast_trace_dashboards.web.run_view import PAGE

if TYPE_CHECKING:
    from mast_trace.trajectory import Step

_CLIP: Final = 300
_STYLES: Final = {"same": "", "removed": "bold red", "added": "bold green"}


def compare(
    run: RunName,
    other: Annotated[
        str, typer.Argument(help="Another run.", show_default="the nearest good run")
    ] = "",
    project: Project = None,
    url: Url = None,
    data_dir: DataDir = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Show where a run parts from another one, or from the good run nearest to it.

    The nearest good run is of the same program, succeeded, and has the task that is most alike. The first 500 steps of
    each are compared, without generated ids and times. Before them stands what no good run does, as far as the judge knows it.

    Example: `mast-trace compare last`
    """
    idle = CollectorConfig.load(config).run_idle_seconds
    with open_store(url, data_dir, config) as store:
        left = load(store, resolve_run(store, run, project), project, idle=idle)
        second = resolve_run(store, other, project) if other else nearest_good(store, left)
        project = project if other else left.row["Project"]
        if second is None:
            raise NotFound("no run of the same name is known to have succeeded: name another one")
        runs = left, load(store, second, project, idle=idle)
        steps = [
            each.stored.steps(range(min(each.stored.count, PAGE)), clip=LONGEST + 1)
            for each in runs
        ]
    found = compared(*steps)
    if as_json:
        differing = [asdict(pair) for pair in found.pairs if not pair.equal]
        print_json({"runs": [each.row for each in runs], "differences": differing})
        return
    out = console()
    for letter, each in zip("AB", runs, strict=True):
        named = plain(f"{letter}: {each.row['Name'] or 'run'} {each.row['TraceId']} ", "bold")
        out.print(Text.assemble(named, outcome(each.row), "  ", place(each.row)))
    for unlike in left.verdict.look_first if left.verdict else ():
        if unlike.basis == "contrast":
            out.print(
                plain(f"\nUnlike good runs, step {unlike.step}, {unlike.agent}: {unlike.why}")
            )
    if found.parting is None:
        longest = max(each.stored.count for each in runs)
        first = f"The first {PAGE:,} steps are" if longest > PAGE else "All steps are"
        out.print(f"\n{first} the same in both.")
        return
    table = FittedTable("STEP", "AGENT", "A", "B")
    for pair in found.pairs[max(found.parting.number - 2, 0) :]:
        step = pair.left or pair.right
        assert step is not None  # a pair has one of both
        shown = (_cell(pair, pair.left, "removed"), _cell(pair, pair.right, "added"))
        style = "dim" if pair.equal else ""
        table.add_row(str(step.index), plain(step.agent or "-"), *shown, style=style)
    out.print(
        f"\nThey part at step {found.parting.number}: {found.parting.difference or 'it is only in one of them'}.\n"
    )
    out.print(table)


def _cell(pair: StepPair, step: Step | None, kind: str) -> Text:
    """Return a step in one of the two columns; words and figures that the other one lacks stand out."""
    if step is None:
        return Text("no such step", style="dim")
    text = plain(f"{step.tool}({clip(step.arguments, _CLIP)}) " if step.tool else "")
    if not pair.changes:
        return text.append_text(plain(clip(step.error or step.text, _CLIP)))
    for change in pair.changes:
        if change.kind in ("same", kind):
            text.append_text(plain(change.text, _STYLES[change.kind]))
    return text
