"""A failed run of a team of three with its model calls, and conclusions of replays about it."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import invented_records
from web_runs import T0, message, root

from mast_trace_collector.storage.runs import run_summary
from mast_trace_judge.confirmation import Confirmation, Contrast, SuccessRate
from mast_trace_judge.store.confirmations import record_confirmation
from mast_trace_judge.store.replay_plans import plan_of

if TYPE_CHECKING:
    from mast_trace_collector.storage import Store

PROVED, TWIN = "3" * 32, "4" * 32
SAID = (
    ("planner", "Find a hotel in Graz for two nights, at most 300 EUR."),
    ("researcher", "The hotel Erika costs 118 EUR a night."),
    ("researcher", "A night costs 181 EUR, so two nights cost 362 EUR."),
    ("writer", "The hotel costs 362 EUR, which is above the limit."),
    ("planner", "Then look for another one. <b>Not</b> in Graz?"),
    ("researcher", "There is none below 362 EUR."),
    ("writer", "We found no hotel within the limit."),
)
FIX = "A night costs 118 EUR, so two nights cost 236 EUR."


def chat(run: str, number: int, agent: str, text: str) -> dict[str, Any]:
    """The call of a model that wrote the message of the same number."""
    said = message(run, number, agent, text)
    return {
        **said,
        "SpanId": f"{number + 4096:016x}",
        "SpanName": "chat small-1",
        "Timestamp": T0 + timedelta(milliseconds=number) - timedelta(microseconds=500),
        "Duration": 400_000,
        "SpanAttributes": {
            "gen_ai.operation.name": "chat",
            "gen_ai.agent.name": agent,
            "gen_ai.request.model": "small-1",
            "gen_ai.usage.input_tokens": str(100 * (number + 1)),
            "gen_ai.usage.output_tokens": "20",
            "mast.framework": "ag2",
            "mast.message.id": f"m{number}",
            "mast.input.message_ids": '["m0"]',
            "mast.input.message_roles": '["user"]',
        },
    }


def team(run: str, said: tuple[tuple[str, str], ...] = SAID) -> list[dict[str, Any]]:
    """The spans of the run; its first message comes from a person."""
    rows = [root(run, "hotel")]
    for number, (agent, text) in enumerate(said):
        rows.append(message(run, number, agent, text))
        if number:
            rows.append(chat(run, number, agent, text))
    return rows


def rate(step: int, successes: int, runs: int, low: float, high: float) -> SuccessRate:
    return SuccessRate(step=step, successes=successes, runs=runs, low=low, high=high)


def contrast(step: int = 2, **more: Any) -> Contrast:
    counts = {"fix_successes": 8, "e_value": 312.0, "effect": 1.0}
    return invented_records.contrast(
        step, **{"fix_text": FIX, "agent": "researcher", **counts, **more}
    )


def proof(**more: Any) -> Confirmation:
    """The conclusion that step 2 decided the failure, and step 4 was the last chance."""
    given: dict[str, Any] = {
        "status": "repairable",
        "text": "Correcting step 2 turns failure into success in 8 of 8 replays.",
        "origin": 2,
        "origin_agent": "researcher",
        "point_of_no_return": 4,
        "point_agent": "planner",
        "curve": (
            rate(-1, 7, 8, 0.53, 0.98),
            rate(1, 6, 8, 0.41, 0.93),
            rate(2, 3, 8, 0.14, 0.69),
            rate(4, 0, 8, 0.0, 0.32),
        ),
        "contrasts": (
            contrast(
                1, source="resample", fix_text="", fix_successes=6, keep_successes=5
            ).model_copy(update={"e_value": 0.4, "effect": 0.125, "censored": 1}),
            contrast(),
        ),
        "likely": ((2, 0.94), (1, 0.04)),
        "refuted": (1,),
        "planned_contrasts": 3,
        "replays": 48,
        "live_calls": 1310,
        "cost_usd": 0.4242,
    }
    return Confirmation(**{**given, **more})


def conclude(store: Store, run: str, conclusion: Confirmation) -> None:
    """Store a conclusion about a run."""
    summary = run_summary(store, run)
    assert summary
    record_confirmation(store, plan_of(store, summary, ""), conclusion)
