"""Patterns over time: new ones are told, resolved ones open again, versions that got worse are found."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pytest
from pattern_runs import NOW, Run, add_run, add_runs, index, patterns
from scipy.stats import binom

from mast_trace.exceptions import ConfigurationError
from mast_trace_dashboards import found_pattern
from mast_trace_dashboards.alerts.evaluator import Evaluator
from mast_trace_dashboards.alerts.rules import RULES
from mast_trace_dashboards.found_pattern import set_state
from mast_trace_dashboards.queries import QUERIES
from mast_trace_judge.patterns.states import PatternState

if TYPE_CHECKING:
    from mast_trace_collector.storage import Store

SEARCH: dict[str, Any] = {"code": "2.6", "tool": "search"}
SKIP: dict[str, Any] = {"code": "1.1", "agent": "planner"}


def test_a_resolved_pattern_opens_again_only_by_a_run_that_may_have_the_fix(store: Store) -> None:
    number = iter(range(1, 1000))

    def seen(version: str, at: Any) -> str:
        add_run(store, next(number), **SEARCH, text="timed out after 3 s", version=version, at=at)
        index(store)
        (row,) = patterns(store, min_runs=1)
        return str(row["State"])

    for _ in range(3):
        assert seen("1.0", NOW - timedelta(days=1)) == "open"
    name = patterns(store)[0]["PatternId"]
    set_state(store, name[:6], "acknowledged", "ada", note="ticket 17")
    assert patterns(store)[0]["State"] == "acknowledged"
    set_state(store, name, "resolved", "ada", version="1.1")
    assert found_pattern.state(patterns(store)[0]) == "resolved (in version 1.1), by ada"
    later = datetime.now(timezone.utc) + timedelta(minutes=30)
    assert seen("1.0", later) == "resolved"
    assert seen("1.1", NOW - timedelta(hours=1)) == "resolved"
    assert seen("1.1", later) == "reopened"
    (alerted,) = QUERIES["new_patterns"].run(store, until=later + timedelta(minutes=1))
    assert alerted["Patterns"] == 1
    set_state(store, name, "resolved", "ada")
    assert patterns(store)[0]["State"] == "reopened"
    set_state(store, name, "open", "ada")
    assert patterns(store)[0]["State"] == "open"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"state": "done"}, "a state is open, acknowledged, resolved"),
        ({"author": "  "}, "needs the name"),
        ({"version": "1"}, "only a resolved pattern has a version"),
        ({"note": "x" * 2001}, "at most 2,000"),
    ],
)
def test_a_state_is_checked(given: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        PatternState(
            **{"project": "", "pattern": "p", "state": "acknowledged", "author": "a"} | given
        )


def test_the_alert_tells_a_new_pattern_and_ends_when_it_is_acknowledged(store: Store) -> None:
    """Rare findings and a first day fire nothing."""
    rule = [rule for rule in RULES if rule.query == "new_patterns"]
    three, two, one = (NOW - timedelta(hours=hours) for hours in (3, 2, 1))
    add_runs(store, (Run(n, at=NOW - timedelta(days=3, minutes=n)) for n in range(1, 61)))
    add_runs(store, (Run(n, **SKIP, text="once", at=two) for n in (200, 201)))
    desk = {"service": "desk", **SEARCH, "text": "no", "at": three}
    add_runs(store, (Run(n, **desk) for n in range(300, 330)))
    index(store)
    evaluator = Evaluator(store, rules=rule)
    assert evaluator.look(NOW) == []
    texts = enumerate(f"timed out after {n} s" for n in range(12))
    add_runs(store, (Run(100 + n, **SEARCH, text=text, at=one) for n, text in texts))
    index(store)
    (change,) = evaluator.look(NOW + timedelta(minutes=5))
    assert (change.kind, dict(change.alert.labels)) == ("firing", {"service": "shop"})
    assert change.alert.value == 1.0
    (row,) = patterns(store, services=["shop"], modes=["2.6"])
    set_state(store, row["PatternId"], "acknowledged", "ada")
    assert evaluator.look(NOW + timedelta(minutes=10)) == []
    (ended,) = evaluator.look(NOW + timedelta(minutes=30))
    assert ended.kind == "resolved"


def test_a_version_that_fails_more_often_is_found_and_a_steady_one_is_not(store: Store) -> None:
    runs = []
    for n in range(150):
        name, bad = (("1.0", 5), ("1.1", 5), ("1.2", 20))[n // 50]
        found = SEARCH if n % 50 < bad else {}
        outcome = "failure" if n % 50 < bad else "success"
        at = NOW - timedelta(days=9 - n // 20)
        runs.append(Run(n + 1, version=name, outcome=outcome, at=at, **found))
    add_runs(store, runs)
    index(store)
    rows = QUERIES["version_regressions"].run(store)
    told = {(row["Version"], row["Measure"]): row for row in rows}
    worse = told["1.2", "failures"]
    assert (worse["Runs"], worse["Examined"]) == (20, 50)
    assert (worse["RunsBefore"], worse["ExaminedBefore"]) == (10, 100)
    assert worse["Evidence"] == pytest.approx(
        -binom.logsf(19, 50, 11 / 110) / 2.302585093, rel=1e-6
    )
    assert told["1.2", "2.6"]["Evidence"] >= 4
    assert told["1.1", "failures"]["Evidence"] == 0
    assert ("1.0", "failures") not in told
