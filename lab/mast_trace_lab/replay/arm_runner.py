"""Replays one arm of a counterfactual experiment and reads its outcome."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Final

from mast_trace.content import content_hash
from mast_trace.replay.intervention import Intervention
from mast_trace.replay.recording import tape_of
from mast_trace_judge.arms import ArmResult
from mast_trace_lab.program.endings import FIRST_ERROR, ended, spending_of
from mast_trace_lab.program.process import Limits, play
from mast_trace_lab.replay.changes import intervention_of
from mast_trace_lab.replay.runner import compared

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mast_trace.replay.live import LiveCall
    from mast_trace.replay.tape import Tape
    from mast_trace.trajectory import Trajectory
    from mast_trace_judge.arms import Arm, ReplayStatus
    from mast_trace_judge.llm.budget import Price
    from mast_trace_lab.program.process import Played

Oracle = Callable[[str], bool]
"""Returns whether a final answer is right."""

_LONGEST_ANSWER: Final = 4000


@dataclass(frozen=True)
class ArmSettings:
    """Settings that all replays of an experiment share.

    Attributes:
        limits: limits of each replay.
        oracle: judges the final answer, also of a program that records an outcome; it may raise an
            exception if it cannot tell.
        prices: by name of the model; without a price, `ArmResult.cost_usd` is None.
        earlier: interrupted runs that the recorded one continues, the first one first. They are
            answered from the record by every operator, except ``start`` without `keeps_earlier`.
        keeps_earlier: whether ``start`` begins with the recorded run and not with the first of them.
        replayed: takes the run that the program made, before it is thrown away.
    """

    limits: Limits = field(default_factory=Limits)
    oracle: Oracle | None = None
    prices: Mapping[str, Price] = field(default_factory=dict)
    earlier: Sequence[Trajectory] = ()
    keeps_earlier: bool = False
    replayed: Callable[[Trajectory], None] = lambda _run: None


def run_arm(
    recorded: Trajectory, command: Sequence[str], arm: Arm, *, settings: ArmSettings | None = None
) -> ArmResult:
    """Replay one arm.

    ``score`` starts no program: the oracle judges the recorded answer again; without an oracle the
    recorded outcome is returned.

    Args:
        recorded: the recorded run.
        command: the program, which calls `mast_trace.instrument()`, and its arguments.
        arm: the change.
        settings: limits, oracle and prices.

    Raises:
        NotReplayable: the record lacks data that a replay needs.
        NotAnArm: the run has no such step, or the step does not allow the change.
        NoChange: the step would be as it was recorded; nothing was started.
        OSError: the command cannot be started.
    """
    settings = settings or ArmSettings()
    started, clock = datetime.now(timezone.utc), time.monotonic()
    if arm.operator == "score":
        answer = recorded.final_answer
        status, success, reason = _judged(settings.oracle, recorded.outcome, answer, 0)
        return ArmResult(
            arm,
            status,
            success,
            reason,
            answer=answer[:_LONGEST_ANSWER],
            started_at=started,
            seconds=time.monotonic() - clock,
        )
    tape = tape_of(recorded, *settings.earlier, live_tools=settings.limits.live_tools)
    change = None if arm.operator == "verify" else _change(recorded, tape, arm, settings)
    played = play(tape, command, settings.limits, change)
    run = played.runs_like([*settings.earlier, recorded])[-1]
    if run is not None:
        settings.replayed(run)
    if arm.operator == "verify":
        status, reason = _verified(recorded, played, settings)
    else:
        status, reason = ended(played, settings.limits, joint=bool(arm.also))
    success = None
    answer = run.final_answer if run is not None else ""
    if status == "ok":
        outcome = run.outcome if run is not None else ""
        status, success, reason = _judged(
            settings.oracle,
            outcome,
            answer,
            played.exit_status or 0,
            run.outcome_reason if run else "",
        )
    spent = spending_of(played, settings.prices)
    report = played.report
    return ArmResult(
        arm,
        status,
        success,
        reason,
        served_calls=report.served_exchanges if report else 0,
        served_tools=report.served_executions if report else 0,
        live_calls=len(played.live),
        live_tools=report.live_executions if report else 0,
        input_tokens=spent.input_tokens,
        output_tokens=spent.output_tokens,
        cost_usd=spent.cost_usd,
        models=spent.models,
        calls_hash=calls_hash(played.live),
        answer=answer[:_LONGEST_ANSWER],
        started_at=started,
        seconds=time.monotonic() - clock,
    )


def _change(recorded: Trajectory, tape: Tape, arm: Arm, settings: ArmSettings) -> Intervention:
    kept = sum(call.kind == "model" for run in settings.earlier for call in run.invocations)
    if arm.operator == "start" and settings.keeps_earlier and kept:
        return Intervention("keep", kept - 1, kept, hold=arm.hold)
    return intervention_of(recorded, tape, arm)


def calls_hash(calls: Sequence[LiveCall]) -> str:
    """Return the hash of the live requests in order; failed attempts, which clients repeat, are left out.

    It is empty without live requests.
    """
    answered = [call for call in calls if 0 < call.status < FIRST_ERROR]
    return (
        content_hash("\n".join(f"{each.model} {each.key}" for each in answered)) if answered else ""
    )


def _verified(
    recorded: Trajectory, played: Played, settings: ArmSettings
) -> tuple[ReplayStatus, str]:
    done = compared(recorded, played, settings.limits.timeout, settings.earlier)
    if done.status == "identical":
        return "ok", ""
    if done.status == "timeout":
        return "timeout", done.text
    return ("error" if done.status == "not recorded" else "diverged"), done.text


def _judged(
    oracle: Oracle | None, outcome: str, answer: str, exit_status: int, reason: str = ""
) -> tuple[ReplayStatus, bool | None, str]:
    """Return status, success and reason from the oracle, without one from the recorded outcome."""
    if outcome and oracle is None:
        return "ok", outcome == "success", reason
    if exit_status and not outcome:
        return "crashed", None, f"The program ended with {exit_status} and without an outcome."
    if oracle is None:
        return "error", None, "The program recorded no outcome, and there is no oracle."
    try:
        return "ok", bool(oracle(answer)), ""
    except Exception as error:  # noqa: BLE001  # user's code; the text is in the result
        return "error", None, f"The oracle failed: {type(error).__name__}: {error}"
