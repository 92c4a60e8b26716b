"""How a run looks in a terminal: what it was, its steps, and what the judge found."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from mast_trace.trajectory import StepKind
from mast_trace.trajectory.vocabulary import loaded
from mast_trace_dashboards.cli.output import plain
from mast_trace_dashboards.cli.render import outcome
from mast_trace_dashboards.cli.render_verdict import verdict_view
from mast_trace_dashboards.durations import in_words
from mast_trace_dashboards.printable import clip
from mast_trace_dashboards.totals import tokens_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rich.console import RenderableType

    from mast_trace.trajectory import Step
    from mast_trace_dashboards.cli.run_view import RunView
    from mast_trace_judge.verdict import Verdict

_ORDINALS = ("", "2nd", "3rd")
_CLIP = 400
"""Characters of a text that are shown of it; `--full` shows all."""
_AT_ONCE = 500
"""Steps that are read and laid out together."""


def run_view(
    shown: RunView, *, numbers: Sequence[int] | None = None, full: bool = False, judged: bool = True
) -> Iterator[RenderableType]:
    """Yield a whole run: what it was, its steps, and what the judge found.

    Of a long run the verdict comes first: its steps take a while to count, and are not all shown.

    Args:
        shown: the run.
        numbers: of the steps; all of a short run, and of a long one an excerpt, if absent.
        full: show texts in full.
        judged: show the verdict.
    """
    verdict = shown.verdict if judged else None
    found = [*verdict_view(shown.row, verdict), ""] if judged else []
    yield _title(shown)
    yield ""
    if shown.is_long:
        yield from found
    chosen = shown.excerpt(verdict) if numbers is None else numbers
    yield from steps_view(shown, chosen, verdict, full=full)
    if len(chosen) < shown.stored.count:
        yield plain(
            f"\n{len(chosen):,} of {shown.stored.count:,} steps are shown; "
            "`--steps 200-699` shows others, `--steps all` all of them.",
            "dim",
        )
    if not shown.is_long and found:
        yield ""
        yield from found[:-1]


def steps_view(
    shown: RunView,
    numbers: Sequence[int],
    verdict: Verdict | None,
    *,
    full: bool = False,
    header: bool = True,
) -> Iterator[RenderableType]:
    """Yield the steps of these numbers as tables, and a line where some are left out between."""
    before = numbers[0] - 1 if len(numbers) else 0
    for begin in range(0, len(numbers), _AT_ONCE):
        some = numbers[begin : begin + _AT_ONCE]
        steps = shown.stored.steps(some, clip=None if full else 5 * _CLIP)
        yield _steps_table(steps, verdict, full=full, before=before, header=header and not begin)
        before = some[-1]


def _steps_table(
    steps: Iterable[Step], verdict: Verdict | None, *, full: bool, before: int, header: bool
) -> Table:
    """The steps, each with what was found in it.

    Args:
        steps: in order.
        verdict: on the run.
        full: show texts in full.
        before: the number of the step that was shown last.
        header: name the columns.
    """
    table = Table(box=None, pad_edge=False, header_style="bold", show_header=header)
    table.add_column("STEP", justify="right", no_wrap=True)
    for name in ("FOUND", "AGENT", "KIND"):
        table.add_column(name, no_wrap=True)
    # Wrappable for the table, so that this column gives way to the others; its cells do not wrap.
    table.add_column("TEXT", overflow="fold" if full else "ellipsis")
    for step in steps:
        if step.index > before + 1:
            left_out = f"(steps {before + 1} to {step.index - 1} are not shown)"
            table.add_row("…", "", "", "", Text(left_out, style="dim"))
        before = step.index
        found = _found(step.index, verdict)
        decides = "DECISIVE" in found
        table.add_row(
            str(step.index),
            found,
            plain(step.agent or "-"),
            _kind(step),
            _text(step, whole=full, wraps=full or decides),
            style="bold red" if decides else "yellow" if "." in found else "",
        )
    return table


def _title(shown: RunView) -> Text:
    row, count = shown.row, shown.steps_known
    facts = [
        row["Framework"],
        f"{row['Spans']:,} spans" if count is None else f"{count:,} steps",
        f"{shown.agents:,} agents",
        in_words(row["DurationMs"]),
        f"{tokens_of(row)} tokens",
    ]
    title = Text.assemble(plain(row["Name"] or "run", "bold"), " ", (row["TraceId"], "dim"), "\n")
    title.append_text(outcome(row))
    if row["OutcomeReason"]:
        title.append_text(plain(f": {clip(row['OutcomeReason'], 300)}"))
    title.append("\n" + ", ".join(fact for fact in facts if fact), style="dim")
    if shown.task:
        title.append_text(Text.assemble("\nTask: ", plain(clip(shown.task, 600))))
    return title


def _kind(step: Step) -> str:
    if step.handoff_to:
        return "hand-over"
    return step.kind.value + (" failed" if step.error else "")


def _text(step: Step, *, whole: bool, wraps: bool) -> Text:
    said = _said(step, everyone=whole)
    text = plain(said if whole else clip(said, 400), "red" if step.error else "")
    if not wraps:
        text.no_wrap, text.overflow = True, "ellipsis"
    return text


def _said(step: Step, *, everyone: bool) -> str:
    said = step.error or step.text
    if step.handoff_to:
        return f"to {step.handoff_to}"
    if step.kind is StepKind.TOOL:
        return f"{step.tool}({_arguments(step.arguments)}) \N{RIGHTWARDS ARROW} {said}"
    if step.recipients:
        many = len(step.recipients) > 2 and not everyone
        to = f"{len(step.recipients)} agents" if many else ", ".join(step.recipients)
        return f"to {to}: {said}"
    return said


def _arguments(text: str) -> str:
    """Write a call's arguments as in Python, if they are named."""
    values = loaded(text)
    if not isinstance(values, dict):
        return text
    return ", ".join(f"{name}={json.dumps(v, ensure_ascii=False)}" for name, v in values.items())


def _found(step: int, verdict: Verdict | None) -> str:
    if verdict is None:
        return ""
    found = []
    if verdict.decisive is not None and verdict.decisive.step == step:
        found.append("DECISIVE")
    else:
        places = [candidate.step for candidate in verdict.candidates]
        place = places.index(step) if step in places[1:] else 0
        found += [_ORDINALS[place]] if place else []
    found += [mode.code for mode in verdict.modes if step in mode.steps]
    return " ".join(found)
