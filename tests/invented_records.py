"""Records that tests of several parts invent: contrasts of replays, and labelled logs of failures."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from mast_trace_judge.confirmation import Contrast

if TYPE_CHECKING:
    from pathlib import Path


def contrast(step: int = 1, fix: str = "say 118", **more: Any) -> Contrast:
    """Return a person's fix of a step, which has helped in seven of eight pairs."""
    counts = {"fix_successes": 7, "keep_successes": 0, "pairs": 8, "effect": 0.875}
    given = {"agent": "planner", "source": "person", "e_value": 90.0, "threshold": 60.0, **counts}
    return Contrast(**{**given, "step": step, "fix_text": fix, **more})


def failure_logs(parent: Path, runs: int) -> Path:
    """Write logs in the format of Who&When, two of each question, and return their parent."""
    folder = parent / "who-and-when" / "algorithm-generated"
    folder.mkdir(parents=True)
    for number in range(runs):
        guilty = 1 + number % 3
        history = [{"name": "Lead_Expert", "role": "user", "content": f"Task {number}"}]
        history += [
            {
                "name": f"Worker{place}_Expert",
                "role": "assistant",
                "content": "Sorry, an error." if place == guilty else f"Part {place} is done.",
            }
            for place in range(1, 5)
        ]
        record = {
            "question": f"Question {number}?",
            "question_ID": f"q{number // 2}",
            "history": history,
            "mistake_agent": f"Worker{guilty}_Expert",
            "mistake_step": str(guilty),
        }
        (folder / f"{number}.json").write_text(json.dumps(record), encoding="utf-8")
    return parent
