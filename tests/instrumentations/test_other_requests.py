"""A message that a planted fault has changed in transit is changed in every form of request, and nothing else is."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mast_trace.messages import Message, ToolCall
from mast_trace.replay.tape import Exchange
from mast_trace_instrumentations.replay.chat_completions import encode
from mast_trace_instrumentations.replay.live_requests import with_other_messages

SENT, RECEIVED = "There are 12 pieces.", "There are 21 pieces."
CHANGE = {
    "system": "",
    "oldest": 0,
    "latest": 0,
    "restart": False,
    "sent": SENT,
    "received": RECEIVED,
}
CALL = {"id": "c1", "type": "function", "function": {"name": "say", "arguments": SENT}}


def block(text: str, kind: str = "text") -> dict[str, str]:
    return {"type": kind, "text": text}


@pytest.mark.parametrize(
    ("key", "before", "after"),
    [
        ("messages", SENT, RECEIVED),
        ("messages", f"We need 40. {SENT} How many?", f"We need 40. {RECEIVED} How many?"),
        ("messages", [block("Look."), block(SENT)], [block("Look."), block(RECEIVED)]),
        ("input", [block(SENT, "input_text")], [block(RECEIVED, "input_text")]),
    ],
)
@pytest.mark.parametrize("place", ["task", "later"])
def test_the_receiver_is_shown_another_text(key: str, before: Any, after: Any, place: str) -> None:
    def request(content: Any) -> dict[str, Any]:
        task = [] if place == "task" else [{"role": "user", "content": "Order what is missing."}]
        own = [{"role": "assistant", "content": "I wait."}]
        return {"model": "m", key: [*task, {"role": "user", "content": content}, *own]}

    given = request(before)
    assert with_other_messages(given, CHANGE) == request(after)
    assert given == request(before)


def test_prompts_calls_and_results_stay() -> None:
    items = [
        {"role": "system", "content": SENT},
        {"role": "user", "content": "Go on."},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": SENT},
        "no item",
    ]
    assert with_other_messages({"messages": items}, CHANGE) == {"messages": items}
    assert with_other_messages({"input": SENT}, CHANGE) == {"input": SENT}


def test_a_recorded_answer_is_given_with_every_field() -> None:
    """In one piece, and as the events of a stream."""
    said = Message("Hi.", tool_calls=(ToolCall("f", {"a": 1}, "c1"), ToolCall("g")))
    calls = [
        {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}
        for id_, name, arguments in (("c1", "f", '{"a": 1}'), ("call_replayed_7_1", "g", "{}"))
    ]
    base = {"id": "chatcmpl-replayed-7", "created": 0, "model": "m", "object": "chat.completion"}
    message = {"role": "assistant", "content": "Hi.", "tool_calls": calls}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    whole = encode({"model": "m"}, Exchange("a", (), said), said, 7)
    assert json.loads(whole.body) == {**base, "choices": [choice]}
    streamed = encode({"model": "m", "stream": True}, Exchange("a", (), said), said, 7)
    *events, end, nothing = streamed.body.split("\n\n")
    assert (end, nothing, streamed.stream, whole.stream) == ("data: [DONE]", "", True, False)
    deltas = [{"role": "assistant", "content": ""}, {"content": "Hi."}]
    deltas += [{"tool_calls": [{"index": n, **call}]} for n, call in enumerate(calls)]
    ends = [None] * len(deltas) + ["tool_calls"]
    assert [json.loads(each.removeprefix("data: ")) for each in events] == [
        {
            **base,
            "object": "chat.completion.chunk",
            "choices": [{"index": 0, "delta": delta, "finish_reason": end}],
        }
        for delta, end in zip([*deltas, {}], ends, strict=True)
    ]
