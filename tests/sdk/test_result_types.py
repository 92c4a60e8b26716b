"""Values of tool results are rebuilt from their texts and types, or are opaque."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mast_trace
from mast_trace import semconv
from mast_trace.content import as_text
from mast_trace.result_types import opaque_type, result_type, value_of
from mast_trace.testing import capture_spans

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(values)
def test_a_value_that_is_not_opaque_is_rebuilt(value: Any) -> None:
    """The value is equal and of the same types, at any depth; infinity alone is opaque."""
    text = as_text(value)
    kind = result_type(value, text)
    if opaque_type(kind):
        assert "Infinity" in repr(value) or "inf" in repr(value) or "\\ud" in ascii(value)
    else:
        assert repr(value_of(text, kind)) == repr(value)


class Level(IntEnum):
    """A class that is equal to a number."""

    LOW = 1


class Point(NamedTuple):
    """A class that is written as a list."""

    x: int


@pytest.mark.parametrize(
    "value",
    [
        (1, 2),
        {1, 2},
        b"x",
        {1: "a"},
        [(1, 2)],
        float("nan"),
        object(),
        Level.LOW,
        [Level.LOW],
        Point(1),
    ],
)
def test_other_types_are_opaque(value: Any) -> None:
    """JSON would give back another type."""
    assert opaque_type(result_type(value, as_text(value))) == type(value).__name__


def test_a_number_and_its_text_are_told_apart() -> None:
    assert result_type(750.0, "750.0") == "number"
    assert result_type("750.0", "750.0") == "string"
    assert result_type("750.0", "[redacted]") == "opaque str"


def test_content_that_is_not_captured_has_no_type() -> None:
    """A type is of use only beside a text."""

    @mast_trace.tool
    def look_up() -> float:
        return 1.0

    for capture, types in ((True, ["number"]), (False, [None])):
        with capture_spans([], capture_content=capture) as captured, mast_trace.run("shop"):
            look_up()
        spans = captured.named(semconv.EXECUTE_TOOL)
        assert [(span.attributes or {}).get(semconv.TOOL_RESULT_TYPE) for span in spans] == types
