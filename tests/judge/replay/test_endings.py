"""A limit that a program reaches while its model does not answer is no failure of the agents."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mast_trace.replay.live import UNANSWERED, LiveCall
from mast_trace.replay.player import ReplayReport
from mast_trace.trajectory import SpanRecord
from mast_trace_judge.llm.budget import Price
from mast_trace_lab.replay.arm_runner import ended, spending_of
from mast_trace_lab.replay.runner import Played

SECONDS, MOST_CALLS = 9, 3


def status_of(*calls: LiveCall, over_budget: bool = False, exit_status: int | None = None) -> str:
    """Return the status of a program that has changed and was killed after these live calls."""
    report = ReplayReport(0, 0, 0, 0, 0, None, len(calls), changed=True, over_budget=over_budget)
    return ended(Played(exit_status, report, {}, calls), SECONDS, MOST_CALLS, joint=False)[0]


def call(status: int, key: str = "k") -> LiveCall:
    return LiveCall(key, "small", status)


@pytest.mark.parametrize("over_budget", [False, True])
@pytest.mark.parametrize("status", [UNANSWERED, 429, 503])
def test_a_client_that_waits_for_its_model_is_not_hanging(status: int, over_budget: bool) -> None:
    """It asks again until the limit, or still waits for a response."""
    at_limit = status_of(call(200, "first"), call(status), call(status), over_budget=over_budget)
    assert at_limit == "error"


@pytest.mark.parametrize("calls", [(), (call(200),), (call(429), call(200)), (call(400),)])
def test_a_program_whose_calls_were_answered_met_its_limit(calls: tuple[LiveCall, ...]) -> None:
    assert status_of(*calls) == "timeout"
    assert status_of(*calls, over_budget=True) == "over budget"


def test_an_equal_request_that_was_answered_before_is_no_repetition() -> None:
    assert status_of(call(200), call(503)) == "error"
    assert status_of(call(503), call(200), exit_status=0) == "ok"
    assert status_of(call(200), call(503), exit_status=0) == "error"


def test_the_reason_names_limit_and_failed_calls() -> None:
    report = ReplayReport(0, 0, 0, 0, 0, None, 2, changed=True)
    told = ended(Played(None, report, {}, (call(429), call(0))), SECONDS, MOST_CALLS, joint=False)
    assert told == (
        "error",
        "It did not end within 9 s. 2 live model calls failed: 429, no response.",
    )


@pytest.mark.parametrize(
    ("reported", "cost"),
    [
        ([("call", "", 10, 5)], 0.00002),
        # Another tool's span of the same call.
        ([("mast_trace", "", 10, 5), ("other", "mast_trace", 10, 5)], None),
        ([("call", "", 0, 0)], None),
    ],
)
def test_the_cost_is_told_where_every_token_is_counted_once(
    reported: list[tuple[str, str, int, int]], cost: float | None
) -> None:
    names = ("gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens")
    shared = {"gen_ai.operation.name": "chat", "gen_ai.response.model": "small"}
    spans = [
        SpanRecord("t", span, parent, span, 1, 2, shared | dict(zip(names, used, strict=True)))
        for span, parent, *used in reported
    ]
    spans = [replace(span, scope=f"{span.name}.scope") for span in spans]
    played = Played(0, None, {"t": spans}, (call(200),))
    assert spending_of(played, {"small": Price(input=1.0, output=2.0)}).cost_usd == cost
