"""A scripted model that reads runs: it answers each question of the judge, well or badly."""

from __future__ import annotations

import json
import re
import threading
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from judge.builders import RunBuilder
from scripted_llm import Reply, ScriptedLLM, messages_of

from mast_trace_collector.storage.runs import RunSummary
from mast_trace_judge.config import JudgeConfig
from mast_trace_judge.judge import Judge
from mast_trace_judge.store.ledger import MemoryLedger

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mast_trace.trajectory import Trajectory
    from mast_trace_judge.verdict import Verdict

Answer = dict[str, Any] | str | Reply

_STAGES = (
    ("counterfactual", re.compile(r"Suppose that only step (\d+) had been done right")),
    ("segment", re.compile(r"This record is part (\d+) of")),
    ("name", re.compile(r"Write one sentence that names this failure")),
    ("read", re.compile(r"Read the whole record from its beginning")),
)

_MARK = re.compile(r"^Mark: (\w+)$", re.MULTILINE)
WRONG_STEP = 3
PRICES_OF_TWO = "a double room: 118 EUR a night, a suite: 181 EUR a night"
RUN_TEXTS = {
    WRONG_STEP: "A double room in Lisbon costs 181 EUR a night.",
    4: "Flights 396 EUR, hotel 3 x 181 = 543 EUR, together 939 EUR.",
}


def trip(
    *, outcome: str = "", prices: str = "a double room: 118 EUR a night", **attributes: Any
) -> Trajectory:
    """A run in which the researcher turns 118 EUR into 181, and nobody notices.

    Args:
        outcome: as recorded.
        prices: the tool's result; rules find nothing in the run with `PRICES_OF_TWO`.
        attributes: of the run.
    """
    run = RunBuilder("What does the trip cost?", outcome=outcome, **attributes)
    run.asks(to="researcher")
    run.says("planner", "Find the prices, please.", to="researcher")
    run.calls("researcher", "hotel_price", {"city": "Lisbon"}, prices)
    run.says("researcher", RUN_TEXTS[WRONG_STEP], to="planner")
    run.says("planner", RUN_TEXTS[4], to="auditor")
    run.says("auditor", "I agree: the trip costs 939 EUR.", to="user")
    return run.build()


def point(step: int, *quotes: str, **more: Any) -> dict[str, Any]:
    """An error as a model notes it."""
    return {
        "step": step,
        "what": "the price is not the one that the tool returned",
        "right": "say 118 EUR, as the tool returned",
        "inherited_from": None,
        "harmless": False,
        "quotes": list(quotes),
        **more,
    }


def mode(code: str, steps: list[int], *quotes: str, probability: float = 0.9) -> dict[str, Any]:
    """A failure mode as a model maps it."""
    return {
        "code": code,
        "probability": probability,
        "steps": steps,
        "harmless": False,
        "reason": "the price differs from the tool's",
        "quotes": list(quotes),
    }


def reading(
    *points: dict[str, Any],
    outcome: str = "failure",
    p: float = 0.9,
    modes: Sequence[dict[str, Any]] = (),
    **more: Any,
) -> dict[str, Any]:
    """A reading of the whole run, which suggests the steps of the errors in their order."""
    first = points[0] if points else {"step": None, "quotes": []}
    return {
        "solution": "three nights at 118 EUR and the flights",
        "errors": list(points),
        "outcome": outcome,
        "failure_probability": p,
        "decisive": {
            "kind": "single" if points else "nothing",
            "step": first["step"],
            "reason": "the total rests on this price",
            "minimal_fix": "say 118 EUR, as the tool returned",
            "quotes": first["quotes"],
        },
        "ranking": [each["step"] for each in points],
        "confidence": 0.7,
        "modes": list(modes),
        **more,
    }


def what_if(**more: Any) -> dict[str, Any]:
    """A step as it should have been."""
    return {
        "reason": "the sum would have been right",
        "minimal_fix": "say 118 EUR, not 181",
        "uses_only_earlier_information": True,
        "corrected_text": "The room costs 118 EUR a night.",
        "corrected_calls": [],
        **more,
    }


def completion(message: dict[str, Any], finish: str = "stop", **more: Any) -> Reply:
    """An answer of the API whose choice has ended like this; without ``usage`` it reports none."""
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", **message}}
    body = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    return Reply(body=json.dumps({**body, **more}))


GOOD: dict[str, Answer | Callable[[str], Answer]] = {
    "read": reading(
        point(WRONG_STEP, "181 EUR a night"),
        modes=[mode("2.6", [WRONG_STEP], "costs 181 EUR a night")],
    ),
    "counterfactual": what_if(),
    "segment": {"summary": "prices were looked up", "errors": []},
}
_NAMELESS = {"sentence": "", "quotes": []}


OPINION = "the model reads the run as a failure and suggests step 3; no outcome was recorded, so this is an opinion"
"""The note in a verdict on a run of unknown outcome that a reliable model has read."""


@dataclass
class JudgeScript:
    """Answers by the question that is asked.

    Attributes:
        answers: by stage; a function gets what the question's pattern caught.
        first: answers that are given before all others, whatever is asked.
        asked: the stages, in order of arrival.
    """

    answers: dict[str, Answer | Callable[[str], Answer]] = field(default_factory=lambda: dict(GOOD))
    first: list[Answer] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, request: dict[str, Any]) -> Reply | str:
        question = next(m["content"] for m in messages_of(request) if m["role"] == "user")
        stage, caught = stage_of(question)
        with self._lock:
            self.asked.append(stage)
            if self.first:
                return _reply(self.first.pop(0))
        answer = self.answers.get(stage, _NAMELESS) if stage == "name" else self.answers[stage]
        answer = answer(caught) if callable(answer) else answer
        if isinstance(answer, dict) and stage == "read":
            answer = {"marks": " ".join(_MARK.findall(question)), **answer}
        return _reply(answer)


def stage_of(question: str) -> tuple[str, str]:
    """Return which question it is, and what it asks about."""
    for stage, pattern in _STAGES:
        found = pattern.search(question)
        if found:
            return stage, found[1] if found.groups() else ""
    raise AssertionError(f"no known question: {question[-300:]}")


def with_answers(**answers: Answer | Callable[[str], Answer]) -> JudgeScript:
    """A model that answers well but for these questions."""
    return JudgeScript({**GOOD, **answers})


def config_for(server: ScriptedLLM, **settings: Any) -> JudgeConfig:
    """Settings that ask this server; everything else as shipped, but quicker to give up."""
    defaults = {
        "judge_base_url": server.url,
        "judge_api_key": "scripted",
        "judge_model": "scripted",
        "judge_attempts": 3,
        "judge_timeout_seconds": 5.0,
    }
    return JudgeConfig(**{**defaults, **settings})


def run_of(trajectory: Trajectory, trace_id: str = "") -> RunSummary:
    """The store's row of a run."""
    now = datetime.now(timezone.utc)
    return RunSummary(
        project="shop",
        trace_id=trace_id or trajectory.trace_id,
        fingerprint="f1",
        name="trip",
        service="travel",
        framework="ag2",
        conversation_id="",
        start=now,
        end=now,
        last_seen=now,
        has_root=True,
        spans=len(trajectory.steps),
        errors=0,
        input_tokens=0,
        output_tokens=0,
        agents=trajectory.agents,
        models=(),
        outcome=trajectory.outcome,
        outcome_reason="",
        termination_reason="",
    )


@dataclass
class Judged:
    """The result of judging a run.

    Attributes:
        ledger: the calls.
        requests: every request that the server got.
    """

    verdict: Verdict
    ledger: MemoryLedger
    requests: list[dict[str, Any]]


async def judged(
    script: Callable[[dict[str, Any]], Reply | str],
    trajectory: Trajectory | None = None,
    *,
    ledger: MemoryLedger | None = None,
    **settings: Any,
) -> Judged:
    """Judge a run with a scripted model behind a real HTTP server."""
    trajectory = trajectory or trip()
    ledger = ledger or MemoryLedger()
    with ScriptedLLM(script) as server:
        judge = Judge(config_for(server, **settings), ledger=ledger)
        try:
            verdict = await judge.judge(run_of(trajectory), trajectory)
        finally:
            await judge.aclose()
        return Judged(verdict, ledger, list(server.requests))


def _reply(answer: Answer) -> Reply | str:
    return json.dumps(answer) if isinstance(answer, dict) else answer
