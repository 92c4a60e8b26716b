"""Calls that CrewAI's history once held in quotes are read as the model's server received them."""

from __future__ import annotations

import pytest

from mast_trace.messages import Message, ToolCall
from mast_trace.replay.canonical import canonical_request
from mast_trace.replay.recording import with_plain_calls


def canonical(name: str, arguments: object) -> tuple:
    """Return the canonical form of a request that holds one earlier call."""
    message = Message("", tool_calls=(ToolCall(name, arguments, "call 1"),))
    return canonical_request(with_plain_calls([message]))


@pytest.mark.parametrize("arguments", ['{"item": "kettle"}', '{"item": "l\'eau\\n"}', "{}"])
def test_a_quoted_call_is_the_call(arguments: str) -> None:
    assert canonical(repr("price"), repr(arguments)) == canonical("price", arguments)


@pytest.mark.parametrize("arguments", ['{"item": "kettle"}', "'x'", {"item": "'x'"}, None])
def test_other_calls_stay(arguments: object) -> None:
    """Arguments in quotes may be what the model wrote; a name in quotes cannot."""
    message = Message("", tool_calls=(ToolCall("price", arguments, "call 1"),))
    assert list(with_plain_calls([message])) == [message]


@pytest.mark.parametrize("name", ["'a' + 'b'", "'", "'a", "'\\x'", "__import__('os')"])
def test_nothing_else_is_evaluated(name: str) -> None:
    (read,) = with_plain_calls([Message("", tool_calls=(ToolCall(name, "{}"),))])
    assert read.tool_calls[0].name == name
