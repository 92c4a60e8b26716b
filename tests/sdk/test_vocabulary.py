"""Other tools' spellings and stores without types, read as what they stand for."""

from __future__ import annotations

import math
from typing import Any

import pytest
from marked_spans import MARKED

from mast_trace.trajectory import vocabulary


def test_the_first_name_that_says_something_wins() -> None:
    """Ours before others'; an empty text says nothing, a zero does."""
    theirs = {"gen_ai.usage.prompt_tokens": 7}
    assert vocabulary.read({**theirs, "gen_ai.usage.input_tokens": 3}, "input_tokens") == 3
    assert vocabulary.read({**theirs, "gen_ai.usage.input_tokens": 0}, "input_tokens") == 0
    for nothing in (None, ""):
        attributes = {**theirs, "gen_ai.usage.input_tokens": nothing}
        assert vocabulary.read(attributes, "input_tokens") == 7
    assert vocabulary.read({"other": 1}, "input_tokens") is None


@pytest.mark.parametrize(
    ("attributes", "operation"),
    [
        ({}, ""),
        ({"openinference.span.kind": "LLM"}, "chat"),
        ({"traceloop.span.kind": "workflow"}, "invoke_workflow"),
        ({"gen_ai.operation.name": "embeddings"}, "embeddings"),
        ({"gen_ai.operation.name": 5}, ""),
    ],
)
def test_an_operation_in_our_words(attributes: dict[str, Any], operation: str) -> None:
    assert vocabulary.operation(attributes) == operation


@pytest.mark.parametrize("emitter", MARKED)
def test_a_span_is_what_its_marks_say(emitter: str) -> None:
    attributes, operation = MARKED[emitter]
    assert vocabulary.operation(attributes) == operation


def as_text(value: Any) -> str:
    return vocabulary.text({"a": value}, "a")


@pytest.mark.parametrize(
    ("read", "value", "found"),
    [
        (as_text, None, ""),
        (as_text, 0, "0"),
        (as_text, "x", "x"),
        (vocabulary.strings, None, ()),
        (vocabulary.strings, "", ()),
        (vocabulary.strings, "[]", ()),
        (vocabulary.strings, '["a", 1]', ("a", "1")),
        (vocabulary.strings, ["a", 1], ("a", "1")),
        (vocabulary.strings, ("a",), ("a",)),
        (vocabulary.strings, "plain", ("plain",)),
        (vocabulary.strings, '{"a": 1}', ('{"a": 1}',)),
        (vocabulary.strings, '["cut', ('["cut',)),
        (vocabulary.strings, 0, ("0",)),
        (vocabulary.loaded, '{"a": 1}', {"a": 1}),
        (vocabulary.loaded, "{", None),
        (vocabulary.loaded, "[" * 200_000, None),
        (vocabulary.loaded, "[" * 400 + "]" * 400, None),
        (vocabulary.loaded, "9" * 5000, None),
        (vocabulary.loaded, {"a": 1}, {"a": 1}),
        (vocabulary.loaded, 3, 3),
        (
            vocabulary.loaded,
            r'["\ud83d", {"\uDE00": "\ud83d\ude00 \u00e9"}]',
            ["?", {"?": "\U0001f600 \u00e9"}],
        ),
        *((vocabulary.integer, value, 12) for value in (12, "12")),
        *((vocabulary.integer, value, None) for value in (None, "x", "", math.inf, [])),
    ],
)
def test_a_value_of_any_store(read: Any, value: Any, found: Any) -> None:
    """Cut JSON, and more brackets than a reader can hold, are none; half characters are none either."""
    assert read(value) == found
    assert vocabulary.text({}, "a") == ""
