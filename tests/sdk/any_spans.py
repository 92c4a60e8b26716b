"""Strategies of Hypothesis: spans with any attribute of any value under any operation."""

from __future__ import annotations

import json

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from mast_trace import semconv
from mast_trace.trajectory import SpanRecord

NAMES = [value for name, value in vars(semconv).items() if isinstance(value, str) and "." in value]
OPERATIONS = ["invoke_workflow", "invoke_agent", "send_message", "execute_tool", "chat", "", "x"]
IDS = st.sampled_from(["a", "b", "c", "d", "", "0000000000000000"])
PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
SHAPES = st.recursive(
    PLAIN,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["role", "parts", "type", "content", "id", "name", "arguments", "x"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
VALUES = (
    PLAIN
    | st.lists(st.text(max_size=3), max_size=3).map(tuple)
    | SHAPES
    | SHAPES.map(json.dumps)
    | SHAPES.map(lambda shape: json.dumps([shape])[:-1])
    | st.sampled_from(["a", "tool_call", "[" * 100_000, '[{"id": {"a": 1}, "parts": [{}]}]'])
)
# Times as far as a store holds them, and before the epoch.
SPANS = st.builds(
    SpanRecord,
    trace_id=st.just("t"),
    span_id=IDS,
    parent_span_id=IDS,
    name=st.text(max_size=3),
    start=st.integers(-(2**62), 2**62),
    end=st.integers(-(2**62), 2**62),
    attributes=st.builds(
        lambda operation, rest: {semconv.OPERATION_NAME: operation, **rest},
        st.sampled_from(OPERATIONS) | VALUES,
        st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=3), VALUES, max_size=8),
    ),
    status=st.sampled_from(["Unset", "Ok", "Error", ""]),
    status_message=st.text(max_size=3),
    scope=st.sampled_from(["mast_trace.x", "", "openinference"]),
)
FUZZ = settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
