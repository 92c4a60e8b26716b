"""A run of which most texts were not recorded is unscored, and says so."""

from __future__ import annotations

import asyncio

import pytest
from judge.llm.scripted_judge import run_of

from mast_trace.trajectory import Step, StepKind, Trajectory
from mast_trace_judge.config import JudgeConfig
from mast_trace_judge.judge import Judge


@pytest.mark.parametrize(
    ("texts", "status"),
    [(("", "", "done"), "unscored"), (("", "found it", "done"), "ok"), (("", "", ""), "unscored")],
)
def test_a_run_without_texts_is_not_called_clean(texts: tuple[str, ...], status: str) -> None:
    steps = tuple(
        Step(index, StepKind.MESSAGE, "clerk", text, role="assistant")
        for index, text in enumerate(texts)
    )
    trajectory = Trajectory("a" * 32, steps)
    verdict = asyncio.run(Judge(JudgeConfig()).judge(run_of(trajectory), trajectory))
    assert verdict.status == status
    assert ("texts were not recorded" in verdict.status_reason) == (status == "unscored")
