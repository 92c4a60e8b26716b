"""AutoGen's messages, read field by field into the messages of the contract."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from mast_trace.messages import Message, ToolCall
from mast_trace_instrumentations.autogen.reading import (
    as_dict,
    calls_of,
    members,
    name_of,
    read,
    shown,
    text_of,
)

pytestmark = pytest.mark.framework("autogen")

CALL = {"id": "c1", "type": "function", "function": {"name": "look_up", "arguments": "{}"}}


class Dumped:
    """A client's model."""

    def __init__(self, **fields: Any) -> None:
        self._fields = fields

    def model_dump(self) -> dict[str, Any]:
        return self._fields


class TestRead:
    """One message."""

    def test_a_text_alone(self) -> None:
        assert read("text") == Message("text")
        assert read("text", "user") == Message("text", "user")
        assert read(None) == Message("")
        assert read(None, "user") == Message("", "user")

    def test_every_field(self) -> None:
        asked = {"content": "text", "role": "user", "name": "writer", "tool_calls": [CALL]}
        read_calls = (ToolCall("look_up", "{}", "c1"),)
        assert read(asked) == Message("text", "user", "writer", tool_calls=read_calls)
        assert read(asked, "system").role == "system"
        answered = {"content": "found", "role": "tool", "tool_call_id": "c1"}
        assert read(answered) == Message("found", "tool", tool_call_id="c1")
        assert read({"content": "x"}) == Message("x")
        assert shown([asked, answered]) == [read(asked), read(answered)]

    def test_a_clients_model_and_anything_else(self) -> None:
        assert read(Dumped(content="text", role="user")) == Message("text", "user")
        assert read(7) == Message("7")
        own = {"content": "x"}
        assert as_dict(own) is own
        assert as_dict(SimpleNamespace(model_dump="no method"))["content"].startswith("namespace")


class TestText:
    """A message's content."""

    def test_parts_stand_below_each_other(self) -> None:
        image = {"type": "image_url", "image_url": {"url": "https://example.org/i.png"}}
        first, second, third, fourth = text_of(
            [{"type": "text", "text": "one"}, {"text": 2}, image, "four"]
        ).split("\n")
        assert (first, second, fourth) == ("one", "2", "four")
        assert json.loads(third) == image

    def test_one_that_is_filled_in_later_is_named(self) -> None:
        def template(context: dict[str, Any]) -> str:
            return ""

        class Unnamed:
            def __call__(self) -> None: ...

        assert text_of(template) == "<template>"
        assert text_of(Unnamed()) == "<callable>"
        assert text_of("text") == "text"


class TestCalls:
    """The tool calls of a message."""

    def test_of_both_shapes(self) -> None:
        older = {"name": "write", "arguments": "{}"}
        shape = {"id": "m1", "tool_calls": [CALL, Dumped(**CALL)], "function_call": older}
        asked = ToolCall("look_up", "{}", "c1")
        assert calls_of(shape) == (asked, asked, ToolCall("write", "{}", "m1"))
        assert calls_of({"tool_calls": None, "function_call": None}) == ()
        assert calls_of({}) == ()

    def test_one_that_says_nothing_is_kept(self) -> None:
        assert calls_of({"tool_calls": [{"id": "c1"}]}) == (ToolCall("None", None, "c1"),)


class TestAgents:
    """Speakers and recipients."""

    def test_the_name(self) -> None:
        assert name_of(SimpleNamespace(name="writer")) == "writer"
        assert name_of(SimpleNamespace(name=None)) == ""
        assert name_of(object()) == ""

    def test_the_members_of_a_group(self) -> None:
        agents = [object(), object()]
        manager = SimpleNamespace(groupchat=SimpleNamespace(agents=agents))
        assert members(manager) == agents
        assert members(manager) is not agents
        assert members(SimpleNamespace(groupchat=SimpleNamespace(agents=None))) is None
        assert members(SimpleNamespace(groupchat=None)) is None
        assert members(object()) is None
