"""How runs and verdicts look in a terminal. Nothing is told by colour alone."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from rich.console import Group
from rich.table import Table
from rich.text import Text

from mast_trace.taxonomy import FAILURE_MODES
from mast_trace.trajectory import StepKind
from mast_trace.vocabulary import loaded
from mast_trace_dashboards.cli.output import clip, plain
from mast_trace_dashboards.durations import in_words
from mast_trace_dashboards.totals import tokens_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rich.console import RenderableType

    from mast_trace.trajectory import Step, Trajectory
    from mast_trace_judge.verdict import Verdict

ID_SHOWN: Final = 8
"""Characters of a run's id in lists: enough to name it to `show`."""
_OUTCOME_STYLES = {"success": "green", "failure": "red"}
_JUDGED_BY = {
    "local": "rules and local attribution",
    "llm": "a model",
    "fused": "rules, local attribution and a model",
}
_ORDINALS = ("", "2nd", "3rd")


def runs_table(rows: Iterable[Mapping[str, Any]]) -> Table:
    """A list of runs, as the query `runs` returns them."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("RUN", "STARTED", "NAME", "FRAMEWORK", "OUTCOME", "MODES", "DECISIVE ERROR"):
        table.add_column(name, no_wrap=name != "MODES", overflow="ellipsis")
    table.add_column("TOOK", justify="right", no_wrap=True)
    for row in rows:
        table.add_row(
            str(row["TraceId"])[:ID_SHOWN],
            row["Start"].astimezone().strftime("%m-%d %H:%M:%S"),
            plain(clip(row["Name"], 32)),
            plain(row["Framework"]),
            outcome(row),
            Text(" ".join(row["Modes"])),
            decisive(row),
            in_words(row["DurationMs"]),
        )
    return table


def outcome(row: Mapping[str, Any]) -> Text:
    """How the run ended, and whether the program or the judge says so."""
    said = row["Outcome"]
    if not said or said == "unknown":
        return Text(row["State"], style="dim")
    return Text(
        f"{said}?" if row["OutcomeSource"] == "judged" else said,
        style=_OUTCOME_STYLES.get(said, ""),
    )


def decisive(row: Mapping[str, Any]) -> Text:
    """Who made the decisive error, where, and how sure the judge is."""
    if row["DecisiveStep"] is None:
        return Text("-", style="dim")
    return Text.assemble(
        plain(clip(row["DecisiveAgent"], 24), "bold"),
        f", step {row['DecisiveStep']} ({row['DecisiveProbability']:.0%})",
    )


def run_view(
    row: Mapping[str, Any], trajectory: Trajectory, verdict: Verdict | None, *, full: bool = False
) -> Group:
    """A whole run: what it was, its steps, and what the judge found."""
    parts: list[RenderableType] = [
        _title(row, trajectory),
        "",
        steps_table(trajectory, verdict, full=full),
        "",
    ]
    parts += verdict_view(row, verdict)
    return Group(*parts)


def steps_table(
    trajectory: Trajectory, verdict: Verdict | None, *, full: bool = False, header: bool = True
) -> Table:
    """The steps, each with what was found in it."""
    table = Table(box=None, pad_edge=False, header_style="bold", show_header=header)
    table.add_column("STEP", justify="right", no_wrap=True)
    for name in ("FOUND", "AGENT", "KIND"):
        table.add_column(name, no_wrap=True)
    # Wrappable for the table, so that this column gives way to the others; its cells do not wrap.
    table.add_column("TEXT", overflow="fold" if full else "ellipsis")
    for step in trajectory.steps:
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


def _title(row: Mapping[str, Any], trajectory: Trajectory) -> Text:
    facts = [
        row["Framework"],
        f"{len(trajectory.steps)} steps",
        f"{sum(agent != 'user' for agent in trajectory.agents)} agents",
        in_words(row["DurationMs"]),
        f"{tokens_of(row)} tokens",
    ]
    title = Text.assemble(plain(row["Name"] or "run", "bold"), " ", (row["TraceId"], "dim"), "\n")
    title.append_text(outcome(row))
    if row["OutcomeReason"]:
        title.append_text(plain(f": {clip(row['OutcomeReason'], 300)}"))
    title.append("\n" + ", ".join(fact for fact in facts if fact), style="dim")
    if trajectory.task:
        title.append_text(Text.assemble("\nTask: ", plain(clip(trajectory.task, 600))))
    return title


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


def verdict_view(row: Mapping[str, Any], verdict: Verdict | None) -> list[RenderableType]:
    """What the judge found in a run."""
    if verdict is None:
        return [Text("Not judged yet.", style="dim")]
    if verdict.status == "unscored":
        return [plain(f"The judge reached no verdict: {verdict.status_reason}", "yellow")]
    parts: list[RenderableType] = [_decisive_error(verdict)]
    if verdict.modes:
        parts += ["", _modes(verdict)]
    else:
        parts.append(Text("No failure mode found."))
    by = _JUDGED_BY[verdict.method] + (f" ({verdict.model})" if verdict.model else "")
    if row["State"] == "changed":
        by += "; the run has changed since, and will be judged again"
    return [*parts, plain(f"\nJudged by {by}.", "dim")]


def _decisive_error(verdict: Verdict) -> Text:
    text = Text()
    error = verdict.decisive
    if error is not None:
        text.append("Decisive error: ", style="bold red")
        text.append_text(plain(f"{error.agent}, step {error.step}", "bold"))
        text.append(f" ({error.probability:.0%})")
        said = error.reason or error.rule
        text.append_text(plain(f"\n  {said}") if said else Text())
        text.append_text(plain(f"\n  Fix: {error.minimal_fix}") if error.minimal_fix else Text())
    elif verdict.outcome == "success":
        text.append("No decisive error: the run succeeded.")
    elif verdict.abstained and verdict.candidates:
        text.append("No step stands out as the decisive error; the likeliest are:")
    else:
        text.append("No decisive error named.")
    for candidate in verdict.candidates[0 if error is None else 1 :]:
        why = f": {candidate.rule}" if candidate.rule else ""
        text.append_text(
            plain(
                f"\n  {'Or' if error else '-'} {candidate.agent}, step {candidate.step} "
                f"({candidate.probability:.0%}){why}",
                "dim",
            )
        )
    return text


def _modes(verdict: Verdict) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("MODE", "NAME", "P", "EVIDENCE", "STEPS"):
        table.add_column(name, no_wrap=True)
    table.add_column("WHY", overflow="fold")
    for mode in verdict.modes:
        why = plain(mode.reason)
        for quoted in mode.quotes[:3]:
            why.append_text(plain(f"\n“{clip(quoted, 160)}”", "italic"))
        known = FAILURE_MODES.get(mode.code)
        table.add_row(
            mode.code,
            known.name if known else "",
            f"{mode.probability:.0%}",
            mode.evidence.value,
            ", ".join(map(str, mode.steps[:6])) + (" …" if len(mode.steps) > 6 else ""),
            why,
        )
    return table
