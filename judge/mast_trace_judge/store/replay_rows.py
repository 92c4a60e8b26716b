"""Conversion between results of replays and rows of ``mast_replays``."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from mast_trace_judge.arms import ArmResult, Fix, ReplayArm
from mast_trace_judge.store.verdict_rows import utc

if TYPE_CHECKING:
    from collections.abc import Mapping

JOINT: Final = "joint"
"""``FixSource`` of a fix of several steps."""

_OUTCOMES: Final[Mapping[bool | None, str]] = {True: "success", False: "failure", None: ""}
_SUCCESSES: Final[Mapping[str, bool | None]] = {
    text: success for success, text in _OUTCOMES.items()
}


def row_of_result(result: ArmResult) -> dict[str, Any]:
    """Return the columns that hold a result.

    A joint fix is a list in ``FixText``, which names its steps; see `arm_of`.
    """
    fix = result.arm.fix
    also = result.arm.also
    return {
        "Arm": result.arm.operator,
        "Step": result.arm.step,
        "FixSource": JOINT if also else fix.source if fix else "",
        "FixHash": _hash_of(result.arm),
        "FixText": _joint_text(result.arm) if also else fix.text if fix else "",
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


def arm_of(row: Mapping[str, Any]) -> ReplayArm:
    """Return the arm of a row."""
    hold = bool(row["Hold"])
    if row["FixSource"] == JOINT:
        (_, first), *others = [
            (
                each["step"],
                Fix(each["source"], each["text"], each["model"], each.get("result", False)),
            )
            for each in json.loads(row["FixText"])
        ]
        return ReplayArm(row["Arm"], row["Step"], first, hold, tuple(others))
    fix = None
    if row["FixHash"]:
        is_result = row["Arm"] == "result"
        fix = Fix(row["FixSource"], row["FixText"], row["FixModel"], is_result)
    return ReplayArm(row["Arm"], row["Step"], fix, hold)


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


def _joint_text(arm: ReplayArm) -> str:
    fixes = [(arm.step, arm.fix), *arm.also]
    shapes = [{"step": step, **asdict(fix)} for step, fix in fixes if fix is not None]
    for shape in shapes:
        if not shape["result"]:  # as it was before there were results: the hash stays
            del shape["result"]
    return json.dumps(shapes, ensure_ascii=False)


def _hash_of(arm: ReplayArm) -> str:
    if arm.fix is None:
        return ""
    return fix_hash(Fix(arm.fix.source, _joint_text(arm)) if arm.also else arm.fix)


def fix_hash(fix: Fix) -> str:
    """Return a short digest of a fix, equal for the same source, text and model."""
    text = f"{fix.source}\x00{fix.text}\x00{fix.model}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
