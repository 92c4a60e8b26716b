"""A run of which most texts were not recorded is unscored, and says so."""

from __future__ import annotations

import asyncio

import pytest
from judge.llm.scripted_judge import run_of

from mast_trace import semconv
from mast_trace.trajectory import Step, StepKind, Trajectory
from mast_trace_judge.config import JudgeConfig
from mast_trace_judge.judge import Judge
from mast_trace_judge.transfer.spans import to_request


@pytest.mark.parametrize(
    ("texts", "status"),
    [
        (("", "", "done"), "unscored"),
        (("", "done"), "unscored"),
        (("", "found it", "done"), "ok"),
        (("", "", ""), "unscored"),
    ],
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


@pytest.mark.parametrize(("result", "status"), [("", "unscored"), ("12 in stock", "ok")])
def test_arguments_without_any_result_are_no_record(result: str, status: str) -> None:
    texts = ("How many pens?", "", "", "Let us see.")
    steps = tuple(
        Step(index, StepKind.MESSAGE, "clerk", text, role="assistant")
        if text
        else Step(
            index, StepKind.TOOL, "clerk", result, tool="count", arguments=f'{{"a": {index}}}'
        )
        for index, text in enumerate(texts)
    )
    trajectory = Trajectory("a" * 32, steps)
    assert asyncio.run(Judge(JudgeConfig()).judge(run_of(trajectory), trajectory)).status == status


def test_an_imported_message_without_a_text_has_no_hash_of_one() -> None:
    steps = (Step(0, StepKind.MESSAGE, "clerk", "", role="assistant"),)
    request = to_request(Trajectory("", steps), name="run", start=1)
    (_, said) = request.resource_spans[0].scope_spans[0].spans
    assert semconv.MESSAGE_CONTENT_HASH not in {each.key for each in said.attributes}
