"""Messages are values: made like any dataclass, and compared by their fields."""

from __future__ import annotations

import dataclasses
import inspect
import pickle

from mast_trace.messages import Message, ToolCall

CALL = ToolCall("read", {"page": 1}, "call_1")
FULL = Message("Reading.", "user", "alice", "m1", (CALL,), "call_0")


def test_the_initialiser_takes_every_field_with_its_default() -> None:
    """It is written by hand, so that a new field has to be added to it, too."""
    parameters = inspect.signature(Message).parameters.values()
    missing = {inspect.Parameter.empty: dataclasses.MISSING}
    taken = [(each.name, missing.get(each.default, each.default)) for each in parameters]
    assert taken == [(each.name, each.default) for each in dataclasses.fields(Message)]
    assert dataclasses.astuple(FULL)[:4] == ("Reading.", "user", "alice", "m1")
    assert (FULL.tool_calls, FULL.tool_call_id) == ((CALL,), "call_0")
    assert set(vars(FULL)) == {each.name for each in dataclasses.fields(Message)}


def test_equal_fields_make_equal_messages() -> None:
    other = Message("Writing.", "user", "alice", "m1", (CALL,), "call_0")
    assert other != FULL
    assert dataclasses.replace(other, content="Reading.") == FULL
    assert pickle.loads(pickle.dumps(FULL)) == FULL  # our own


def test_a_copy_with_another_text_has_another_key() -> None:
    assert dataclasses.replace(FULL, content="Writing.").key != FULL.key
