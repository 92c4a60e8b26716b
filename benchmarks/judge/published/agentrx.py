"""AgentRx: a second team's labels of Who&When's hand-crafted runs, with every failure and its step.

On the runs that both teams labelled, people agree exactly on the decisive step in about a third:
that is the ceiling for any judge on them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mast_trace.untrusted_json import read_json
from published.who_and_when import read_who_and_when

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from mast_trace_judge.study.labelled import LabelledRun

_LABELS = ("agentrx", "magentic_one_labels.json")


def read_agentrx(data: Path) -> list[LabelledRun]:
    """Read the hand-crafted runs that AgentRx labelled, with its labels instead of Who&When's."""
    path = data.joinpath(*_LABELS)
    records: list[Mapping[str, Any]] = read_json(path.read_text(encoding="utf-8"))
    by_question = {str(record["trajectory_id"]): record for record in records}
    return [
        _relabelled(run, by_question[run.group])
        for run in read_who_and_when(data, "hand-crafted")
        if run.group in by_question
    ]


def _relabelled(run: LabelledRun, record: Mapping[str, Any]) -> LabelledRun:
    """Put AgentRx's root cause and marked steps in; its steps count from 1."""
    failures = {str(failure["failure_id"]): failure for failure in record["failures"]}
    root = failures.get(str(record["root_cause"]["failure_id"]))
    last = len(run.trajectory.steps)
    steps = {key: int(failure["step_number"]) - 1 for key, failure in failures.items()}
    return replace(
        run,
        subset="agentrx",
        step=None if root is None else int(root["step_number"]) - 1,
        agent="" if root is None else str(root["failed_agent"]),
        marked=frozenset(step for step in steps.values() if 0 <= step < last),
    )
