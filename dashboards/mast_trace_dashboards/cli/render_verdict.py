"""How a verdict looks in a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from mast_trace.taxonomy import FAILURE_MODES
from mast_trace_dashboards.cli.output import plain
from mast_trace_dashboards.printable import clip

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import RenderableType

    from mast_trace_judge.verdict import Verdict

_JUDGED_BY = {
    "local": "rules and local attribution",
    "llm": "a model",
    "fused": "rules, local attribution and a model",
}


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
    if verdict.status_reason:
        parts.append(plain(f"\nNote: {verdict.status_reason}.", "yellow"))
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
