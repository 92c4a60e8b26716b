"""A verdict in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mast_trace.taxonomy import FAILURE_MODES
from mast_trace_judge.verdict import Evidence

if TYPE_CHECKING:
    from mast_trace_judge.verdict import ModeFinding, Verdict

_EVIDENCE = {
    Evidence.EXACT: "recorded",
    Evidence.HEURISTIC: "read off the texts by a rule",
    Evidence.MODEL: "said by the model, with quotes found in the run",
}


def explain(verdict: Verdict) -> str:
    """Return what the judge found, why, and how sure it is, as plain text of a few lines."""
    lines = [_outcome(verdict), *_decisive(verdict)]
    if verdict.modes:
        lines.append("Failure modes:")
        lines.extend(line for mode in verdict.modes for line in _mode(mode))
    elif verdict.status == "ok":
        lines.append("No failure mode was found.")
    if verdict.status_reason and verdict.status == "ok":
        lines.append(f"Note: {verdict.status_reason}.")
    lines.append(_how(verdict))
    return "\n".join(lines)


def _outcome(verdict: Verdict) -> str:
    if verdict.status == "unscored":
        return f"Unscored: {verdict.status_reason}."
    if verdict.outcome == "unknown":
        return f"Nothing says whether the run succeeded ({verdict.failure_probability:.0%} failed)."
    if verdict.outcome == "success":
        return f"The run succeeded ({1 - verdict.failure_probability:.0%})."
    return f"The run failed ({verdict.failure_probability:.0%})."


def _decisive(verdict: Verdict) -> list[str]:
    found = verdict.decisive
    if found is None:
        if not verdict.candidates:
            return []
        places = ", ".join(
            f"step {c.step} of {c.agent} ({c.probability:.0%})" for c in verdict.candidates
        )
        return [f"No step is decisive with enough certainty. Look first at {places}."]
    lines = [
        f"Decisive error: step {found.step} of {found.agent} ({found.probability:.0%}).",
        *([f"  Why: {found.reason}"] if found.reason else []),
        *([f"  Smallest fix: {found.minimal_fix}"] if found.minimal_fix else []),
    ]
    others = [c for c in verdict.candidates if c.step != found.step]
    if others:
        places = ", ".join(f"step {c.step} of {c.agent} ({c.probability:.0%})" for c in others)
        lines.append(f"  Otherwise: {places}.")
    return lines


def _mode(mode: ModeFinding) -> list[str]:
    known = FAILURE_MODES.get(mode.code)
    name = f"{mode.code} {known.name}" if known else mode.code
    steps = ", ".join(map(str, mode.steps))
    where = f"{'step' if len(mode.steps) == 1 else 'steps'} {steps}"
    how = f"{mode.probability:.0%}, {_EVIDENCE[mode.evidence]}"
    quotes = [f'    "{" ".join(quote.split())}"' for quote in mode.quotes[:3]]
    return [f"  {name} ({how}), {where}: {mode.reason}", *quotes]


def _how(verdict: Verdict) -> str:
    if verdict.method == "local":
        by = "rules and local attribution"
    else:
        by = f"{verdict.model}, rules and local attribution"
    cost = f", {verdict.calls} calls, {verdict.cost_usd:.4f} USD" if verdict.calls else ""
    return f"Judged by {by} (version {verdict.judge_version}{cost})."
