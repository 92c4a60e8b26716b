"""The database's Prometheus metrics: counters that never shrink, and an answer when it is away."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry
from verdict_rows import verdict_row

from mast_trace.taxonomy import FAILURE_MODES
from mast_trace_collector.storage import Store, migrate
from mast_trace_dashboards.alerts.metrics import JudgeMetrics

if TYPE_CHECKING:
    from pathlib import Path


_GROUP = ("service", "framework")
METRICS = {
    "mast_trace_runs_judged": _GROUP,
    "mast_trace_runs_with_mode": (*_GROUP, "category"),
    "mast_trace_runs_examined": (*_GROUP, "category"),
    "mast_trace_spike_evidence": ("kind", *_GROUP, "mode"),
    "mast_trace_new_patterns": (),
    "mast_trace_judge_oldest_waiting_seconds": (),
    "mast_trace_judge_failed_call_share": (),
    "mast_trace_judge_day_cost_usd": (),
    "mast_trace_runs_missing": (),
    "mast_trace_database_up": (),
}
"""The labels of each metric, where it has a value after a few verdicts."""


def served(store: Store, **options: Any) -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(JudgeMetrics(store, **options))
    return registry


def verdict(number: int, *, violates: bool) -> dict[str, Any]:
    return verdict_row(
        number,
        datetime.now(timezone.utc),
        ["1.3"] * violates,
        ServiceName="shop",
        Framework="ag2",
        Outcome="failure" if violates else "success",
        Examined=list(FAILURE_MODES),
    )


def test_counters_count_what_is_judged_and_never_shrink(tmp_path: Path) -> None:
    """A verdict that is corrected must not look like a restart, which would count all again."""
    clock = iter(range(100))
    group = {"service": "shop", "framework": "ag2"}
    violating = {**group, "category": "specification"}
    with Store.open(f"chdb://{tmp_path}") as store:
        migrate(store)
        registry = served(store, fresh=0.0, clock=lambda: float(next(clock)))

        def totals() -> tuple[float | None, float | None]:
            return (
                registry.get_sample_value("mast_trace_runs_judged_total", group),
                registry.get_sample_value("mast_trace_runs_with_mode_total", violating),
            )

        assert totals() == (None, None)
        store.insert("mast_verdicts", [verdict(n, violates=n < 2) for n in range(5)])
        assert totals() == (5, 2)
        corrected = {**verdict(0, violates=False), "JudgeVersion": "w"}
        corrected["JudgedAt"] += timedelta(seconds=1)
        store.insert("mast_verdicts", [corrected])
        assert totals() == (5, 2)
        store.insert("mast_verdicts", [verdict(7, violates=True)])
        assert totals() == (6, 3)
        shown = {each.name: each.samples for each in registry.collect()}
        counted: dict[str, dict[str, float]] = {}
        for name in ("with_mode", "examined"):
            for sample in shown[f"mast_trace_runs_{name}"]:
                labels = dict(sample.labels)
                counted.setdefault(name, {})[labels.pop("category")] = sample.value
                assert labels == group
        others = ("inter_agent", "verification")
        assert counted == {
            "with_mode": {"specification": 3, **dict.fromkeys(others, 0)},
            "examined": {"specification": 6, **dict.fromkeys(others, 6)},
        }
        assert {
            name: tuple(each[0].labels) if each else () for name, each in shown.items()
        } == METRICS


def test_an_answer_stands_for_a_while(tmp_path: Path) -> None:
    clock = [0.0]
    with Store.open(f"chdb://{tmp_path}") as store:
        migrate(store)
        registry = served(store, fresh=15.0, clock=lambda: clock[0])
        assert registry.get_sample_value("mast_trace_database_up") == 1.0
        store.command("DROP TABLE mast_judge_calls")
        assert registry.get_sample_value("mast_trace_database_up") == 1.0
        clock[0] = 15.0
        assert registry.get_sample_value("mast_trace_database_up") == 0.0
