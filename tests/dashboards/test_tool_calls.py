"""Queries count the tool calls that a trajectory has as steps, whatever lies in each other."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pytest
from nested_calls import BESIDE, ONE_CALL, SEVERAL_CALLS
from stores import new_store

from mast_trace.trajectory import read_trajectory
from mast_trace_collector.storage.run_spans import RunSpans
from mast_trace_dashboards.queries import QUERIES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mast_trace_collector.storage import Store

T0 = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)
CASES = {**ONE_CALL, **SEVERAL_CALLS, **{name: spans for name, (_, spans) in BESIDE.items()}}
TRACES = {name: f"{number:032x}" for number, name in enumerate(CASES, 1)}
RANGE = {"since": T0 - timedelta(days=1), "until": T0 + timedelta(days=1)}


def rows(name: str) -> list[dict[str, Any]]:
    made = []
    for n, given in enumerate(CASES[name]):
        attributes = {"gen_ai.operation.name": "execute_tool", **given}
        later = attributes.pop("apart", None)
        made.append(
            {
                "Timestamp": T0 + timedelta(milliseconds=n, seconds=later or 0),
                "TraceId": TRACES[name],
                "SpanId": f"{n + 1:016x}",
                "ParentSpanId": f"{n:016x}" if n and later is None else "",
                "SpanName": f"span {n}",
                "SpanKind": "Internal",
                "ServiceName": name,
                "ScopeName": attributes.pop("scope", "agents"),
                "SpanAttributes": attributes,
                "Duration": 1_000_000_000 - 2_000_000 * n,
            }
        )
    return made


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Iterator[Store]:
    with new_store(tmp_path_factory.mktemp("store")) as made:
        # Each span comes twice, as after an answer that was lost.
        for _ in range(2):
            made.insert("otel_traces", [row for name in CASES for row in rows(name)])
        yield made


@pytest.mark.parametrize("name", CASES)
def test_a_call_counts_as_often_as_it_was_made(store: Store, name: str) -> None:
    spans = [span for page in RunSpans(store, TRACES[name]).read() for span in page]
    steps = [step for step in read_trajectory(spans).steps if step.kind.value == "tool"]
    counted = QUERIES["tool_errors"].run(store, **RANGE, services=[name])
    assert sum(row["Calls"] for row in counted) == len(steps)
    listed = QUERIES["run_spans"].run(store, run=TRACES[name])
    listed_calls = {row["SpanId"] for row in listed if row["Operation"] == "execute_tool"}
    assert listed_calls == {step.span_id for step in steps}


def test_all_calls_of_a_time_together(store: Store) -> None:
    counted = QUERIES["tool_errors"].run(store, **RANGE)
    beside = sum(count for count, _ in BESIDE.values())
    assert sum(row["Calls"] for row in counted) == len(ONE_CALL) + 2 * len(SEVERAL_CALLS) + beside
