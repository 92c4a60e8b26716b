"""Invented runs, and results of their replays."""

from datetime import datetime, timedelta, timezone

from mast_trace_collector.storage.runs import RunSummary
from mast_trace_judge.arms import ArmResult, ReplayArm

NOON = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)


def run(number=1, **more):
    """A failed run as the store summarises it."""
    given = {
        "project": "shop",
        "trace_id": f"{number:032x}",
        "fingerprint": "f1",
        "name": "trip",
        "service": "travel",
        "framework": "ag2",
        "conversation_id": "",
        "start": NOON - timedelta(minutes=2),
        "end": NOON - timedelta(minutes=1),
        "last_seen": NOON,
        "has_root": True,
        "spans": 9,
        "errors": 0,
        "input_tokens": 0,
        "output_tokens": 0,
        "agents": (),
        "models": (),
        "outcome": "failure",
        "outcome_reason": "",
        "termination_reason": "",
    }
    return RunSummary(**{**given, **more})


def result(**more):
    """A replay that ended with an outcome."""
    given = {
        "arm": ReplayArm("keep", 3),
        "status": "ok",
        "success": True,
        "reason": "",
        "phase": "screening",
        "served_calls": 3,
        "served_tools": 1,
        "live_calls": 2,
        "live_tools": 0,
        "input_tokens": 500,
        "output_tokens": 60,
        "cost_usd": 0.0125,
        "models": ("small-1",),
        "calls_hash": "c1",
        "answer": "118 EUR",
        "started_at": NOON + timedelta(microseconds=123456),
        "seconds": 0.75,
    }
    return ArmResult(**{**given, **more})
