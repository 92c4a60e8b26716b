"""The work of the local layers grows with the length of a run and of its texts, and not with its square."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest
from judge.builders import RunBuilder

from mast_trace.trajectory import SpanRecord, Trajectory, read_trajectory
from mast_trace_judge.config import JudgeConfig
from mast_trace_judge.local.layers import judge_by_rules
from mast_trace_judge.version import own_profiles, rules_of

if TYPE_CHECKING:
    from collections.abc import Callable

_CONFIG = JudgeConfig(judge_model="")
_TEXTS = {
    "totals": "Part {0}: the total is {1} EUR.",
    "one text": "Please try again.",
    "orders": "Clerk {0}, refund order ORD-{1} to customer {0}, and tell the boss.",
}


def _run(steps: int, text: str) -> Trajectory:
    spans = [SpanRecord("t", "root", "", "run", 0, 10**15, {"mast.run.outcome": "failure"})]
    for number in range(steps):
        told = {
            "gen_ai.operation.name": "send_message",
            "mast.message.sender": ("boss", "clerk")[number // 2 % 2],
            "mast.message.content": text.format(number, 7919 * number % 100_003),
            "mast.message.id": f"m{number}",
        }
        if number % 2:
            told = {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.agent.name": "clerk",
                "gen_ai.tool.name": "look_up",
                "gen_ai.tool.call.arguments": json.dumps({"page": number}),
                "gen_ai.tool.call.result": json.dumps({"amount": 104_729 * number % 1_000_003}),
            }
        start = number * 10**9
        spans.append(SpanRecord("t", f"s{number}", "root", "step", start, start + 1, told))
    return read_trajectory(spans)


def _calls(trajectory: Trajectory) -> int:
    """Count the calls of functions in which the local layers judge a run."""
    calls = [0]

    def called(_frame: object, event: str, _given: object) -> None:
        calls[0] += event in {"call", "c_call"}

    sys.setprofile(called)
    try:
        judge_by_rules(trajectory, own_profiles(_CONFIG), rules_of(_CONFIG))
    finally:
        sys.setprofile(None)
    return calls[0]


@pytest.mark.parametrize("text", _TEXTS.values(), ids=_TEXTS)
def test_twice_the_steps_take_twice_the_calls(text: str) -> None:
    judge_by_rules(_run(10, text), own_profiles(_CONFIG), rules_of(_CONFIG))  # makes what lasts
    assert _calls(_run(800, text)) < 2.4 * _calls(_run(400, text))


_FACTS = {
    "dates": lambda n: f"on {n % 28 + 1} {('May', 'June', 'July')[n % 3]} {1990 + n % 40}, ",
    "figures": lambda n: f"{7919 * n % 100_003} pieces, ",
    "names": lambda n: f"AB{7919 * n % 100_003}, ",
    "lists": lambda n: f"[{n % 97},{n % 89}.5], ",
}


@pytest.mark.parametrize("fact", _FACTS.values(), ids=_FACTS)
def test_twice_the_text_takes_twice_the_calls(fact: Callable[[int], str]) -> None:
    """Texts that differ, in the task, in arguments, in results and in messages."""

    def run(facts: int) -> Trajectory:
        task, given, found, said = (
            "".join(fact(4 * number + place) for number in range(facts)) for place in range(4)
        )
        made = RunBuilder(f"Book {task}.").asks()
        made.calls("clerk", "book_rooms", {"text": given}, json.dumps({"written": found}))
        return made.says("clerk", said).build()

    judge_by_rules(run(10))  # makes what lasts
    assert _calls(run(400)) < 2.6 * _calls(run(200))
