"""Runs that the tests of the web view look at."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from mast_trace.taxonomy import FAILURE_MODES
from mast_trace_collector.storage.runs import run_summary
from mast_trace_judge.verdict import Candidate, DecisiveError, Evidence, ModeFinding, Place, Verdict

if TYPE_CHECKING:
    from mast_trace_collector.storage import Store

SHORT, LONG, BARE, LOOP, LIVE = (letter * 32 for letter in "abcde")
UNSURE, HEALTHY = (digit * 32 for digit in "12")
CROWD = "9" * 32
T0 = datetime.now(timezone.utc) - timedelta(hours=1)
HOSTILE = (
    "<script>document.title='owned'</script> <img src=x onerror=\"document.title='owned'\"> "
    "\x1b[31mred\x1b[0m \u202egnol\u202c {{ 7*7 }}"
)
QUOTE = "A night costs 181 EUR."


def message(run: str, number: int, agent: str, text: str) -> dict[str, Any]:
    return {
        "TraceId": run,
        "SpanId": f"{number:016x}",
        "ParentSpanId": "f" * 16,
        "SpanName": f"send_message {agent}",
        "Timestamp": T0 + timedelta(milliseconds=number),
        "Duration": 0,
        "ServiceName": "shop",
        "ScopeName": "",
        "StatusCode": "Unset",
        "SpanAttributes": {
            "gen_ai.operation.name": "send_message",
            "mast.framework": "ag2",
            "mast.message.sender": agent,
            "mast.message.recipients": '["writer"]',
            "mast.message.id": f"m{number}",
            "mast.message.content": text,
        },
    }


def root(run: str, name: str) -> dict[str, Any]:
    return {
        "TraceId": run,
        "SpanId": "f" * 16,
        "ParentSpanId": "",
        "SpanName": f"invoke_workflow {name}",
        "Timestamp": T0,
        "Duration": 10**9,
        "ServiceName": "shop",
        "ScopeName": "",
        "StatusCode": "Unset",
        "SpanAttributes": {
            "gen_ai.operation.name": "invoke_workflow",
            "gen_ai.workflow.name": name,
            "mast.framework": "ag2",
        },
    }


def judged(store: Store, run: str, steps: int, step: int, **more: Any) -> Verdict:
    summary = run_summary(store, run)
    assert summary
    given: dict[str, Any] = {
        "trace_id": run,
        "fingerprint": summary.fingerprint,
        "judge_version": "v1",
        "judged_at": T0,
        "service": "shop",
        "framework": "ag2",
        "name": summary.name,
        "run_start": summary.start,
        "run_end": summary.end,
        "steps": steps,
        "outcome": "failure",
        "failure_probability": 0.9,
        "modes": (
            ModeFinding(
                code="2.6",
                probability=0.9,
                evidence=Evidence.EXACT,
                reason="The tool said 118.",
                steps=(step,),
                quotes=(QUOTE,),
            ),
        ),
        "decisive": DecisiveError(
            step=step, agent="researcher", probability=0.7, reason="It misread the price."
        ),
        "candidates": (
            Candidate(step=step, agent="researcher", probability=0.7),
            Candidate(step=0, agent="researcher", probability=0.1, rule="first actor"),
        ),
        "look_first": (
            Place(step=step, agent="researcher", basis="record", why="The tool said 118."),
            Place(
                step=0, agent="researcher", basis="rule", why="It was asked for.", right=3, cases=9
            ),
        ),
        "examined": tuple(code for code in FAILURE_MODES if code != "1.1"),
        "calibrated": True,
    }
    return Verdict(**{**given, **more})


def abstained(outcome: str, probability: float) -> dict[str, Any]:
    """A verdict that names no step, with probabilities that were not measured."""
    found = ModeFinding(
        code="2.1", probability=probability, evidence=Evidence.HEURISTIC, reason="Lost.", steps=(0,)
    )
    return {
        "outcome": outcome,
        "decisive": None,
        "abstained": True,
        "calibrated": False,
        "modes": (found,),
        "candidates": (
            Candidate(step=0, agent="writer", probability=0.4321, rule="first actor"),
            Candidate(step=1, agent="writer", probability=0.2345),
        ),
        "look_first": (),
        "examined": ("1.3", "2.1"),
    }
