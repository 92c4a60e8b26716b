"""Replays one arm of a counterfactual experiment and reads its outcome."""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Final

from mast_trace import semconv
from mast_trace.content import content_hash
from mast_trace.replay.intervention import Intervention
from mast_trace.trajectory import SpanRecord, Trajectory, read_trajectory, vocabulary
from mast_trace_judge.arms import ArmResult, ReplayArm, ReplayStatus
from mast_trace_judge.llm.budget import Price, Tokens
from mast_trace_lab.program.process import oracle_of
from mast_trace_lab.replay.changes import intervention_of
from mast_trace_lab.replay.runner import Played, compared, play

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mast_trace.replay.live import LiveCall
    from mast_trace.replay.player import ReplayReport
    from mast_trace.replay.tape import Tape
    from mast_trace_lab.program.budget import ReplayAllowance, ReplayTrial
    from mast_trace_lab.program.conducting import Execute
    from mast_trace_lab.program.setup import Setup

FIRST_ERROR: Final = 400
"""The first HTTP status of a live call that is an error."""
_NO_FAULT_OF_THE_AGENTS: Final = frozenset({0, 401, 403, 404, 408, 409, 425, 429})
"""Statuses of live calls for which the endpoint is responsible, besides those from 500."""
_LONGEST_ANSWER: Final = 4000


@dataclass(frozen=True)
class Spending:
    """Tokens and cost of live calls.

    Attributes:
        input_tokens: of all live calls.
        output_tokens: likewise.
        cost_usd: in US dollars; None if a model's price or a call's tokens are unknown.
        models: names of the models that answered, as they call themselves.
    """

    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    models: tuple[str, ...]


def spending_of(played: Played, prices: Mapping[str, Price]) -> Spending:
    """Return the tokens and cost of a program's live calls.

    Answers from the record have no token usage, so each token belongs to a live call.

    Args:
        played: the program's traces.
        prices: by name of the model, as it calls itself or as the request names it.
    """
    runs = [read_trajectory(spans) for spans in played.spans.values()]
    total = Tokens(sum(run.input_tokens for run in runs), 0, sum(run.output_tokens for run in runs))
    by_model: dict[str, Tokens] = defaultdict(Tokens)
    counted = 0
    for spans in played.spans.values():
        for span in spans:
            if span.operation == semconv.CHAT and not span.attributes.get(semconv.REPLAY_SERVED):
                model = str(vocabulary.read(span.attributes, "model") or "")
                known, used = by_model[model], _tokens(span)
                counted += bool(used.total)
                by_model[model] = Tokens(known.input + used.input, 0, known.output + used.output)
    asked = tuple(dict.fromkeys(call.model for call in played.live if call.model))
    models = tuple(name for name, used in by_model.items() if name and used.total) or asked
    answered = sum(0 < call.status < FIRST_ERROR for call in played.live)
    # Calls outside of a run and requests for embeddings have no span that tells their tokens.
    cost = None if counted < answered else _cost(played, total, by_model, prices)
    return Spending(total.input, total.output, cost, models)


def _cost(
    played: Played, total: Tokens, by_model: Mapping[str, Tokens], prices: Mapping[str, Price]
) -> float | None:
    if not played.live:
        return 0.0
    used = {model: tokens for model, tokens in by_model.items() if tokens.total}
    # Spans of other tools count a call twice; a stream may report no usage.
    counted = Tokens(sum(t.input for t in used.values()), 0, sum(t.output for t in used.values()))
    if counted != total or not total.total or any(model not in prices for model in used):
        return None
    return sum(prices[model].of(tokens) for model, tokens in used.items())


def _tokens(span: SpanRecord) -> Tokens:
    def read(name: str) -> int:
        return vocabulary.integer(vocabulary.read(span.attributes, name)) or 0

    return Tokens(read("input_tokens"), 0, read("output_tokens"))


def ended(
    played: Played, timeout: float, max_calls: int | None, *, joint: bool
) -> tuple[ReplayStatus, str]:
    """Return the status of a program that has ended, before its outcome is read, and a reason.

    A replay that a limit has ended while live calls were failing or unanswered is an error: a client that waits for an
    endpoint that is down, or asks it again and again, reaches its limits through no fault of the agents.

    Args:
        played: the traces of the program.
        timeout: seconds that it had.
        max_calls: live model calls that it was allowed; None for any number.
        joint: whether it has several corrections to make.
    """
    report = played.report
    if report is None:
        return "error", "The program did not call mast_trace.instrument(), so nothing was answered."
    if report.over_budget:
        reason = f"It needed more than {max_calls} live model calls."
        return _at_a_limit(played, "over budget", reason)
    if report.divergence is not None:
        return ("blocked" if report.divergence.after else "diverged"), report.divergence.text
    if played.exit_status is None:
        return _at_a_limit(played, "timeout", f"It did not end within {timeout:g} s.")
    return _reached(played, report, joint=joint)


def _at_a_limit(played: Played, status: ReplayStatus, reason: str) -> tuple[ReplayStatus, str]:
    failed = _failed_calls(played.live)
    return ("error", f"{reason} {failed}") if failed else (status, reason)


def _reached(played: Played, report: ReplayReport, *, joint: bool) -> tuple[ReplayStatus, str]:
    if not report.changed:
        return "diverged", "The program ended before it had reached the step."
    if failed := _failed_calls(played.live):
        return "error", failed
    if joint and report.unmade_changes:
        # A success would be one of fewer fixes than the arm names.
        return "diverged", "The program ended before it had reached the last step of a joint fix."
    return "ok", ""


def _failed_calls(calls: Sequence[LiveCall]) -> str:
    """Return how many calls stayed without an answer through no fault of the agents; empty if none did.

    A call that was repeated with success is none of them; one that still waits for its response is.
    """
    answered: set[str] = set()
    failed: list[LiveCall] = []
    for call in reversed(calls):
        if 0 < call.status < FIRST_ERROR:
            answered.add(call.key)
        elif call.key not in answered and (
            call.status in _NO_FAULT_OF_THE_AGENTS or call.status >= 500
        ):
            failed.append(call)
    if not failed:
        return ""
    statuses = ", ".join(sorted({str(call.status or "no response") for call in failed}))
    return f"{len(failed)} live model calls failed: {statuses}."


def executing(
    recorded: Trajectory,
    setup: Setup,
    replayed: Callable[[Trajectory], None] = lambda _run: None,
) -> Execute:
    """Return a function that runs one replay of a run: reset, program, oracle.

    The function raises ResetFailed if the state outside the program cannot be restored, and OSError if
    the program cannot be started.

    Args:
        recorded: the run.
        setup: of the replays.
        replayed: takes the run that the program made, before it is thrown away.
    """
    told = setup.with_task(recorded.task)

    def execute(trial: ReplayTrial, allowance: ReplayAllowance) -> ArmResult:
        if trial.phase != "score":
            setup.restore()
        return run_arm(recorded, told, trial.arm, max_calls=allowance.calls, replayed=replayed)

    return execute


def run_arm(
    recorded: Trajectory,
    setup: Setup,
    arm: ReplayArm,
    *,
    max_calls: int | None = None,
    replayed: Callable[[Trajectory], None] = lambda _run: None,
) -> ArmResult:
    """Replay one arm; nothing is reset before it.

    ``score`` starts no program: the oracle judges the recorded answer again; without an oracle the
    recorded outcome is returned.

    Args:
        recorded: the recorded run.
        setup: the program, which calls `mast_trace.instrument()`, its limits, and the oracle, which comes
            before an outcome that the program records.
        arm: the change.
        max_calls: live model calls that may be sent; None for any number.
        replayed: takes the run that the program made, before it is thrown away.

    Raises:
        NotReplayable: the record lacks data that a replay needs.
        NotAnArm: the run has no such step, or the step does not allow the change.
        NoChange: the step would be as it was recorded; nothing was started.
        OSError: the command cannot be started.
    """
    started, clock = datetime.now(timezone.utc), time.monotonic()
    if arm.operator == "score":
        answer = recorded.final_answer
        status, success, reason = _judged(setup, recorded.outcome, answer, 0)
        return ArmResult(
            arm,
            status,
            success,
            reason,
            answer=answer[:_LONGEST_ANSWER],
            started_at=started,
            seconds=time.monotonic() - clock,
        )
    tape = setup.tape(recorded)
    change = None if arm.operator == "verify" else _change(recorded, tape, arm, setup)
    played = play(tape, setup, change, max_calls=max_calls)
    if arm.operator == "verify":
        status, reason = _verified(recorded, played, setup)
        if status != "ok" and setup.parent is not None and setup.parent.is_unasked:
            setup.restore()
            alone = play(tape, replace(setup, parent=None))
            if _verified(recorded, alone, setup)[0] == "ok":
                setup.parent.give_up()
                played, status, reason = alone, "ok", ""
    run = played.runs_like([*setup.earlier, recorded])[-1]
    if run is not None:
        replayed(run)
    if arm.operator != "verify":
        status, reason = ended(played, setup.timeout, max_calls, joint=bool(arm.also))
    success = None
    answer = run.final_answer if run is not None else ""
    if status == "ok":
        outcome = run.outcome if run is not None else ""
        status, success, reason = _judged(
            setup,
            outcome,
            answer,
            played.exit_status or 0,
            run.outcome_reason if run else "",
        )
    spent = spending_of(played, setup.prices)
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


def _change(recorded: Trajectory, tape: Tape, arm: ReplayArm, setup: Setup) -> Intervention:
    kept = sum(call.kind == "model" for run in setup.earlier for call in run.invocations)
    if arm.operator == "start" and setup.keeps_earlier and kept:
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


def _verified(recorded: Trajectory, played: Played, setup: Setup) -> tuple[ReplayStatus, str]:
    done = compared(recorded, played, setup)
    if done.status == "identical":
        return "ok", ""
    if done.status == "timeout":
        return "timeout", done.text
    return ("error" if done.status == "not recorded" else "diverged"), done.text


def _judged(
    setup: Setup, outcome: str, answer: str, exit_status: int, reason: str = ""
) -> tuple[ReplayStatus, bool | None, str]:
    """Return status, success and reason from the oracle, without one from the recorded outcome."""
    oracle = oracle_of(setup.oracle, setup.check_timeout)
    if outcome and oracle is None:
        return "ok", outcome == "success", reason
    if exit_status and not outcome:
        return "crashed", None, f"The program ended with {exit_status} and without an outcome."
    if oracle is None:
        return "error", None, "The program recorded no outcome, and there is no oracle."
    opinion = oracle.ask(answer)
    if opinion.success is None:
        return "error", None, f"The oracle failed: OracleUndecided: {opinion.reason}"
    return "ok", opinion.success, ""
