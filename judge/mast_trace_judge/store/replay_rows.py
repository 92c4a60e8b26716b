"""Conversion between results of replays and rows of ``mast_replays``."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

from mast_trace_judge.arms import Arm, ArmResult, Fix
from mast_trace_judge.store.verdict_rows import utc

if TYPE_CHECKING:
    from collections.abc import Mapping

_OUTCOMES: Final[Mapping[bool | None, str]] = {True: "success", False: "failure", None: ""}
_SUCCESSES: Final[Mapping[str, bool | None]] = {
    text: success for success, text in _OUTCOMES.items()
}


def row_of_result(result: ArmResult) -> dict[str, Any]:
    """Return the columns that hold a result."""
    fix = result.arm.fix
    return {
        "Arm": result.arm.operator,
        "Step": result.arm.step,
        "FixSource": fix.source if fix else "",
        "FixHash": fix_hash(fix) if fix else "",
        "FixText": fix.text if fix else "",
        "FixModel": fix.model if fix else "",
        "Hold": result.arm.hold,
        "Phase": result.phase,
        "Pair": result.pair,
        "Status": result.status,
        "Outcome": _OUTCOMES[result.success],
        "Reason": result.reason,
        "ServedCalls": result.served_calls,
        "ServedTools": result.served_tools,
        "LiveCalls": result.live_calls,
        "LiveTools": result.live_tools,
        "InputTokens": result.input_tokens,
        "OutputTokens": result.output_tokens,
        "CostUsd": result.cost_usd,
        "Models": list(result.models),
        "CallsHash": result.calls_hash,
        "Answer": result.answer,
        "StartedAt": utc(result.started_at),
        "Seconds": result.seconds,
    }


def arm_of(row: Mapping[str, Any]) -> Arm:
    """Return the arm of a row."""
    fix = Fix(row["FixSource"], row["FixText"], row["FixModel"]) if row["FixHash"] else None
    return Arm(row["Arm"], row["Step"], fix, bool(row["Hold"]))


def result_of(row: Mapping[str, Any]) -> ArmResult:
    """Return the result of a row."""
    return ArmResult(
        arm=arm_of(row),
        status=row["Status"],
        success=_SUCCESSES[row["Outcome"]],
        reason=row["Reason"],
        phase=row["Phase"],
        pair=row["Pair"],
        served_calls=row["ServedCalls"],
        served_tools=row["ServedTools"],
        live_calls=row["LiveCalls"],
        live_tools=row["LiveTools"],
        input_tokens=row["InputTokens"],
        output_tokens=row["OutputTokens"],
        cost_usd=row["CostUsd"],
        models=tuple(row["Models"]),
        calls_hash=row["CallsHash"],
        answer=row["Answer"],
        started_at=utc(row["StartedAt"]),
        seconds=row["Seconds"],
    )


def fix_hash(fix: Fix) -> str:
    """Return a short digest of a fix, equal for the same source, text and model."""
    text = f"{fix.source}\x00{fix.text}\x00{fix.model}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
