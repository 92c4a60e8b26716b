"""The inputs of model calls: as the model's server received them, and as the spans hold them.

Both are spelled as one flat list of items a call, which is the same for all frameworks and for both
interfaces of the scripted server: ``(role, text)``, ``("call", id, name, arguments)`` and
``("result", id, text)``. A call or a result that is lost, doubled, renamed or under another id
differs. An answer's text stands before its calls, as in every message that has both, and an empty
system prompt, which some clients send, is none.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from scripted_llm import messages_of

from mast_trace import semconv

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from recorded_spans import RecordedSpans

    from mast_trace.messages import Message

Item = tuple[Any, ...]
CALL, RESULT = "call", "result"


def check_inputs(
    recorded: RecordedSpans,
    requests: Sequence[Mapping[str, Any]],
    *,
    joined_by: str = "",
    in_order: bool = True,
) -> None:
    """Each request is the input of one ``chat`` span, as it is rebuilt and as it is written out.

    Args:
        recorded: the spans; those that hold all messages in full are read for themselves, too.
        requests: the bodies that the server received.
        joined_by: the separator that the framework's instrumentation puts between the parts of one text.
        in_order: whether the calls were made one after the other.
    """
    theirs = [_text_first(_received(request, joined_by)) for request in requests]
    _compare("rebuilt", _rebuilt(recorded), theirs, in_order=in_order)
    if recorded.instrumentor.telemetry.content.full:
        _compare("written", _written(recorded), theirs, in_order=in_order)


def tools_asked_for(requests: Sequence[Mapping[str, Any]]) -> set[str]:
    """The names of the tool calls that stand in the histories: a test without any tests nothing."""
    return {item[2] for request in requests for item in _received(request, "") if item[0] == CALL}


def _compare(how: str, ours: list[list[Item]], theirs: list[list[Item]], *, in_order: bool) -> None:
    if not in_order:
        ours, theirs = sorted(ours, key=repr), sorted(theirs, key=repr)
    assert len(ours) == len(theirs), f"{len(ours)} inputs of {len(theirs)} requests"
    for number, (own, received) in enumerate(zip(ours, theirs, strict=True)):
        assert own == received, f"request {number}:\n{how} {own}\nreceived {received}"


def _text_first(items: Iterator[Item]) -> list[Item]:
    """Put the text of each answer before the calls in front of it."""
    ordered: list[Item] = []
    for item in items:
        place = len(ordered)
        while item[0] == "assistant" and place and ordered[place - 1][0] == CALL:
            place -= 1
        ordered.insert(place, item)
    return ordered


def _rebuilt(recorded: RecordedSpans) -> list[list[Item]]:
    """Return the inputs that `Trajectory.seen_by` rebuilds from the spans."""
    return [
        _text_first(item for message in run.seen_by(call) for item in _of_message(message))
        for run in recorded.trajectories()
        for call in run.invocations
        if call.kind == "model"
    ]


def _written(recorded: RecordedSpans) -> list[list[Item]]:
    """Return ``gen_ai.input.messages`` of each ``chat`` span."""
    return [
        _text_first(item for shape in json.loads(text) for item in _of_parts(shape))
        for span in recorded.named(semconv.CHAT)
        for text in [str(span.attributes[semconv.INPUT_MESSAGES])]
    ]


def _received(request: Mapping[str, Any], joined_by: str) -> Iterator[Item]:
    instructions = request.get("instructions")
    if instructions:
        yield ("system", instructions)
    for message in messages_of(dict(request)):
        kind = message.get("type")
        if kind == "function_call":
            arguments = _parsed(message["arguments"])
            yield (CALL, message["call_id"], message["name"], arguments)
        elif kind == "function_call_output":
            yield (RESULT, message["call_id"], _flat(message["output"], joined_by))
        elif message["role"] == "tool":
            yield (RESULT, message["tool_call_id"], _flat(message["content"], joined_by))
        else:
            text = _flat(message.get("content"), joined_by)
            calls = message.get("tool_calls") or ()
            if text or not (calls or message["role"] == "system"):
                yield (message["role"], text)
            for call in calls:
                function = call["function"]
                yield (CALL, call["id"], function["name"], _parsed(function["arguments"]))


def _of_message(message: Message) -> Iterator[Item]:
    if message.role == "tool":
        yield (RESULT, message.tool_call_id, message.content)
        return
    if message.content or not message.tool_calls:
        yield (message.role, message.content)
    for call in message.tool_calls:
        yield (CALL, call.id, call.name, _parsed(call.arguments))


def _of_parts(shape: Mapping[str, Any]) -> Iterator[Item]:
    if not shape["parts"]:
        yield (shape["role"], "")
    for part in shape["parts"]:
        if part["type"] == "tool_call":
            yield (CALL, part["id"], part["name"], _parsed(part["arguments"]))
        elif part["type"] == "tool_call_response":
            yield (RESULT, part["id"], part["response"])
        else:
            yield (shape["role"], part["content"])


def _parsed(arguments: Any) -> Any:
    """Arguments as what they spell; they need not be JSON."""
    try:
        return json.loads(arguments)
    except (TypeError, ValueError):
        return arguments


def _flat(content: Any, joined_by: str) -> str:
    if isinstance(content, list):
        return joined_by.join(part["text"] for part in content)
    return content or ""
