"""Runs of any length and of the shapes that long ones have, as their spans are stored."""

from __future__ import annotations

import dataclasses
import json
import sys
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from mast_trace.content import content_hash
from mast_trace.trajectory import SpanRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import FrameType

TRACE = "a" * 32
START = 1_700_000_000 * 10**9
_MS = 1_000_000


def span(number: int, operation: str, parent: int, /, **attributes: Any) -> SpanRecord:
    """A span of ours, a millisecond after the one before it."""
    start = START + number * _MS
    values = {"gen_ai.operation.name": operation, "mast.framework": "ag2", **attributes}
    return SpanRecord(
        TRACE,
        f"{number:016x}",
        f"{parent:016x}" if parent else "",
        operation,
        start,
        start + _MS // 2,
        values,
        service="shop",
        scope="mast_trace.ag2",
    )


def root(spans: int) -> SpanRecord:
    made = span(1, "invoke_workflow", 0, **{"gen_ai.workflow.name": "long"})
    return dataclasses.replace(made, end=START + (spans + 2) * _MS)


def says(number: int, agent: str, text: str, *, parent: int = 1, to: str = "boss") -> SpanRecord:
    return span(
        number,
        "send_message",
        parent,
        **{
            "mast.message.sender": agent,
            "mast.message.recipients": json.dumps([to]),
            "mast.message.id": f"m{number}",
            "mast.message.content": text,
            "mast.message.content_hash": content_hash(text),
            "mast.message.role": "assistant",
        },
    )


def calls(
    number: int, agent: str, tool: str, query: Any, result: str, *, parent: int = 1
) -> SpanRecord:
    return span(
        number,
        "execute_tool",
        parent,
        **{
            "gen_ai.agent.name": agent,
            "gen_ai.tool.name": tool,
            "gen_ai.tool.call.id": f"c{number}",
            "gen_ai.tool.call.arguments": json.dumps({"q": query}),
            "gen_ai.tool.call.result": result,
            "mast.message.id": f"m{number}",
        },
    )


def thinks(
    number: int, agent: str, shown: Sequence[str], text: str, *, parent: int = 1
) -> SpanRecord:
    answer = {
        "role": "assistant",
        "id": f"m{number}",
        "parts": [{"type": "text", "content": text}] if text else [],
    }
    return span(
        number,
        "chat",
        parent,
        **{
            "gen_ai.agent.name": agent,
            "mast.message.id": f"m{number}",
            "mast.input.message_ids": json.dumps(list(shown)),
            "mast.input.message_roles": json.dumps(["user"] * len(shown)),
            "gen_ai.output.messages": json.dumps([answer]),
            "gen_ai.usage.input_tokens": "100",
            "gen_ai.usage.output_tokens": "20",
        },
    )


def turn(number: int, agent: str, shown: Sequence[str], *, parent: int = 1) -> SpanRecord:
    return span(
        number,
        "invoke_agent",
        parent,
        **{"gen_ai.agent.name": agent, "mast.input.message_ids": json.dumps(list(shown))},
    )


def sentence(number: int) -> str:
    """About two hundred characters that differ from span to span."""
    return (
        f"Item {number}: the invoice of page {number % 977} adds up to {number * 37 % 10007} EUR, "
        f"less than was ordered in week {number % 53}; supplier {number * 7919 % 100003} confirmed "
        "that it was delivered."
    )


def team(spans: int) -> list[SpanRecord]:
    """Turns of one agent: what it is shown slides, it calls a tool and reports."""
    made, ids, number = [root(spans)], [], 2
    while number + 4 <= spans:
        parent = number
        made.append(turn(number, "worker", ids[-20:]))
        made.append(thinks(number + 1, "worker", ids[-20:], sentence(number), parent=parent))
        made.append(calls(number + 2, "worker", "lookup", number, sentence(number), parent=parent))
        ids.append(f"m{number + 2}")
        made.append(thinks(number + 3, "worker", ids[-20:], "What is the price?", parent=parent))
        made.append(says(number + 4, "worker", sentence(number + 4), parent=parent))
        ids.append(f"m{number + 4}")
        number += 5
    return made


def many_agents(spans: int) -> list[SpanRecord]:
    """Half as many agents as spans, who write to each other, think and call tools."""
    made, ids, agents = [root(spans)], [], max(2, spans // 2)
    for number in range(2, spans + 1):
        agent, text = f"agent-{number % agents}", sentence(number)
        if number % 3 == 0:
            made.append(says(number, agent, text, to=f"agent-{(number + 1) % agents}"))
        elif number % 3 == 1:
            made.append(thinks(number, agent, ids[-5:], text))
        else:
            made.append(calls(number, agent, f"lookup{number % 7}", number, text))
        ids.append(f"m{number}")
    return made


def one_call_again(spans: int) -> list[SpanRecord]:
    """Repeat one call, with the same result, to the end."""
    return [root(spans)] + [
        calls(number, "worker", "search", "same", "the result is 118")
        for number in range(2, spans + 1)
    ]


def deep(spans: int) -> list[SpanRecord]:
    """Each span inside of the one before, turns and messages."""
    made = [root(spans)]
    for number in range(2, spans + 1):
        agent = f"a{number % 7}"
        if number % 2:
            made.append(turn(number, agent, [], parent=number - 1))
        else:
            made.append(says(number, agent, sentence(number), parent=number - 1))
    return made


def deep_of_two_tools(spans: int) -> list[SpanRecord]:
    """The nested calls, with every other span of another tool."""
    return [_theirs(each) if place % 2 else each for place, each in enumerate(deep(spans))]


def beside(spans: int) -> list[SpanRecord]:
    """Model calls of two tools, a tree of each, all at the same time."""
    made = [root(spans)]
    for number in range(2, spans + 1):
        each = thinks(number, "worker", [], sentence(number))
        tokens = {"gen_ai.usage.input_tokens": str(number)}
        each = dataclasses.replace(
            each, start=START, end=START + 10**9, attributes={**each.attributes, **tokens}
        )
        made.append(_theirs(each) if number % 2 else each)
    return made


def quoted(spans: int) -> list[SpanRecord]:
    """Two agents of whom one is shown what the other writes only inside of other messages."""
    made, ids = [root(spans)], ["m2"]
    for number in range(2, spans + 1):
        if number % 2:
            made.append(thinks(number, "reader", ids[-10:], sentence(number - 1)))
            ids.append(f"m{number}")
        else:
            made.append(says(number, "writer", sentence(number), to="reader"))
    return made


def at_once(spans: int) -> list[SpanRecord]:
    """Messages that all begin and end in one nanosecond."""
    made = [
        says(number, f"a{number % 3}", sentence(number), parent=1) for number in range(2, spans + 1)
    ]
    return [root(spans), *(dataclasses.replace(each, start=START, end=START) for each in made)]


def _theirs(made: SpanRecord) -> SpanRecord:
    attributes = {k: v for k, v in made.attributes.items() if k != "mast.framework"}
    return dataclasses.replace(made, scope="other.tool", attributes=attributes)


SHAPES: dict[str, Callable[[int], list[SpanRecord]]] = {
    made.__name__: made
    for made in (
        team,
        many_agents,
        one_call_again,
        deep,
        deep_of_two_tools,
        beside,
        quoted,
        at_once,
    )
}


def operations(act: Callable[[], object]) -> int:
    """Count the instructions of the interpreter that a call takes: the same on every machine."""
    count = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal count
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode":
            count += 1
        return trace

    before = sys.gettrace()
    # Python 3.12 looks for it when tracing begins, and otherwise counts none the first time.
    sys._getframe().f_trace_opcodes = True
    sys.settrace(trace)
    try:
        act()
    finally:
        sys.settrace(before)
    return count


def stored(spans: Sequence[SpanRecord], trace_id: str, begin: int) -> list[dict[str, Any]]:
    """Rows of ``otel_traces``: the run under another id, at another time in nanoseconds."""
    return [
        {
            "TraceId": trace_id,
            "SpanId": each.span_id,
            "ParentSpanId": each.parent_span_id,
            "SpanName": each.name,
            "Timestamp": datetime.fromtimestamp((begin + each.start - START) / 1e9, timezone.utc),
            "Duration": each.end - each.start,
            "ServiceName": each.service,
            "ScopeName": each.scope,
            "StatusCode": each.status,
            "StatusMessage": each.status_message,
            "SpanAttributes": dict(each.attributes),
        }
        for each in spans
    ]
