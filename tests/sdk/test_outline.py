"""An outline tells the same steps as the whole run, from spans that are shown a few at a time."""

from __future__ import annotations

import dataclasses
import json
import random
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from any_spans import FUZZ, SPANS
from hypothesis import example, given
from hypothesis import strategies as st
from long_runs import SHAPES, calls, root, says, sentence, span, thinks, turn

from mast_trace.trajectory import SpanRecord, read_trajectory
from mast_trace.trajectory.copies import is_ours
from mast_trace.trajectory.outline import KINDS
from mast_trace.trajectory.outlining import OutlineBuilder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mast_trace.trajectory.outline import Outline


LACKING = [(), ("gen_ai.tool.call.arguments",), ("gen_ai.tool.call.result", "gen_ai.tool.name")]


def outlined(spans: Sequence[SpanRecord]) -> tuple[Outline, dict[str, SpanRecord]]:
    by_id = {each.span_id: each for each in spans}
    builder = OutlineBuilder(foreign=not all(map(is_ours, spans)))
    given = list(by_id.values())
    for begin in range(0, len(given), 7):
        builder.add(given[begin : begin + 7])
    return builder.build(lambda ids, _: [by_id[each] for each in ids if each in by_id]), by_id


def assert_same(spans: Sequence[SpanRecord]) -> None:
    whole = read_trajectory(spans)
    outline, by_id = outlined(spans)

    def fetch(ids: Sequence[str], between: tuple[int, int] | None) -> list[SpanRecord]:
        if between is not None:
            assert all(between[0] <= by_id[each].start <= between[1] for each in ids)
        return [by_id[each] for each in reversed(ids)]

    steps = sorted(outline.steps(range(len(outline)), fetch), key=lambda step: step.index)
    assert tuple(steps) == whole.steps
    assert sorted(
        outline.compact().steps(range(len(outline)), fetch), key=lambda step: step.index
    ) == list(whole.steps)
    made = sorted(outline.invocations(list(by_id.values()), fetch), key=lambda call: call.span_id)
    assert made == sorted(whole.invocations, key=lambda call: call.span_id)
    assert outline.run == dataclasses.replace(whole, steps=(), invocations=(), texts={})
    assert outline.agents == whole.agents
    first: dict[object, int] = {}
    for step in whole.steps:
        n = step.index
        told = (outline.actor(n), KINDS[outline.kinds[n]], outline.starts[n], outline.ends[n])
        assert told == (step.agent, step.kind, step.start, step.end)
        assert bool(outline.failed[n]) == (step.error is not None)
        content = (step.kind, step.agent, step.tool, step.arguments, step.text)
        assert outline.repeats[n] == first.setdefault(content, n)
    assert outline.said == Counter((s.agent, to) for s in whole.steps for to in s.recipients)
    assert outline.handed == Counter((s.agent, s.handoff_to) for s in whole.steps if s.handoff_to)


@pytest.mark.parametrize("shape", SHAPES)
def test_long_runs_have_the_same_steps(shape: str) -> None:
    assert_same(SHAPES[shape](150))


@pytest.mark.parametrize("seed", range(60))
def test_any_run_has_the_same_steps(seed: int) -> None:
    """Spans of two tools, in any order: copies, answers that other spans hold, hand-offs, errors."""
    drawing = random.Random(seed)
    ours = drawing.choice([1.0, 0.6, 0.0])
    spans = [root(60)] if ours else []
    spans += [_altered(_any(drawing, number), drawing, ours) for number in range(2, 60)]
    drawing.shuffle(spans)
    assert_same(spans)


MARKED = {"gen_ai.request.model": "m", "gen_ai.usage.input_tokens": "3"}
"""The call of a model by its marks alone."""


@FUZZ
@given(st.lists(SPANS, max_size=8, unique_by=lambda each: each.span_id))
@example([SpanRecord("t", "b", "", "", 0, 0, MARKED, scope="mast_trace.x")])
def test_any_attributes_give_the_same_steps(spans: list[SpanRecord]) -> None:
    """Damaged spans of strangers; their turns and texts are looked at where a store keeps them."""
    outline, by_id = outlined(spans)
    whole = read_trajectory(spans)
    found = outline.steps(range(len(outline)), lambda ids, _: [by_id[each] for each in ids])
    assert tuple(sorted(found, key=lambda step: step.index)) == whole.steps
    assert outline.agents == whole.agents
    assert outline.run == dataclasses.replace(whole, steps=(), invocations=(), texts={})


def _any(drawing: random.Random, number: int) -> SpanRecord:
    agent, parent = drawing.choice(["a", "b", ""]), drawing.randrange(1, number)
    text = drawing.choice([sentence(1), sentence(2), sentence(3), "", "I go on."])
    kind = drawing.randrange(6)
    if kind == 0:
        return says(number, agent or "c", text, parent=parent)
    if kind in {1, 5}:
        made = calls(number, agent, "look", drawing.randrange(3), text, parent=parent)
        return made if kind == 1 else _requested(made, drawing)
    if kind == 2:
        made = turn(number, agent, [f"m{parent}"], parent=parent)
        return _with(made, **{"mast.message.id": f"m{parent}"})
    made = thinks(number, agent, [f"m{parent}"], text, parent=parent)
    if kind == 3:
        call = {"type": "tool_call", "id": f"c{parent}", "name": "look", "arguments": {}}
        answer = [{"role": "assistant", "id": f"m{number}", "parts": [call]}]
        return _with(made, **{"gen_ai.output.messages": json.dumps(answer)})
    if drawing.random() < 0.3:
        made = _without(made, "gen_ai.output.messages")
        return _with(made, **{"mast.message.id": f"m{parent}"})
    return made


def _requested(made: SpanRecord, drawing: random.Random) -> SpanRecord:
    """A request of the Model Context Protocol, which may be one of a call around it."""
    left = _without(made, "gen_ai.tool.call.id", *drawing.choice(LACKING))
    return _with(left, **{"mcp.method.name": "tools/call"})


def _altered(made: SpanRecord, drawing: random.Random, ours: float) -> SpanRecord:
    if drawing.random() < 0.1:
        made = _with(made, **{"gen_ai.agent.handoff.target.name": "b"})
    if drawing.random() < 0.1:
        made = dataclasses.replace(made, status="Error", status_message="broken")
    if drawing.random() < 0.2:
        made = dataclasses.replace(made, start=made.start - 5_000_000)
    if drawing.random() >= ours:
        made = dataclasses.replace(_without(made, "mast.framework"), scope="other")
    return made


def test_a_run_of_nothing_has_no_steps() -> None:
    assert_same([])
    assert_same([span(1, "something", 0)])


@pytest.mark.parametrize("operation", ["chat", "invoke_agent", "execute_tool", "send_message"])
def test_a_span_without_an_id_is_a_step_like_others(operation: str) -> None:
    """A collector takes such spans, though OpenTelemetry does not allow them."""
    attributes = {"gen_ai.operation.name": operation, "gen_ai.agent.name": "desk"}
    assert_same([root(9), SpanRecord("0" * 32, "", "", operation, 5, 6, attributes)])


def test_steps_of_one_moment_have_one_order() -> None:
    spans = SHAPES["at_once"](50)
    numbers = [step.span_id for step in read_trajectory(spans).steps]
    random.Random(1).shuffle(spans)
    assert [step.span_id for step in read_trajectory(spans).steps] == numbers


def _with(made: SpanRecord, **more: str) -> SpanRecord:
    return dataclasses.replace(made, attributes={**made.attributes, **more})


def _without(made: SpanRecord, *names: str) -> SpanRecord:
    kept = {key: value for key, value in made.attributes.items() if key not in names}
    return dataclasses.replace(made, attributes=kept)
