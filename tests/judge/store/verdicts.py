"""Invented verdicts."""

from datetime import datetime, timedelta, timezone

from mast_trace_judge.verdict import (
    Candidate,
    CorrectedCall,
    CorrectedStep,
    DecisiveError,
    Evidence,
    ModeFinding,
    Place,
    Verdict,
)

NOON = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)


def finding(code="2.6", **more):
    """A finding with evidence in two steps."""
    return ModeFinding(
        **{
            "code": code,
            "probability": 0.9,
            "evidence": Evidence.MODEL,
            "reason": "the price differs",
            "steps": (3, 4),
            "span_ids": ("s3", "s4"),
            "quotes": ("181 EUR", 'a "quoted" line\nand another'),
            **more,
        }
    )


def verdict(number=1, *, version="v1", hours=0, **more):
    """A verdict with everything that one may hold."""
    candidates = (
        Candidate(step=3, agent="researcher", probability=0.7, rule="states 181", span_id="s3"),
        Candidate(step=4, agent="planner", probability=0.2, span_id="s4"),
    )
    decisive = DecisiveError(
        step=3,
        agent="researcher",
        probability=0.7,
        rule="states 181",
        reason="the sum rests on it",
        minimal_fix="say 118",
        span_id="s3",
        corrected=CorrectedStep(
            prompt=3,
            text="A room costs 118 EUR,\nas the tool says.",
            tool_calls=(CorrectedCall(name="book", arguments='{"price": 118}'),),
        ),
    )
    given = {
        "trace_id": f"{number:032x}",
        "fingerprint": "f1",
        "judge_version": version,
        "judged_at": NOON + timedelta(hours=hours),
        "method": "fused",
        "project": "shop",
        "service": "travel",
        "framework": "ag2",
        "name": "trip",
        "run_start": NOON - timedelta(minutes=2),
        "run_end": NOON - timedelta(minutes=1),
        "steps": 6,
        "outcome": "failure",
        "failure_probability": 0.9,
        "modes": (finding(), finding("1.3", evidence=Evidence.EXACT, quotes=())),
        "decisive": decisive,
        "candidates": candidates,
        "look_first": (
            Place(
                step=3,
                agent="researcher",
                basis="record",
                why="states 181",
                quotes=("118 EUR", "181 EUR"),
                span_id="s3",
                reaches_answer=True,
                right=3,
                cases=9,
            ),
            Place(step=4, agent="planner", basis="rule", why="fails", planted_cases=7),
        ),
        "model": "small-1",
        "calls": 4,
        "input_tokens": 3000,
        "output_tokens": 200,
        "cost_usd": 0.0042,
    }
    return Verdict(**{**given, **more})
