"""Records that tests of several parts invent: contrasts of replays, and labelled failures."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from judge.builders import RunBuilder

from mast_trace.trajectory import to_dict
from mast_trace_judge.confirmation import Contrast
from mast_trace_judge.study.labelled import FORMAT, write_set

if TYPE_CHECKING:
    from pathlib import Path

    from mast_trace.trajectory import Trajectory


def contrast(step: int = 1, fix: str = "say 118", **more: Any) -> Contrast:
    """Return a person's fix of a step, which has helped in seven of eight pairs."""
    counts = {"fix_successes": 7, "keep_successes": 0, "pairs": 8, "effect": 0.875}
    given = {"agent": "planner", "source": "person", "e_value": 90.0, "threshold": 60.0, **counts}
    return Contrast(**{**given, "step": step, "fix_text": fix, **more})


def failure_set(folder: Path, runs: int) -> Path:
    """Write a set as `mast-trace dataset build` does, with failures that replays have proved; return its folder."""
    rows = []
    for number in range(runs):
        run, guilty = _failure(number)
        row = {
            "format": FORMAT,
            "id": run.trace_id,
            "source": "replay",
            "group": f"q{number // 2}",
            **dict.fromkeys(("operator", "mode", "system", "split", "uncertain"), ""),
            "step": guilty,
            "agent": f"Worker{guilty}_Expert",
            "framework": run.framework,
            "decisive": True,
            "failed": True,
            "held_out_operator": False,
            "missed_by": [],
            **dict.fromkeys(("success_after", "point_of_no_return", "e_value", "confirmation")),
            "run": to_dict(run),
        }
        rows.append(row)
    write_set(folder, rows)
    return folder


def labelled_export(file: Path, runs: int) -> Path:
    """Write failures as `mast-trace export` does, whose decisive steps a person has named; return the file."""
    lines = []
    for number in range(runs):
        run, guilty = _failure(number)
        label = {"annotator": "ada", "outcome": "failure", "decisive_step": guilty}
        shape = {"trace_id": run.trace_id, "trajectory": to_dict(run), "verdict": None}
        labels = [{"trace_id": run.trace_id, **label, "decisive_agent": f"Worker{guilty}_Expert"}]
        lines.append(json.dumps({**shape, "labels": labels}) + "\n")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(lines), encoding="utf-8")
    return file


def _failure(number: int) -> tuple[Trajectory, int]:
    """Return a failed run, two of each question, and its decisive step."""
    guilty = 1 + number % 3
    run = RunBuilder(f"Question {number // 2}?", outcome="failure", framework="ag2")
    run.says("Lead_Expert", f"Task {number}")
    for place in range(1, 5):
        text = "Sorry, an error." if place == guilty else f"Part {place} is done."
        run.says(f"Worker{place}_Expert", text)
    return replace(run.build(), trace_id=f"{number + 1:032x}"), guilty
