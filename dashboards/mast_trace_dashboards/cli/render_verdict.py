"""Rendering of a verdict in a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from mast_trace.taxonomy import FAILURE_MODES
from mast_trace_dashboards.certainty import (
    NOBODY,
    WHY_NONE,
    candidate_sureness,
    likelihood,
    not_examined,
    not_measured,
    sureness,
)
from mast_trace_dashboards.cli.output import plain
from mast_trace_dashboards.cli.render_confirmation import confirmation_view
from mast_trace_dashboards.printable import clip

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import RenderableType

    from mast_trace_judge.study.model_calibration import ModelCalibration
    from mast_trace_judge.verdict import Verdict

_JUDGED_BY = {
    "local": "rules and local attribution",
    "llm": "a model",
    "fused": "rules, local attribution and a model",
}


def verdict_view(
    row: Mapping[str, Any], verdict: Verdict | None, calibration: ModelCalibration | None = None
) -> list[RenderableType]:
    """Return the judge's findings on a run."""
    if verdict is None:
        return [Text("Not judged yet.", style="dim")]
    parts: list[RenderableType] = []
    if verdict.status == "unscored":
        parts.append(plain(f"The judge reached no verdict: {verdict.status_reason}", "yellow"))
        if not verdict.modes:
            return [*parts, *confirmation_view(verdict.confirmation)]
        parts.append(Text("The rules found:"))
    else:
        parts.append(_decisive_error(verdict, calibration))
    if verdict.modes:
        parts += ["", _modes(verdict)]
    else:
        parts.append(Text("No failure mode found."))
    parts += confirmation_view(verdict.confirmation)
    if missing := not_examined(verdict):
        parts.append(Text(missing, style="dim"))
    by = _JUDGED_BY[verdict.method] + (f" ({verdict.model})" if verdict.model else "")
    if row["State"] == "changed":
        by += "; the run has changed since, and will be judged again"
    if verdict.status_reason and verdict.status == "ok":
        parts.append(plain(f"\nNote: {verdict.status_reason}.", "yellow"))
    return [*parts, plain(f"\nJudged by {by}.", "dim")]


def _decisive_error(verdict: Verdict, calibration: ModelCalibration | None) -> Text:
    text = Text()
    error = verdict.decisive
    if error is not None:
        text.append("Decisive error: ", style="bold red")
        text.append_text(plain(f"{error.agent or NOBODY}, step {error.step}", "bold"))
        text.append(f" ({sure})" if (sure := sureness(verdict, calibration)) else "")
        why_named = error.reason or error.rule
        text.append_text(plain(f"\n  {why_named}") if why_named else Text())
        text.append_text(plain(f"\n  Fix: {error.minimal_fix}") if error.minimal_fix else Text())
    elif verdict.outcome == "success":
        text.append("No decisive error: the run succeeded.")
    elif verdict.named_candidates:
        text.append("No step stands out as the decisive error.")
        text.append(f"\n  {WHY_NONE} The likeliest are:", style="dim")
    elif verdict.outcome == "unknown":
        text.append("No decisive error: nothing shows that the run failed.")
    else:
        text.append("No decisive error named.")
    named = [(n, each) for n, each in enumerate(verdict.named_candidates, 1)]
    others = [(n, each) for n, each in named if error is None or each.step != error.step]
    for number, candidate in others:
        told = candidate_sureness(verdict, number, calibration)
        sure = f" ({told})" if told else ""
        why = f": {candidate.rule}" if candidate.rule else ""
        line = (
            f"\n  candidate {number}: {candidate.agent or NOBODY}, step {candidate.step}{sure}{why}"
        )
        text.append_text(plain(line, "dim"))
    missing = not_measured(verdict, calibration)
    if missing and (others or (error is not None and verdict.model)):
        text.append_text(plain(f"\n  {missing}", "dim"))
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
            likelihood(mode),
            mode.evidence.value,
            ", ".join(map(str, mode.steps[:6])) + (" …" if len(mode.steps) > 6 else ""),
            why,
        )
    return table
