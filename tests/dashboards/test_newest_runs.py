"""The newest runs that match are found in growing stretches of time, and are those of all time."""

from __future__ import annotations

import random
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pytest
from stores import new_store

from mast_trace_collector.storage import Store
from mast_trace_dashboards.queries import QUERIES
from mast_trace_dashboards.queries.runs import run_key
from mast_trace_dashboards.run_names import newest_runs, resolve_run

if TYPE_CHECKING:
    from collections.abc import Iterator

T0 = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)
AGENTS = ("ann", "ben", "cem", "dan")
OUTCOMES = ("success", "failure", "")


def run(draw: random.Random, number: int) -> list[dict[str, Any]]:
    """A run somewhere in a hundred days, denser towards the end; some begin long before their last spans."""
    begin = T0 - timedelta(days=100 * draw.random() ** 3)
    lasts = draw.choice([timedelta(seconds=1), timedelta(hours=5), timedelta(days=3)])
    spans = [
        (begin, "", {"gen_ai.workflow.name": "job", "mast.run.outcome": draw.choice(OUTCOMES)}),
        (begin + lasts, "1" * 16, {"gen_ai.agent.name": draw.choice(AGENTS)}),
    ]
    return [
        {
            "Timestamp": at,
            "TraceId": f"{number:032x}",
            "SpanId": f"{place + 1:016x}",
            "ParentSpanId": parent,
            "SpanName": "span",
            "ServiceName": f"service {number % 3}",
            "Duration": 1_000_000,
            "SpanAttributes": {
                "gen_ai.operation.name": "invoke_agent" if parent else "invoke_workflow",
                **given,
            },
        }
        for place, (at, parent, given) in enumerate(spans)
    ]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    draw = random.Random(5)
    with new_store(tmp_path_factory.mktemp("newest")) as opened:
        assert newest_runs(opened, limit=5, agents=["ann"]) == []
        runs = [run(draw, number) for number in range(300)]
        # The spans of a run come in two batches, so that it has two states.
        for place in range(2):
            opened.insert("otel_traces", [spans[place] for spans in runs])
        yield opened


def filters(draw: random.Random) -> dict[str, Any]:
    given: dict[str, Any] = {}
    if draw.random() < 0.7:
        given["agents"] = draw.sample(AGENTS, draw.randint(1, 2))
    if draw.random() < 0.5:
        given["outcomes"] = [draw.choice(["success", "failure", "unknown"])]
    if draw.random() < 0.5:
        given["services"] = [f"service {draw.randrange(4)}"]
    if draw.random() < 0.3:
        given["since"] = T0 - timedelta(days=draw.randrange(1, 120))
    if draw.random() < 0.3:
        given["until"] = T0 - timedelta(days=draw.randrange(-2, 90))
    return given


def test_pages_are_those_of_all_time(store: Store) -> None:
    draw = random.Random(6)
    for _ in range(6):
        given, limit = filters(draw), draw.choice([1, 5, 40])
        before: dict[str, Any] = {}
        for _ in range(3):
            page = newest_runs(store, limit=limit, **given, **before)
            assert page == QUERIES["runs"].run(store, limit=limit, **given, **before), given
            if len(page) < limit:
                break
            before = {"before": page[-1]["StartNs"], "before_run": run_key(page[-1])}


def test_a_frequent_filter_reads_a_stretch(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    original = Store.query

    def query(self: Store, sql: str, params: Any = None, **more: Any) -> Any:
        asked.append(params)
        return original(self, sql, params, **more)

    monkeypatch.setattr(Store, "query", query)
    assert len(newest_runs(store, limit=5, agents=["ann"])) == 5
    assert asked[-1]["since"] > T0 - timedelta(days=9)
    asked.clear()
    assert newest_runs(store, limit=5, agents=["nobody"]) == []
    assert asked[-1]["since"] < T0 - timedelta(days=1000)
    asked.clear()
    newest_runs(store, limit=5)
    assert len(asked) == 1


def test_pages_tell_runs_of_one_id_in_two_projects_apart(store: Store) -> None:
    """They begin together, as where one file was imported into both."""
    twins = run(random.Random(7), 900)[:1] * 2
    owned = [
        {**span, "Timestamp": T0 + timedelta(days=1), "ResourceAttributes": {"mast.project": name}}
        for span, name in zip(twins, "ab", strict=True)
    ]
    store.insert("otel_traces", owned)
    seen: list[str] = []
    before: dict[str, Any] = {}
    for _ in range(3):
        (row,) = newest_runs(store, limit=1, **before)
        seen.append(row["Project"])
        before = {"before": row["StartNs"], "before_run": run_key(row)}
    assert seen == ["b", "a", ""]
    pages = [QUERIES["runs_sorted"].run(store, limit=1, offset=number) for number in range(2)]
    assert [row["Project"] for (row,) in pages] == ["b", "a"]


def test_a_clock_that_is_ahead_keeps_no_run_at_the_top(store: Store) -> None:
    """A run stands where it arrived if it says that it starts later; an imported one where it started."""
    draw = random.Random(8)
    ahead = (timedelta(hours=1), timedelta(days=18_000), timedelta(0), timedelta(days=-30))
    for number, late in enumerate(ahead, 1000):
        at = datetime.now(timezone.utc) + late
        root, said = run(draw, number)
        said["SpanAttributes"]["gen_ai.agent.name"] = "eva"
        store.insert("otel_traces", [{**each, "Timestamp": at} for each in (root, said)])
    first, second, present, imported = (f"{number:032x}" for number in range(1000, 1004))
    assert resolve_run(store, "last") == present
    expected = [present, second, first, imported]
    given: dict[str, Any]
    for given in ({}, {"agents": ["eva"]}):
        seen: list[str] = []
        before: dict[str, Any] = {}
        for _ in expected:
            (row,) = newest_runs(store, limit=1, **given, **before)
            seen.append(row["TraceId"])
            before = {"before": row["StartNs"], "before_run": run_key(row)}
        assert seen == expected
        assert [row["TraceId"] for row in newest_runs(store, limit=4, **given)] == expected
    oldest = QUERIES["runs_sorted"].run(store, sort="started", ascending=1, agents=["eva"])
    assert [row["TraceId"] for row in oldest] == expected[::-1]
