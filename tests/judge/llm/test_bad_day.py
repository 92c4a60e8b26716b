"""An endpoint on a bad day: everything that goes wrong, at once, over many runs."""

import asyncio
import dataclasses
import json
import threading

from judge.llm.scripted_judge import (
    GOOD,
    JudgeScript,
    config_for,
    mode,
    point,
    reading,
    run_of,
    trip,
)
from scripted_llm import Reply, ScriptedLLM

from mast_trace_judge.judge import Judge
from mast_trace_judge.store.ledger import MemoryLedger

RUNS = 24
INVENTED = "I have deleted the whole database."
BAD = {
    "too many": Reply("slow down", status=429, headers={"Retry-After": "0"}),
    "out of order": Reply("oops", status=500),
    "cut": '{"outcome": "failure", "failure_prob',
    "refusal": "I cannot help with that.",
    "stall": Reply("late", delay=2.0),
    "won over": json.dumps(reading(outcome="success", p=0.01)),
    "quotes": json.dumps(reading(point(3, INVENTED))),
    "steps": json.dumps(reading(point(999, INVENTED), point(-4, INVENTED))),
    "modes": json.dumps(reading(modes=[mode("3.1", [999], INVENTED), mode("2.6", [3], INVENTED)])),
}


class BadDay:
    """Gives one of the bad answers every other time, each in its turn."""

    def __init__(self) -> None:
        self.script = JudgeScript(dict(GOOD))
        self.given: list[str] = []
        self._asked = 0
        self._lock = threading.Lock()

    def __call__(self, request):
        reply = self.script(request)
        with self._lock:
            self._asked += 1
            if self._asked % 2:
                return reply
            name = list(BAD)[len(self.given) % len(BAD)]
            self.given.append(name)
        return BAD[name]


async def test_no_verdict_is_lost_and_none_is_false():
    """Each run gets its verdict; nothing that a model invented is in any of them."""
    runs = [trip(outcome="failure" if number % 2 else "") for number in range(RUNS)]
    named = [
        dataclasses.replace(run, trace_id=f"{number:032x}", task=f"Trip {number}?")
        for number, run in enumerate(runs)
    ]
    day, ledger = BadDay(), MemoryLedger()
    with ScriptedLLM(day) as server:
        config = config_for(server, judge_timeout_seconds=0.5, judge_attempts=4)
        judge = Judge(config, ledger=ledger)
        try:
            verdicts = await asyncio.gather(*(judge.judge(run_of(run), run) for run in named))
        finally:
            await judge.aclose()
    assert set(day.given) == set(BAD)
    assert [verdict.trace_id for verdict in verdicts] == [run.trace_id for run in named]
    for run, verdict in zip(named, verdicts, strict=True):
        texts = [f"{step.text}\n{step.arguments}" for step in run.steps]
        for found in verdict.modes:
            assert all(0 <= step < len(texts) for step in found.steps)
            assert all(any(quote in text for text in texts) for quote in found.quotes)
        if verdict.decisive is not None:
            assert verdict.decisive.agent == run.steps[verdict.decisive.step].agent
        if run.outcome:
            assert (verdict.status, verdict.outcome) == ("ok", "failure")
        elif verdict.status == "unscored":
            assert verdict.outcome == "unknown"
            assert verdict.status_reason
        if verdict.method == "local":
            assert verdict.status_reason.startswith("without the model: ")
        assert INVENTED not in verdict.model_dump_json()
