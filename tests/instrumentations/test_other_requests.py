"""A message that a planted fault has changed in transit is changed in every form of request, and nothing else is."""

from __future__ import annotations

from typing import Any

import pytest

from mast_trace_instrumentations.replay.other_requests import with_other_messages

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
