"""Tool calls that earlier versions recorded in CrewAI's history of messages.

CrewAI's event replaced the parts of a call by their ``repr``: the call of ``price`` with ``{"item": "pot"}`` was
recorded as ``'price'`` with ``'{"item": "pot"}'``. No model's provider allows a name with quotes.
"""

from __future__ import annotations

import ast
import dataclasses
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mast_trace.messages import Message, ToolCall

# One literal and nothing else: stored texts are not to be parsed as larger expressions.
_LITERAL: Final = re.compile(r"""'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*\"""")


def with_plain_calls(messages: Iterable[Message]) -> Iterator[Message]:
    """Yield messages, their quoted tool calls as the model's server received them."""
    for message in messages:
        calls = tuple(_plain(call) for call in message.tool_calls)
        yield message if calls == message.tool_calls else _with(message, calls)


def _with(message: Message, calls: tuple[ToolCall, ...]) -> Message:
    return dataclasses.replace(message, tool_calls=calls)


def _plain(call: ToolCall) -> ToolCall:
    name = _unquoted(call.name)
    if name == call.name:
        return call
    arguments = call.arguments
    if isinstance(arguments, str):
        arguments = _unquoted(arguments)
    return dataclasses.replace(call, name=name, arguments=arguments)


def _unquoted(text: str) -> str:
    if not _LITERAL.fullmatch(text):
        return text
    try:
        return str(ast.literal_eval(text))
    except (ValueError, SyntaxError):
        return text
