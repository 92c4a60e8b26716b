"""`mast-trace show`: one run, step by step, with its verdict."""

from __future__ import annotations

import dataclasses
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import urlencode

import typer
from rich.text import Text

from mast_trace.exceptions import ConfigurationError
from mast_trace.trajectory import Step
from mast_trace_collector.config import CollectorConfig
from mast_trace_dashboards.cli.open_store import open_store
from mast_trace_dashboards.cli.options import (
    AsJson,
    ConfigFile,
    DataDir,
    Every,
    Project,
    RunName,
    Url,
)
from mast_trace_dashboards.cli.output import (
    FittedTable,
    console,
    plain,
    print_json,
    print_json_line,
    say,
)
from mast_trace_dashboards.cli.render import RunView, load, run_view, steps_view, verdict_view
from mast_trace_dashboards.local import announcement
from mast_trace_dashboards.printable import clip, counted, json_text
from mast_trace_dashboards.queries.sql import NO_END
from mast_trace_dashboards.run_names import resolve_run
from mast_trace_dashboards.run_outcome import in_words, outcome_words
from mast_trace_dashboards.step_input import SeenInput, SeenMessage, seen_at, why_unknown
from mast_trace_dashboards.web.finding.seen_view import TreeRow, tree_of

_CLIP: Final = 400
"""Characters of a message that are shown; `--full` shows all."""
_SIGNS: Final = {"kept": " ", "new": "+", "gone": "-"}
_STYLES: Final = {"kept": "", "new": "green", "gone": "red"}

_DONE = frozenset({"judged", "unscored", NO_END})
_RANGE = re.compile(r"(\d+)(?:-(\d+))?")
_AT_ONCE = 500
_FIELDS = tuple(field.name for field in dataclasses.fields(Step))


def input_view(seen: SeenInput | None, reason: str, *, full: bool = False) -> Iterator[Text]:
    """Yield the input of a step.

    Args:
        seen: the input; None if the run records none.
        reason: a sentence on why there is none.
        full: show every message, and its text in full.
    """
    yield Text("")
    if seen is None:
        yield plain(reason, "dim")
        return
    yield _head(seen)
    yield Text("")
    for kept, group in groupby(seen.messages, key=lambda each: each.state == "kept"):
        messages = list(group)
        if kept and not full and len(messages) > 1:
            yield plain(f"  ({len(messages):,} messages as before; --full shows them)", "dim")
        else:
            for each in messages:
                yield _message(each, seen, full=full)


def _head(seen: SeenInput) -> Text:
    count = len(seen.shown)
    words = f"{counted(count, 'message')} to {seen.agent or 'an unknown agent'}"
    if seen.model:
        words += f", model {seen.model}"
    if seen.parameters:
        words += f" ({', '.join(seen.parameters)})"
    if seen.missing:
        words += f"; the text of {seen.missing:,} was not recorded"
    head = plain(f"{words}. ", "bold")
    if seen.first:
        return head.append_text(plain("It is the first input of this agent in the run."))
    of = "" if seen.previous_step is None else f" (of step {seen.previous_step})"
    new, gone, kept = (seen.count(state) for state in ("new", "gone", "kept"))
    return head.append_text(
        plain(
            f"Against its previous input{of}: {new:,} new, {gone:,} no longer shown, {kept:,} as before."
        )
    )


def _message(each: SeenMessage, seen: SeenInput, *, full: bool) -> Text:
    sign = " " if seen.first else _SIGNS[each.state]
    style = "" if seen.first else _STYLES[each.state]
    said = each.message
    name = f" {said.name}" if said and said.name else ""
    place = f" (step {each.step})" if each.step is not None else ""
    text = plain(f"{sign} {each.role or 'message'}{name}{place}: ", f"bold {style}".strip())
    if said is None:
        return text.append_text(plain("its text was not recorded", "dim"))
    calls = [f"{call.name}({call.text})" for call in said.tool_calls]
    content = "\n".join([said.content, *calls] if said.content else calls)
    return text.append_text(plain(content if full else clip(content, _CLIP), style))


def show(
    run: RunName,
    full: Annotated[bool, typer.Option("--full", help="Print texts in full.")] = False,
    steps: Annotated[
        str,
        typer.Option(
            help="Steps to show: 200-699, 42, or `all`. Without it, of a run of more than 500 steps the "
            "first and the last ones, and those that the verdict names.",
            show_default=False,
        ),
    ] = "",
    step: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Show this step with its input: the messages that the agent's model was shown, and which of "
            "them are new since its previous input.",
            show_default=False,
        ),
    ] = None,
    tree: Annotated[
        bool, typer.Option("--tree", help="Show its spans as a tree, with their durations.")
    ] = False,
    opens: Annotated[
        bool, typer.Option("--open", help="Open its page of the running `mast-trace up`.")
    ] = False,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Follow the run until its verdict is there.")
    ] = False,
    every: Every = 1.0,
    project: Project = None,
    url: Url = None,
    data_dir: DataDir = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Show a run: its steps, the decisive error, and the failure modes with their evidence.

    With `--watch`, steps are printed as they arrive, then the verdict; as JSON, a line for each.
    As JSON all steps are printed, unless `--steps` names some.

    With `--step`, the input of one step is rebuilt: `+` stands before messages that the agent's previous
    input did not have, `-` before those that only the previous input had. `--full` prints all of them whole.

    Example: `mast-trace show last --full`

    Example: `mast-trace show last --step 4`

    Example: `mast-trace show last --open`
    """
    if sum((step is not None, tree, opens, bool(steps or watch))) > 1:
        raise ConfigurationError("--step, --tree and --open stand alone: leave out the others")
    idle = CollectorConfig.load(config).run_idle_seconds
    with open_store(url, data_dir, config) as store:
        trace_id = resolve_run(store, run, project)

        def look() -> RunView:
            return load(store, trace_id, project, idle=idle)

        if watch:
            follow(look, every, full=full, as_json=as_json)
            return
        if opens:
            _open_page(trace_id, project, data_dir, config)
            return
        shown = look()
        if tree:
            _show_tree(tree_of(store, shown.stored), as_json=as_json)
            return
        if step is not None:
            _show_input(shown, step, full=full, as_json=as_json)
            return
        chosen = _numbers(steps, shown) if steps else None
        if as_json:
            print_pieces(json_pieces(shown, chosen))
            return
        for part in run_view(shown, numbers=chosen, full=full):
            console().print(part)


def _open_page(
    trace_id: str, project: str | None, data_dir: Path | None, config: Path | None
) -> None:
    """Open the page of a run in a browser, and print its address.

    Raises:
        ConfigurationError: no web view of this folder runs.
    """
    folder = CollectorConfig.load(config, data_dir=data_dir).data_dir
    running = announcement.find(folder)
    if running is None or not running.web:
        raise ConfigurationError(f"no `mast-trace up` with a web view serves {folder}: start one")
    chosen = f"?{urlencode({'project': project})}" if project else ""
    address = f"{running.web}/runs/{trace_id}{chosen}"
    say(address)
    typer.launch(address)


def _show_tree(rows: Sequence[TreeRow], *, as_json: bool) -> None:
    """Print spans, each below the one in which it ran."""
    if as_json:
        print_json([{**row.span, "Depth": row.depth, "Step": row.step} for row in rows])
        return
    table = FittedTable()
    table.add_column("SPAN")
    for name in ("STEP", "AT", "TOOK"):
        table.add_column(name, justify="right", no_wrap=True)
    begin = min((row.span["StartNs"] for row in rows), default=0)
    for row in rows:
        span = row.span
        what = span["ToolName"] if span["ToolName"] != row.named else ""
        told = filter(None, [span["Operation"] or "span", row.named, what])
        words = "  " * row.depth + " ".join(told)
        table.add_row(
            plain(words + (" failed" if span["Failed"] else ""), "red" if span["Failed"] else ""),
            "" if row.step is None else str(row.step),
            f"+{in_words((span['StartNs'] - begin) / 1e6)}",
            in_words(row.milliseconds),
        )
    console().print(table)


def _show_input(shown: RunView, number: int, *, full: bool, as_json: bool) -> None:
    """Print one step and its input.

    Raises:
        ConfigurationError: the run has no such step.
    """
    count = shown.stored.count
    if number >= count:
        has = f"its steps are 0 to {count - 1}" if count else "it has no steps"
        raise ConfigurationError(f"the run has no step {number}: {has}")
    run = shown.stored.read()
    seen = seen_at(run, number)
    if as_json:
        (step,) = shown.stored.steps([number])
        reason = None if seen else why_unknown(run, number)
        told = None if seen is None else dataclasses.asdict(seen)
        print_json({"step": step_as_dict(step), "input": told, "reason": reason})
        return
    for part in steps_view(shown, [number], shown.verdict, full=full):
        console().print(part)
    for part in input_view(seen, why_unknown(run, number), full=full):
        console().print(part)


def follow(
    look: Callable[[], RunView], every: float, *, full: bool = False, as_json: bool = False
) -> None:
    """Print a run's steps as they arrive, and its verdict at the end."""
    printed = 0
    while True:
        shown = look()
        count = shown.stored.count
        if as_json:
            for step in _steps(shown, range(printed, count)):
                print_json_line({"step": step_as_dict(step)})
        else:
            new = range(printed, count)
            for part in steps_view(shown, new, shown.verdict, full=full, header=not printed):
                console().print(part)
        printed = max(printed, count)
        if shown.row["State"] in _DONE and not outcome_words(shown.row).reading:
            break
        time.sleep(every)
    if as_json:
        print_json_line({"run": shown.row, "verdict": _verdict(shown)})
    else:
        console().print("", *verdict_view(shown), sep="\n")


def as_dict(shown: RunView) -> dict[str, Any]:
    """Return a short run for other programs: the query's row, the steps, and the verdict."""
    outline = shown.stored.outline
    return {
        "run": shown.row,
        "task": outline.run.task,
        "agents": outline.agents,
        "steps": [step_as_dict(step) for step in shown.stored.all_steps()],
        "verdict": _verdict(shown),
    }


def json_pieces(shown: RunView, numbers: Sequence[int] | None = None) -> Iterator[str]:
    """Yield the JSON text of `as_dict` for a run of any length, as `print_json` writes it.

    Args:
        shown: the run.
        numbers: of the steps; all if absent.
    """
    yield f'{{\n  "run": {_inner(shown.row)},\n'
    outline = shown.stored.outline
    yield f'  "task": {_inner(outline.run.task)},\n'
    yield f'  "agents": {_inner(outline.agents)},\n  "steps": ['
    separator = "\n    "
    for step in shown.stored.all_steps() if numbers is None else _steps(shown, numbers):
        yield separator + _inner(step_as_dict(step), 2)
        separator = ",\n    "
    yield f'{"" if separator[0] != "," else chr(10) + "  "}],\n  "verdict": '
    yield f"{_inner(_verdict(shown))}\n}}"


def print_pieces(pieces: Iterator[str]) -> None:
    """Print a text in parts, the first one at once."""
    sys.stdout.write(next(pieces))
    sys.stdout.flush()
    sys.stdout.writelines(pieces)
    sys.stdout.write("\n")


def _inner(value: Any, depth: int = 1) -> str:
    return json_text(value, indent=2).replace("\n", "\n" + "  " * depth)


def _steps(shown: RunView, numbers: Sequence[int]) -> Iterator[Step]:
    for begin in range(0, len(numbers), _AT_ONCE):
        yield from shown.stored.steps(numbers[begin : begin + _AT_ONCE])


def _numbers(text: str, shown: RunView) -> range:
    """Parse a selection of steps.

    Raises:
        ConfigurationError: it cannot be parsed, or the run has none of these steps.
    """
    count = shown.stored.count
    if text == "all":
        return range(count)
    match = _RANGE.fullmatch(text.strip())
    if match is None:
        raise ConfigurationError(f"--steps takes 200-699, 42 or all, not {text!r}")
    first = int(match[1])
    last = min(int(match[2] or first), count - 1)
    if first > last:
        raise ConfigurationError(f"the run has no steps {text}: its steps are 0 to {count - 1}")
    return range(first, last + 1)


def _verdict(shown: RunView) -> dict[str, Any] | None:
    return None if shown.verdict is None else shown.verdict.to_json()


def step_as_dict(step: Step) -> dict[str, Any]:
    """Return the fields of a step that are set, for other programs."""
    values = ((name, getattr(step, name)) for name in _FIELDS)
    return {name: value for name, value in values if value not in ("", (), None)}
