"""LangChain's messages and a graph's states, read into the messages of the contract."""

from __future__ import annotations

import json
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langgraph.types import Command
from pydantic import BaseModel

from mast_trace.messages import Message, ToolCall
from mast_trace_instrumentations.langgraph.reading import (
    OUT_OF_STEPS,
    is_message,
    is_synthetic,
    leaves,
    messages_in,
    read,
    shorthand,
    text_of,
    update_text,
    written_shorthand,
)
from mast_trace_instrumentations.langgraph.routing import commanded_nodes
from mast_trace_instrumentations.langgraph.tool import record_result

pytestmark = pytest.mark.framework("langgraph")

HUMAN, AI = HumanMessage("ask"), AIMessage("answer")


@dataclass
class Plan:
    """A state as a data class."""

    goal: Any
    step: Any = None


class Model(BaseModel):
    """A state as a pydantic model."""

    goal: Any
    step: Any = None


class TestRead:
    """One message."""

    @pytest.mark.parametrize(
        ("message", "role"),
        [
            (HUMAN, "user"),
            (AI, "assistant"),
            (AIMessageChunk(content="x"), "assistant"),
            (SystemMessage("x"), "system"),
            (ToolMessage("x", tool_call_id="1"), "tool"),
            (FunctionMessage(content="x", name="f"), "tool"),
            (ChatMessage(content="x", role="critic"), "critic"),
        ],
    )
    def test_its_role_is_that_which_the_model_sees(self, message: Any, role: str) -> None:
        assert read(message).role == role

    def test_every_field(self) -> None:
        calls = [{"name": "look_up", "args": {"key": "x"}, "id": "1"}]
        broken = [{"name": None, "args": "{", "id": "2", "error": "no JSON"}]
        source = AIMessage(
            "text", name="writer", id="m1", tool_calls=calls, invalid_tool_calls=broken
        )
        assert read(source) == Message(
            "text",
            name="writer",
            id="m1",
            tool_calls=(ToolCall("look_up", {"key": "x"}, "1"), ToolCall("", "{", "2")),
        )
        assert read(AIMessage("", tool_calls=calls)).tool_calls == (
            ToolCall("look_up", {"key": "x"}, "1"),
        )
        result = ToolMessage("found", tool_call_id="1", name="look_up")
        assert read(result) == Message("found", "tool", name="look_up", tool_call_id="1")
        assert read(HUMAN).tool_calls == ()

    def test_calls_alone_that_are_no_json(self) -> None:
        broken = [{"name": "f", "args": "{", "id": "2", "error": None}]
        assert read(AIMessage("", invalid_tool_calls=broken)).tool_calls == (
            ToolCall("f", "{", "2"),
        )

    def test_blocks_are_joined_without_those_that_are_calls(self) -> None:
        image = {"type": "image", "url": "https://example.org/i.png"}
        kinds = ("tool_use", "tool_call", "function_call", "input_json_delta")
        calls = [{"type": kind, "text": "no"} for kind in kinds]
        text = text_of(["one ", {"type": "text", "text": "two "}, *calls, image])
        assert json.loads(text.removeprefix("one two ")) == image
        assert text_of("text") == "text"
        assert json.loads(text_of({"a": 1})) == {"a": 1}

    def test_what_the_framework_writes_in_an_agents_name(self) -> None:
        handed_back = AIMessage("x", response_metadata={"__is_handoff_back": True})
        assert is_synthetic(handed_back)
        assert is_synthetic(AIMessage(OUT_OF_STEPS))
        assert not is_synthetic(AI)
        bare = AIMessage("x")
        del bare.response_metadata
        assert not is_synthetic(bare)
        assert OUT_OF_STEPS == "Sorry, need more steps to process this request."


class TestIsMessage:
    """Values that count as one."""

    def test_by_its_class_alone(self) -> None:
        class BaseMessage:
            """A class of somebody else."""

        for _ in range(2):
            assert is_message(AI)
            assert not is_message(BaseMessage())
            assert not is_message(Document("text"))
            assert not is_message("text")
            assert not is_message({"role": "user", "content": "x"})


class TestMessagesIn:
    """The messages that a node is given."""

    def test_wherever_they_stand(self) -> None:
        both = [HUMAN, AI]
        for state in (
            both,
            tuple(both),
            {"messages": both},
            {"messages": tuple(both)},
            {"first": HUMAN, "n": 1, "more": [AI, "text"]},
            {"tool_call": {"name": "f"}, "state": {"messages": both}},
            Plan(both),
            Model(goal=HUMAN, step=[AI]),
        ):
            assert messages_in(state) == both, state
        assert messages_in(HUMAN) == [HUMAN]

    def test_where_there_are_none(self) -> None:
        for state in (None, "text", 7, {}, [], {"messages": ["text"]}, Plan("x"), object()):
            assert messages_in(state) == []
        assert messages_in({"tool_call": HUMAN}) == [HUMAN]
        assert messages_in({"state": HUMAN}) == [HUMAN]


class TestShorthand:
    """Values that a program hands over instead of messages."""

    def test_each_spelling(self) -> None:
        hello = Message("hello", "user")
        assert shorthand("hello") == [hello]
        assert shorthand(("human", "hello")) == [hello]
        assert shorthand({"role": "user", "content": "hello"}) == [hello]
        assert shorthand({"type": "human", "content": "hello"}) == [hello]
        assert shorthand(("critic", "no")) == [Message("no", "critic")]
        named = {"role": "ai", "content": [{"text": "x"}], "name": "writer", "id": "1"}
        assert shorthand(named) == [Message("x", "assistant", "writer", "1")]
        assert shorthand([("user", "hello"), HUMAN, "more"]) == [
            hello,
            Message("ask", "user"),
            Message("more", "user"),
        ]
        assert shorthand(("a", "b", "c")) == [Message(each, "user") for each in "abc"]

    def test_anything_else_is_none(self) -> None:
        for given in (None, 7, {"role": "user"}, {"content": "x"}, {}, (7, 8), [None]):
            assert shorthand(given) == []

    def test_what_a_node_writes_as_shorthand(self) -> None:
        pair, mapping = ("ai", "x"), {"role": "ai", "content": "x"}
        told = [Message("x", "assistant")]
        assert written_shorthand("messages", pair) == told
        assert written_shorthand("messages", [pair, mapping]) == told * 2
        assert written_shorthand("plan", {"type": "ai", "content": "x"}) == told
        assert written_shorthand("messages", "x") == [Message("x", "user")]

    def test_other_channels_hold_texts_and_pairs_of_their_own(self) -> None:
        for value in ("x", ("ai", "x"), [{"role": "ai", "content": "x"}, "x"], {"content": "x"}, 7):
            assert written_shorthand("plan", value) == []


class TestLeaves:
    """A state that holds no messages: its texts."""

    def test_each_text_once_in_order(self) -> None:
        state = {"a": ["one", "", "two"], "b": Plan("one", {"three"}), "c": 7, "d": Model(goal="x")}
        assert leaves(state) == [Message(text, "user") for text in ("one", "two", "three", "x")]
        assert leaves(None) == []

    def test_the_first_sixty_four(self) -> None:
        found = leaves([str(number) for number in range(100)])
        assert [message.content for message in found] == [str(number) for number in range(64)]

    def test_to_a_depth_of_six(self) -> None:
        state: Any = "deep"
        for _ in range(6):
            state = [state]
        assert leaves(state) == [Message("deep", "user")]
        assert leaves([state]) == []


class TestUpdateText:
    """Writes of a node that are no messages."""

    def test_its_one_text_alone(self) -> None:
        assert update_text({"plan": "buy"}) == "buy"
        assert update_text(
            {"plan": ["buy"], "empty": "", "none": None, "no": [], "set": set()}
        ) == ("buy")
        assert update_text({"empty": {}, "text": ""}) == ""
        assert update_text({}) == ""

    def test_more_than_one_as_json(self) -> None:
        for update in ({"a": "x", "b": "y"}, {"a": ["x", "y"]}, {"a": 0}, {"a": False}):
            assert json.loads(update_text(update)) == update

    def test_objects_of_the_program_are_read_or_named(self) -> None:
        update = {"a": Plan(1, Model(goal=2)), "b": object(), "c": {3}, "d": (None, 1.5, True)}
        assert json.loads(update_text(update)) == {
            "a": {"goal": 1, "step": {"goal": 2, "step": None}},
            "b": "<object>",
            "c": [3],
            "d": [None, 1.5, True],
        }

    def test_a_field_that_is_not_set_has_no_value(self) -> None:
        plan = Plan(1)
        del plan.goal
        assert json.loads(update_text({"plan": plan})) == {"plan": {"goal": None, "step": None}}

    def test_long_and_deep_ones_are_cut(self) -> None:
        deep: Any = "x"
        for _ in range(10):
            deep = [deep]
        told = json.loads(
            update_text({"a": list(range(300)), "b": dict.fromkeys(range(300)), "c": deep})
        )
        assert told["a"] == list(range(256))
        assert len(told["b"]) == 256
        assert told["c"] == [[[[["..."]]]]]


def test_the_second_of_several_is_read_as_well() -> None:
    """A call's own message among those of an output, and each target of a `Command`."""
    messages = [ToolMessage(text, tool_call_id=text) for text in ("first", "second")]
    span = SimpleNamespace(told=[])
    span.result = span.told.append
    record_result(span, messages, "second")
    assert span.told == ["second"]
    assert commanded_nodes(Command(goto=["ann", "ben"])) == ["ann", "ben"]
