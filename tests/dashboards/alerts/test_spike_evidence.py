"""Numbers that alerts compare: the spike rules' evidence, computed again here in whole numbers, and counts of a time."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pytest
from stores import new_store
from verdict_rows import verdict_row

from mast_trace.taxonomy import FAILURE_MODES
from mast_trace_dashboards.queries import QUERIES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mast_trace_collector.storage import Store

NOW = datetime(2026, 3, 9, 12, tzinfo=timezone.utc)
WINDOWS = (30, 120, 360)
WEEK = 174 * 60


@dataclass(frozen=True)
class Run:
    """A judged run: how many minutes ago it ended, its failure modes, its outcome."""

    minutes: float
    modes: tuple[str, ...]
    outcome: str = "failure"
    status: str = "ok"


def minus_log10_of_tail(trials: int, hits: int, part: int, whole: int) -> float:
    """-log10 of the probability of so many hits or more, each with probability part / whole."""
    ways = sum(
        math.comb(trials, each) * part**each * (whole - part) ** (trials - each)
        for each in range(hits, trials + 1)
    )
    return trials * math.log10(whole) - math.log10(ways)


def evidence(judged: list[tuple[float, bool]]) -> float:
    """The best of three windows, from each judged run's age in minutes and whether it hit."""
    best = 0.0
    for window in WINDOWS:
        recent = [hit for age, hit in judged if age < window]
        before = [hit for age, hit in judged if window + 60 <= age < WEEK]
        part, whole = sum(before) + 1, len(before) + 10
        enough = len(recent) >= 20 and sum(recent) >= 5
        if enough and sum(recent) * whole >= 2 * part * len(recent):
            best = max(best, minus_log10_of_tail(len(recent), sum(recent), part, whole))
    return min(300.0, best)


def services() -> dict[str, list[Run]]:
    """Runs by service: at the edges of windows, weeks and gates, and at random rates."""
    dice = random.Random(20260309)

    def drawn(count: int, rate: float, begin: float, end: float, code: str = "1.3") -> list[Run]:
        return [
            Run(dice.uniform(begin, end), (code,) if hit else (), "failure" if hit else "success")
            for hit in (dice.random() < rate for _ in range(count))
        ]

    def exactly(hits: int, of: int, minutes: float) -> list[Run]:
        hit, miss = Run(minutes, ("1.1",)), Run(minutes, (), "success")
        return [hit] * hits + [miss] * (of - hits)

    calm = exactly(4, 90, 1000)
    return {
        "every run hits": calm + exactly(25, 25, 10),
        "five of twenty": calm + exactly(5, 20, 10),
        "four of twenty": calm + exactly(4, 20, 10),
        "five of nineteen": calm + exactly(5, 19, 10),
        "no week before": exactly(12, 40, 10),
        "twice the rate": exactly(9, 70, 1000) + exactly(10, 40, 10),
        "nearly twice": exactly(9, 69, 1000) + exactly(10, 40, 10),
        "beyond all numbers": exactly(0, 2000, 1000) + exactly(150, 150, 10),
        # One run each at an edge decides between windows, or between neither and the week before.
        "at the edges": [
            Run(edge + shift, ("1.2",))
            for edge in (30, 90, 120, 180, 360, 420)
            for shift in (-0.01, 0.0, 0.01)
            for _ in range(3)
        ]
        + exactly(2, 60, 5)
        + exactly(5, 90, 5000),
        "now and a week ago": [Run(0.0, ("1.5",))] * 6
        + exactly(0, 20, 1)
        + [Run(WEEK - 0.01, ("1.5",)), Run(WEEK, ("1.5",)), Run(WEEK + 5, ("1.5",))]
        + exactly(1, 40, 2000),
        "not judged": calm
        + exactly(6, 30, 10)
        + [Run(10, ("1.3",), status="unscored")] * 20
        + [Run(10, ("1.3",), outcome="unknown")] * 4,
        "several modes": calm + [Run(20, ("1.3", "2.6", "3.2"))] * 8 + exactly(0, 22, 20),
        **{
            f"drawn {number}": drawn(dice.randrange(5, 160), dice.random() ** 2, 0, 420)
            + drawn(dice.randrange(0, 500), dice.random() ** 4, 420, WEEK)
            + drawn(dice.randrange(0, 40), 0.4, 0, 200, code="3.1")
            for number in range(24)
        },
    }


SERVICES = services()


def row(service: str, number: int, run: Run) -> dict[str, Any]:
    return verdict_row(
        number,
        NOW - timedelta(minutes=run.minutes),
        run.modes,
        Status=run.status,
        ServiceName=service,
        Framework="ag2",
        Outcome=run.outcome,
        Examined=list(FAILURE_MODES),
    )


def calls(model: str, *asked: tuple[float, bool, float]) -> list[dict[str, Any]]:
    """Calls of a model: hours ago, whether it answered, dollars."""
    return [
        {
            "CallId": f"{model} {number}",
            "StartedAt": NOW - timedelta(hours=hours),
            "Model": model,
            "Status": "ok" if answered else "error",
            "CostUsd": cost,
        }
        for number, (hours, answered, cost) in enumerate(asked)
    ]


MS = 1 / 3_600_000
CALLS = [
    *calls("nine", *[(0.5, False, 0.0)] * 9),
    *calls("ten", *[(0.5, False, 1.0)] * 4, *[(0.0, True, 0.25)] * 6),
    *calls(
        "an hour", *[(1.0, False, 2.0)] * 20, *[(1 - MS, True, 0.0)] * 15, *[(-MS, False, 64.0)] * 9
    ),
    *calls("a day", (24.0, True, 512.0), (24 - MS, True, 16.0)),
]
# Hours ago at which the runs of a service began, and whether a root has ended them.
BEGUN: dict[str, list[tuple[float, int]]] = {
    "silent": [(24.0, 0), (26 - MS, 2), (25.0, 0), (24 - MS, 0), (26.0, 0), (2.0, 0), (-MS, 0)],
    "talks": [(25.0, 0), (2 - MS, 2)],
    "talks now": [(25.0, 0), (0.0, 0)],
    "new": [(3.0, 2)],
    "replayed": [(25.0, 0), (1.0, 0)],
    "changed": [(10.0, 0)],
}
STATES = [
    {
        "TraceId": f"{service} {number}",
        "Start": NOW - timedelta(hours=hours),
        "End": NOW - timedelta(hours=hours),
        "LastSeen": NOW - timedelta(hours=hours, minutes=-1),
        "ServiceName": service,
        "Root": root,
        "Kind": "replay" if service == "replayed" and hours == 1.0 else "",
    }
    for service, begun in BEGUN.items()
    for number, (hours, root) in enumerate(begun)
]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    runs = [(service, run) for service, given in SERVICES.items() for run in given]
    with new_store(tmp_path_factory.mktemp("evidence")) as opened:
        opened.insert("mast_verdicts", [row(s, n, run) for n, (s, run) in enumerate(runs)])
        for stored in (CALLS, CALLS[::3]):
            opened.insert("mast_judge_calls", stored)
        changed = {
            "TraceId": "changed 0",
            "Status": "unscored",
            "RunSeen": NOW - timedelta(hours=20),
        }
        opened.insert("mast_verdicts", [verdict_row(0, NOW - timedelta(hours=10), **changed)])
        opened.insert("mast_run_states", STATES)
        yield opened


def expected(counts: Callable[[Run], bool], hits: Callable[[Run], bool]) -> dict[str, float]:
    return {
        service: evidence([(run.minutes, hits(run)) for run in runs if counts(run)])
        for service, runs in SERVICES.items()
    }


def judged(run: Run) -> bool:
    return run.status == "ok"


def found(store: Store, query: str) -> list[dict[str, Any]]:
    return QUERIES[query].run(store, until=NOW)


def test_the_tail_by_hand() -> None:
    """2 or 3 of 3 at one half: 4 of 8 ways; 5 of 5 at a tenth."""
    assert minus_log10_of_tail(3, 2, 1, 2) == pytest.approx(math.log10(2))
    assert minus_log10_of_tail(5, 5, 1, 10) == pytest.approx(5)
    assert minus_log10_of_tail(7, 0, 1, 3) == pytest.approx(0)


def test_the_data_reaches_both_sides_of_every_gate() -> None:
    """Otherwise equality would say little."""
    values = expected(judged, lambda run: any(mode.startswith("1.") for mode in run.modes))
    for fires, quiet in (
        ("five of twenty", "four of twenty"),
        ("five of twenty", "five of nineteen"),
        ("twice the rate", "nearly twice"),
    ):
        assert values[fires] > 0 == values[quiet]
    assert values["beyond all numbers"] == 300
    assert sum(0 < value < 300 for value in values.values()) > 12


def test_of_specification_violations(store: Store) -> None:
    values = expected(judged, lambda run: any(mode.startswith("1.") for mode in run.modes))
    rows = {row["service"]: row["Evidence"] for row in found(store, "specification_spike")}
    assert rows == pytest.approx(values, abs=0.001)


def test_of_failures(store: Store) -> None:
    values = expected(
        lambda run: judged(run) and run.outcome in {"failure", "success"},
        lambda run: run.outcome == "failure",
    )
    rows = {row["service"]: row["Evidence"] for row in found(store, "failure_spike")}
    assert rows == pytest.approx(values, abs=0.001)


@pytest.mark.parametrize("mode", ["1.1", "1.3", "2.6", "3.1", "3.3"])
def test_of_each_failure_mode(store: Store, mode: str) -> None:
    values = expected(judged, lambda run: mode in run.modes)
    rows = found(store, "mode_spike")
    ours = {row["service"]: row["Evidence"] for row in rows if row["mode"] == mode}
    assert ours == pytest.approx(values, abs=0.001)


def test_failed_calls_spending_silence_and_waiting_at_their_borders(store: Store) -> None:
    """Hours and days without their first moment and with the last; below ten calls nothing is said."""
    rows = {row["model"]: row["Share"] for row in found(store, "judge_errors")}
    assert rows == {"nine": 0.0, "ten": 0.4, "an hour": 0.0}
    assert found(store, "judge_spending") == [{"Spent": 4 * 1.0 + 6 * 0.25 + 20 * 2.0 + 16.0}]
    missing = {row["service"]: row["Missing"] for row in found(store, "silence")}
    assert missing == {
        "silent": 3.0,
        "talks": 0.0,
        "talks now": 0.0,
        "new": 0.0,
        "replayed": 1.0,
        "changed": 0.0,
    }
    (waiting,) = found(store, "judge_behind")
    assert waiting["Seconds"] == 3 * 3600 - 60  # only ended runs, and of the last day
    (quiet,) = QUERIES["judge_behind"].run(store, until=NOW - timedelta(days=20))
    assert quiet["Seconds"] == 0
