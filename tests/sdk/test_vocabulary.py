"""Other tools' spellings and stores without types, read as what they stand for."""

from __future__ import annotations

import math
from typing import Any

import pytest

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


@pytest.mark.parametrize(
    ("attributes", "text"), [({}, ""), ({"a": None}, ""), ({"a": 0}, "0"), ({"a": "x"}, "x")]
)
def test_an_attribute_as_text(attributes: dict[str, Any], text: str) -> None:
    assert vocabulary.text(attributes, "a") == text


@pytest.mark.parametrize(
    ("value", "strings"),
    [
        (None, ()),
        ("", ()),
        ("[]", ()),
        ('["a", 1]', ("a", "1")),
        (["a", 1], ("a", "1")),
        (("a",), ("a",)),
        ("plain", ("plain",)),
        ('{"a": 1}', ('{"a": 1}',)),
        ('["cut', ('["cut',)),
        (0, ("0",)),
    ],
)
def test_an_array_of_strings(value: Any, strings: tuple[str, ...]) -> None:
    assert vocabulary.strings(value) == strings


@pytest.mark.parametrize(
    ("value", "loaded"),
    [
        ('{"a": 1}', {"a": 1}),
        ("{", None),
        ("[" * 200_000, None),
        ("[" * 400 + "]" * 400, None),
        ("9" * 5000, None),
        ({"a": 1}, {"a": 1}),
        (3, 3),
        (r'["\ud83d", {"\uDE00": "\ud83d\ude00 \u00e9"}]', ["?", {"?": "\U0001f600 \u00e9"}]),
    ],
)
def test_json_text(value: Any, loaded: Any) -> None:
    """Cut text, and more brackets than a reader can hold, are none; half characters are none either."""
    assert vocabulary.loaded(value) == loaded


@pytest.mark.parametrize(
    ("value", "number"),
    [(12, 12), ("12", 12), (None, None), ("x", None), ("", None), (math.inf, None), ([], None)],
)
def test_a_whole_number(value: Any, number: int | None) -> None:
    assert vocabulary.integer(value) == number
