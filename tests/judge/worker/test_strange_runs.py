"""No run, whatever its values are, keeps the worker from judging another one in the same cycle.

The runs are written into the table itself, as a stock exporter does: no receiver has refused or corrected them.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from judge.worker.stock_runs import (
    FIRST,
    LAST,
    LONGEST,
    NOW,
    TIMES,
    StockSpan,
    stock_run,
    write_stock,
)
from judge.worker.stored_runs import invoice_run, write

from mast_trace_judge.patterns.indexing import PatternIndexer

if TYPE_CHECKING:
    from collections.abc import Callable

    from mast_trace_collector.storage import Store
    from mast_trace_judge.worker import Worker

HEALTHY = f"{1:032x}"
STRANGE = f"{2:032x}"
FINISHED = {"run_idle_seconds": 0.001}


def status_of(store: Store, trace: str) -> list[str]:
    found = store.query(
        "SELECT toString(Status) AS S FROM mast_verdicts FINAL WHERE TraceId = {trace:String}",
        {"trace": trace},
    )
    return [row["S"] for row in found]


async def test_runs_at_any_time_are_judged_beside_others(
    store: Store, worker: Callable[..., Worker]
) -> None:
    strange = [f"{number:032x}" for number in range(2, len(TIMES) + 2)]
    for trace, times in zip(strange, TIMES.values(), strict=True):
        write_stock(store, stock_run(trace, *times))
    write(store, invoice_run(1))
    one = worker(**FINISHED)
    assert await one.drain_once() == len(TIMES) + 1
    assert [status_of(store, trace) for trace in (HEALTHY, *strange)] == [["ok"]] * (len(TIMES) + 1)
    rows = store.query(
        "SELECT TraceId, `Hits.Tool` AS Tools FROM mast_pattern_runs FINAL ORDER BY TraceId"
    )
    # The texts of all were found, however far their times are apart.
    found = [(row["TraceId"], "add" in row["Tools"]) for row in rows]
    assert found == [(HEALTHY, False), *((trace, True) for trace in strange)]
    assert (one.status.problem, one.status.beside, one.status.held_off) == ("", "", 0)
    assert await one.drain_once() == 0
    assert PatternIndexer(store).index(at_all=True) == 0


@pytest.mark.parametrize("project", ["", b"\xff\xfe", "it's \0"])
async def test_runs_of_any_name_are_judged_at_most_twice(
    store: Store, worker: Callable[..., Worker], project: str | bytes
) -> None:
    """No parameter finds an id that is no UTF-8, and so its verdict is not found either: it must not be given for ever."""
    names = ["", "not hex", "nul\0", "it's \\ %s {x:String}", "é" * 500, "A" * 32]
    for trace in (*names, b"\xff\xfe", b"\xc3"):
        write_stock(store, stock_run(trace, project=project))
    write(store, invoice_run(1))
    one = worker(**FINISHED)
    await one.drain_once()
    assert status_of(store, HEALTHY) == ["ok"]
    await one.drain_once()
    assert [await one.drain_once() for _ in range(3)] == [0, 0, 0]
    assert (one.status.problem, one.status.beside) == ("", "")


async def test_runs_that_a_collector_accepted_at_such_times_are_judged_beside_others(
    store: Store, worker: Callable[..., Worker]
) -> None:
    ends = [(LAST, LONGEST), (LAST + 1, LONGEST), (LONGEST, 0), (0, LONGEST)]
    for number, (start, end) in enumerate(ends, 2):
        strange = invoice_run(number)
        for span in strange._spans:
            span.start_time_unix_nano, span.end_time_unix_nano = start, end
        write(store, strange)
    write(store, invoice_run(1))
    one = worker(**FINISHED)
    await one.drain_once()
    assert status_of(store, HEALTHY) == ["ok"]
    assert await one.drain_once() == 0
    assert (one.status.problem, one.status.beside, one.status.held_off) == ("", "", 0)


def nested(depth: int) -> str:
    return '{"a":' * depth + "1" + "}" * depth


_TEXTS = [
    "",
    "\0",
    "NaN",
    "-inf",
    "1e999",
    "💥" * 300,
    nested(1500),
    "[" * 3000,
    "9" * 400,
    "\ud7ff",
]
texts = st.one_of(st.text(max_size=20), st.binary(max_size=20), st.sampled_from(_TEXTS))
_NAMES = """gen_ai.operation.name gen_ai.agent.name gen_ai.tool.name gen_ai.usage.input_tokens
gen_ai.tool.call.arguments gen_ai.tool.call.result gen_ai.output.messages gen_ai.input.messages
mast.message.content mast.message.sender mast.message.recipients mast.input.message_ids mast.run.outcome
mast.framework input.value output.value"""
names = st.one_of(texts, st.sampled_from(_NAMES.split()))
values = st.one_of(
    texts,
    st.sampled_from(
        ["execute_tool", "send_message", "chat", "invoke_agent", "invoke_workflow", "failure"]
    ),
    st.recursive(
        st.one_of(st.none(), st.integers(), st.text(max_size=5), st.floats()),
        lambda inner: st.one_of(
            st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)
        ),
        max_leaves=8,
    ).map(json.dumps),
)
attributes = st.dictionaries(names, values, max_size=8)
moments = st.one_of(
    st.sampled_from([FIRST, FIRST + 1, -1, 0, 1, NOW, LAST - 1, LAST]), st.integers(FIRST, LAST)
)
durations = st.one_of(st.sampled_from([0, 1, LAST, LAST + 1, LONGEST]), st.integers(0, LONGEST))
ids = st.one_of(st.sampled_from(["", "aa", "bb", "cc"]), texts)
strange_spans = st.builds(
    StockSpan,
    trace=st.just(STRANGE),
    span=ids,
    parent=ids,
    start=moments,
    duration=durations,
    name=texts,
    attributes=attributes,
    resource=st.dictionaries(
        st.sampled_from(["service.name", "service.version"]), texts, max_size=2
    ),
    status=st.sampled_from(["Unset", "Ok", "Error", "?", b"\xff"]),
    message=texts,
)


@settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
    ],
)
@given(spans=st.lists(strange_spans, min_size=1, max_size=8))
def test_a_run_of_any_kind_delays_no_other(
    store: Store, worker: Callable[..., Worker], spans: list[StockSpan]
) -> None:
    """The other run is judged in its cycle and in the patterns; the strange one has a verdict or none is due."""
    judged = ("mast_verdicts", "mast_findings", "mast_pattern_runs")
    for table in ("otel_traces", "mast_run_states", *judged):
        store.command(f"TRUNCATE TABLE {table}")
    write_stock(store, spans)
    write(store, invoice_run(1))
    one = worker(**FINISHED)
    asyncio.run(one.drain_once())
    assert status_of(store, HEALTHY) == ["ok"]
    assert asyncio.run(one.drain_once()) == 0
    assert len(status_of(store, STRANGE)) == 1
    found = store.query("SELECT TraceId FROM mast_pattern_runs FINAL ORDER BY TraceId")
    assert [row["TraceId"] for row in found] == [HEALTHY, STRANGE]
    assert (one.status.problem, one.status.beside, one.status.held_off) == ("", "", 0)
