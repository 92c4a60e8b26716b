"""Spans of one tool call that lie in each other count once; a tool that calls a tool makes two calls."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from nested_calls import BESIDE, ONE_CALL, PARIS, SEVERAL_CALLS, TURN, call, request

from mast_trace.trajectory import SpanRecord, Step, read_trajectory


def read(*rows: tuple[str, str, dict[str, Any]], scope: str = "agents") -> tuple[Step, ...]:
    """The steps of spans given as id, parent and attributes; a scope other than this as "scope"."""
    clock = itertools.count(1)
    spans = []
    for identity, parent, given in rows:
        attributes = {"gen_ai.operation.name": "execute_tool", **given}
        of, status = attributes.pop("scope", scope), attributes.pop("status", "Unset")
        start = next(clock) + 2000 * attributes.pop("apart", 0)
        spans.append(
            SpanRecord("t", identity, parent, identity, start, start + 1000 - 2 * (start % 2000), attributes, status,
                       "broken" if status == "Error" else "", scope=of)
        )  # fmt: skip
    return read_trajectory(spans).steps


def nested(spans: list[dict[str, Any]]) -> tuple[Step, ...]:
    rows = [
        (f"s{n}", f"s{n - 1}" if n and "apart" not in given else "", given)
        for n, given in enumerate(spans)
    ]
    return read(*rows)


@pytest.mark.parametrize("name", ONE_CALL)
def test_spans_of_one_call(name: str) -> None:
    (step,) = nested(ONE_CALL[name])
    assert step.span_id == "s0"


@pytest.mark.parametrize("name", SEVERAL_CALLS)
def test_spans_of_several_calls(name: str) -> None:
    spans = SEVERAL_CALLS[name]
    tools = [given for given in spans if "gen_ai.operation.name" not in given]
    assert len([step for step in nested(spans) if step.kind.value == "tool"]) == len(tools) == 2


@pytest.mark.parametrize("name", BESIDE)
def test_spans_of_two_trees(name: str) -> None:
    count, spans = BESIDE[name]
    assert len([step for step in nested(spans) if step.kind.value == "tool"]) == count


def test_what_an_inner_span_alone_says_is_kept() -> None:
    (step,) = nested([call(None, id="c1"), request(arguments=PARIS), request(result="2.1 million")])
    assert (step.tool, step.call_id) == ("look", "c1")
    assert (json.loads(step.arguments), json.loads(step.text)) == (PARIS, "2.1 million")


def test_an_error_of_the_protocol_is_the_call_s_unless_a_later_attempt_went_well() -> None:
    (failed,) = nested([call(), request(status="Error")])
    assert failed.error == "broken"
    (mended,) = read(
        ("framework", "", call()),
        ("first", "framework", request(status="Error")),
        ("sender", "framework", {"gen_ai.operation.name": "x"}),
    )
    assert mended.error == "broken"
    spans = [
        SpanRecord("t", "f", "", "f", 0, 100, {"gen_ai.operation.name": "execute_tool", **call()}),
        SpanRecord("t", "1", "f", "1", 1, 20, {"gen_ai.operation.name": "execute_tool", **request()}, "Error"),
        SpanRecord("t", "2", "f", "2", 30, 90, {"gen_ai.operation.name": "execute_tool", **request()}),
    ]  # fmt: skip
    (step,) = read_trajectory(spans).steps
    assert step.error is None


def test_calls_beside_each_other_all_count() -> None:
    rows = [("turn", "", TURN)]
    for n in range(3):
        rows += [(f"f{n}", "turn", call(arguments=PARIS)), (f"c{n}", f"f{n}", request())]
    assert [step.span_id for step in read(*rows)] == ["f0", "f1", "f2"]


def test_what_lies_in_a_span_that_is_left_out_lies_in_the_call() -> None:
    below = {"gen_ai.operation.name": "send_message", "mast.message.content": "I look."}
    steps = read(("f", "", call()), ("c", "f", request()), ("m", "c", below))
    assert [(step.span_id, step.parent_span_id) for step in steps] == [("f", ""), ("m", "f")]


def test_spans_that_lie_in_each_other_end() -> None:
    """A sender may name any parent."""
    steps = read(("a", "b", request()), ("b", "a", request()))
    assert len(steps) <= 2


def test_a_client_without_an_operation_calls_a_tool_all_the_same() -> None:
    (step,) = read(("c", "", {**request(), "gen_ai.operation.name": ""}))
    assert (step.kind.value, step.tool) == ("tool", "look")
    assert read(("l", "", {"mcp.method.name": "tools/list", "gen_ai.operation.name": ""})) == ()


LOOK_UPS = {
    "retrieval": ("gen_ai.retrieval.query.text", "gen_ai.retrieval.documents"),
    "search_memory": ("gen_ai.memory.query.text", "gen_ai.memory.records"),
}


@pytest.mark.parametrize("operation", LOOK_UPS)
def test_a_look_up_by_itself_is_a_step(operation: str) -> None:
    asked, found = LOOK_UPS[operation]
    given = {"gen_ai.operation.name": operation, asked: "weather", found: '[{"id": "d1"}]'}
    (step,) = read(("s", "", given))
    assert (step.tool, step.arguments, step.text) == (operation, "weather", '[{"id": "d1"}]')
