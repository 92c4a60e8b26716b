"""The end of a replayed program: whether it reached its change, and whether a limit or the endpoint ended it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mast_trace import semconv
from mast_trace.trajectory import read_trajectory, vocabulary
from mast_trace_judge.llm.budget import Tokens

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mast_trace.replay.live import LiveCall
    from mast_trace.replay.player import Report
    from mast_trace.trajectory import SpanRecord
    from mast_trace_judge.arms import ReplayStatus
    from mast_trace_judge.llm.budget import Price
    from mast_trace_lab.program.process import Limits, Played

_FIRST_ERROR: Final = 400
"""The lowest HTTP status that is an error."""


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
    answered = sum(0 < call.status < _FIRST_ERROR for call in played.live)
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


FIRST_ERROR: Final = 400
"""The first HTTP status of a live call that is an error."""
_NO_FAULT_OF_THE_AGENTS: Final = frozenset({0, 401, 403, 404, 408, 409, 425, 429})
"""Statuses of live calls for which the endpoint is responsible, besides those from 500."""


def ended(played: Played, limits: Limits, *, joint: bool) -> tuple[ReplayStatus, str]:
    """Return the status of a program that has ended, before its outcome is read, and a reason.

    A replay that a limit has ended while live calls were failing or unanswered is an error: a client that waits for an
    endpoint that is down, or asks it again and again, reaches its limits through no fault of the agents.

    Args:
        played: the traces of the program.
        limits: its limits.
        joint: whether it has several corrections to make.
    """
    report = played.report
    if report is None:
        return "error", "The program did not call mast_trace.instrument(), so nothing was answered."
    if report.over_budget:
        reason = f"It needed more than {limits.max_calls} live model calls."
        return _at_a_limit(played, "over budget", reason)
    if report.divergence is not None:
        return ("blocked" if report.divergence.after else "diverged"), report.divergence.text
    if played.exit_status is None:
        return _at_a_limit(played, "timeout", f"It did not end within {limits.timeout:g} s.")
    return _reached(played, report, joint=joint)


def _at_a_limit(played: Played, status: ReplayStatus, reason: str) -> tuple[ReplayStatus, str]:
    failed = _failed_calls(played.live)
    return ("error", f"{reason} {failed}") if failed else (status, reason)


def _reached(played: Played, report: Report, *, joint: bool) -> tuple[ReplayStatus, str]:
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
