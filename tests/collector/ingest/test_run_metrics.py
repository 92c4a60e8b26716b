"""Numbers of runs that the database computes for Prometheus."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mast_trace_collector.collector import RunMetrics

if TYPE_CHECKING:
    from mast_trace_collector.storage import Store

# Project, run, seconds since its last span, its root.
ROWS = [
    ("a", "orphan", 61, 0),
    ("b", "orphan", 86_300, 0),
    ("a", "younger", 30, 0),
    ("a", "of the day before", 86_500, 0),
    ("a", "with a root", 61, 0),
    ("a", "with a root", 61, 2),
    ("a", "that goes on", 61, 0),
    ("a", "that goes on", 30, 0),
]


def test_runs_without_a_root_are_counted_once_they_are_idle_and_for_a_day(store: Store) -> None:
    for project, run, age, root in ROWS:
        store.command(
            "INSERT INTO mast_run_states (Project, TraceId, LastSeen, Root) SELECT "
            f"'{project}', '{run}', now64(3) - toIntervalSecond({age}), {root}"
        )
    metrics = RunMetrics(store, idle=60.0)
    metrics._read()
    (family,) = metrics.collect()
    assert [sample.value for sample in family.samples] == [2.0]
