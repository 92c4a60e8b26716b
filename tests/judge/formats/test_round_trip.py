"""The spans that are made of an exported run read as the same run."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from judge.formats.span_records import records_of

from mast_trace.messages import Message, ToolCall
from mast_trace.trajectory import (
    Invocation,
    Step,
    StepKind,
    Trajectory,
    read_trajectory,
    to_dict,
    trajectory_from_dict,
)
from mast_trace_judge.transfer.formats.kinds import StoredRun
from mast_trace_judge.transfer.formats.otlp import OTLP
from mast_trace_judge.transfer.spans import to_spans

if TYPE_CHECKING:
    from typing import Any

RECORDED = Path(__file__).parents[2] / "foreign" / "recorded"


def again(trajectory: Trajectory) -> tuple[Any, Any]:
    """Return a run as an export writes it, before and after it was imported."""
    written = json.dumps(to_dict(trajectory))
    run = StoredRun(trajectory_from_dict(json.loads(written)))
    read = read_trajectory(records_of([to_spans(run)]))
    return plain(json.loads(written)), plain(to_dict(read))


def plain(run: Any) -> Any:
    """Return a run as JSON types."""
    return json.loads(json.dumps(run))


@pytest.mark.parametrize("path", sorted(RECORDED.glob("*.json")), ids=lambda path: path.stem)
def test_a_run_of_any_framework_stays_as_it_is(path: Path) -> None:
    """Steps, turns, texts, times and totals."""
    requests = OTLP.read(json.loads(path.read_text("utf-8")), "")
    before, after = again(read_trajectory(records_of(requests)))  # type: ignore[arg-type]
    # Spans that are no part of a trajectory, such as a server's own, begin before it and end after it.
    assert {**after, **whole(before)} == before
    assert before["start"] <= after["start"] <= after["end"] <= before["end"]


def whole(run: Any) -> dict[str, Any]:
    """Return the times at which all parts of a trace began and ended."""
    return {"start": run["start"], "end": run["end"]}


def test_what_seldom_stands_in_a_run_stays_too() -> None:
    """A failed tool, an answer to a message, what a model only asked for, and how the run ended."""
    shared = {"parent_span_id": "b" * 16, "start": 5, "end": 6}
    asked = '[{"name": "count", "arguments": "{}"}]'
    steps = (
        Step(
            0,
            StepKind.MESSAGE,
            "a",
            "",
            "1" * 16,
            message_id="m1",
            content_hash="h1",
            synthetic=True,
            **shared,
        ),
        Step(
            1,
            StepKind.TOOL,
            "b",
            "no file",
            "2" * 16,
            tool="read",
            arguments='{"x": 1}',
            requested_by="b",
            call_id="c1",
            error="no file",
            **shared,
        ),
        Step(
            2,
            StepKind.MODEL,
            "c",
            "",
            "3" * 16,
            arguments=asked,
            message_id="m3",
            content_hash="h3",
            **shared,
        ),
        Step(
            3,
            StepKind.MESSAGE,
            "c",
            "done",
            "4" * 16,
            role="assistant",
            recipients=("a", "b"),
            in_reply_to="m1",
            message_id="m2",
            content_hash="h2",
            handoff_to="a",
            arguments='[{"name": "f", "arguments": 1}]',
            **shared,
        ),
    )
    trajectory = Trajectory(
        trace_id="a" * 32,
        steps=steps,
        invocations=(
            Invocation("model", "c", "3" * 16, **shared, input_ids=("p",), output_id="m3"),
        ),
        texts={
            "m1": Message("", id="m1", name="a"),
            "m2": Message("done", id="m2", name="c", tool_calls=(ToolCall("f", 1),)),
            "m3": Message("", id="m3", tool_calls=(ToolCall("count", "{}"),)),
            "p": Message("Be brief.", role="system", id="p"),
            "t": Message("12", role="tool", id="t", tool_call_id="c9"),
        },
        name="job",
        service="shop",
        framework="crewai",
        conversation_id="talk",
        task="count",
        outcome="failure",
        outcome_reason="wrong",
        expected="354 EUR",
        termination_reason="max_turns",
        open_items=("pens", "ink"),
        error="stopped",
        start=1,
        end=9,
    )
    before, after = again(trajectory)
    before["texts"]["task"] = {"content": "count", "role": "user", "id": "task"}
    assert after == before


@pytest.mark.parametrize("ends", [(3, 9), (9, 3)])
def test_the_longest_of_several_top_spans_stands_for_the_run(ends: tuple[int, int]) -> None:
    """Readers take it for the run: on a shorter one the name and the end would be lost."""
    steps = tuple(
        Step(number, StepKind.TOOL, "a", "4", f"{number + 1:016x}", start=1, end=end, tool=tool)
        for number, (end, tool) in enumerate(zip(ends, ("add", "count"), strict=True))
    )
    run = Trajectory("a" * 32, steps, name="job", conversation_id="talk", start=1, end=9)
    before, after = again(replace(run, outcome="failure", open_items=("pens",)))
    assert {**after, "steps": before["steps"]} == before


def test_a_run_without_an_id_is_refused() -> None:
    with pytest.raises(ValueError, match="a span has no trace id"):
        to_spans(StoredRun(Trajectory(trace_id="", steps=())))


def test_what_a_replay_needs_stays() -> None:
    """Branches by their paths, although the spans that made these are gone; extras; marks of altered texts."""
    calls = tuple(
        Invocation(
            "model",
            "clerk",
            f"{number:016x}",
            "a" * 16,
            number,
            number + 1,
            ("q",),
            ("user",),
            output_id=f"m{number}",
            output_text="Yes.",
            branch=f"/work#{number}/clerk#0",
            extra='{"message": {"refusal": "No."}}',
            redacted=("gen_ai.input.messages",),
            cut=("gen_ai.output.messages",),
        )
        for number in (1, 5)
    )
    step = Step(
        0,
        StepKind.TOOL,
        "clerk",
        "4",
        "c" * 16,
        "a" * 16,
        6,
        7,
        tool="add",
        branch="/work#5/clerk#0",
        redacted=("gen_ai.tool.call.result",),
        cut=("gen_ai.tool.call.arguments",),
    )
    texts = {"q": Message("Well?", role="user")}
    run = Trajectory("b" * 32, (step,), calls, texts, redacted=("mast.human.inputs",))
    shape = json.loads(json.dumps(to_dict(run)))
    back = read_trajectory(records_of([to_spans(StoredRun(trajectory_from_dict(shape)))]))
    assert [call.branch for call in back.invocations] == [call.branch for call in calls]
    assert [call.extra for call in back.invocations] == [call.extra for call in calls]
    (tool,) = [each for each in back.steps if each.tool]
    assert tool.branch == step.branch
    assert {(call.redacted, call.cut) for call in back.invocations} == {
        (("gen_ai.input.messages",), ("gen_ai.output.messages",))
    }
    assert (tool.redacted, tool.cut) == (step.redacted, step.cut)
    assert (back.redacted, back.cut) == (run.redacted, ())
