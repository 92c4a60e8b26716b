"""The queries that compare count right: periods, categories, calls, judge and people."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pytest
from stores import new_store

from mast_trace.taxonomy import FAILURE_MODES
from mast_trace_dashboards.queries import QUERIES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mast_trace_collector.storage import Store

T0 = datetime(2026, 3, 2, 12, tzinfo=timezone.utc)
DAY = {"since": T0, "until": T0 + timedelta(days=1)}
HOUR = timedelta(hours=1)
# When a run ended, its modes, and what the judge and a person say of it.
RUNS: list[tuple[datetime, list[str], str, str]] = [
    (T0 - 30 * HOUR, ["1.3"], "failure", ""),  # before the day before
    (T0 - 3 * HOUR, ["1.3"], "failure", ""),
    (T0 - 2 * HOUR, [], "success", ""),
    (T0 - 1 * HOUR, [], "success", ""),
    (T0 - 1 * HOUR, ["3.2"], "failure", ""),
    (T0 + 1 * HOUR, ["1.3", "1.1"], "failure", "failure"),
    (T0 + 1 * HOUR, ["2.6"], "failure", "failure"),
    (T0 + 2 * HOUR, [], "success", "success"),
    (T0 + 2 * HOUR, [], "success", "failure"),
]


def verdict(number: int) -> dict[str, Any]:
    end, modes, outcome, _ = RUNS[number]
    n = len(modes)
    return {
        "TraceId": f"{number:032x}",
        "Fingerprint": "f",
        "JudgeVersion": "v",
        "JudgedAt": end,
        "Status": "ok",
        "RunStart": end,
        "RunEnd": end,
        "Outcome": outcome,
        "Examined": list(FAILURE_MODES),
        "Modes.Code": modes,
        "Modes.Probability": [0.9] * n,
        "Modes.Evidence": ["exact"] * n,
        "Modes.Reason": [""] * n,
        "Modes.Steps": [[1]] * n,
        "Modes.SpanIds": [["a"]] * n,
        "Modes.Quotes": [[]] * n,
    }


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with new_store(tmp_path_factory.mktemp("trends")) as opened:
        opened.insert("mast_verdicts", [verdict(number) for number in range(len(RUNS))])
        opened.insert(
            "mast_human_labels",
            [
                {
                    "TraceId": f"{number:032x}",
                    "Annotator": "ada",
                    "LabelledAt": T0,
                    "Outcome": labelled,
                }
                for number, (_, _, _, labelled) in enumerate(RUNS)
                if labelled
            ],
        )
        opened.insert(
            "mast_judge_calls",
            [
                {
                    "CallId": str(number),
                    "StartedAt": T0 + number * HOUR / 4,
                    "Model": "m",
                    "Status": "ok" if number else "error",
                    "CostUsd": 0.5,
                }
                for number in range(6)
            ],
        )
        yield opened


def test_modes_are_compared_with_as_long_a_time_before(store: Store) -> None:
    rows = {row["Code"]: row for row in QUERIES["modes_compared"].run(store, **DAY)}
    assert len(rows) == 14
    step = rows["1.3"]
    assert (step["Runs"], step["Examined"], step["ExaminedBefore"]) == (1, 4, 4)
    assert (step["Share"], step["ShareBefore"], step["Rise"]) == (0.25, 0.25, 0.0)
    assert rows["2.6"]["Rise"] == 0.25
    assert rows["3.2"]["Rise"] == -0.25
    assert list(rows)[-1] == "3.2", "what fell comes last"


def test_without_a_time_before_nothing_has_risen(store: Store) -> None:
    early = {"since": T0 - timedelta(days=2), "until": T0 - timedelta(days=1)}
    rows = {row["Code"]: row for row in QUERIES["modes_compared"].run(store, **early)}
    assert rows["1.3"]["Share"] == 1.0
    assert rows["1.3"]["ShareBefore"] is None
    assert rows["1.3"]["Rise"] is None


def test_a_run_counts_once_for_a_category(store: Store) -> None:
    rows = QUERIES["categories_over_time"].run(store, **DAY)
    first = {row["Category"]: row for row in rows if row["Time"].hour == T0.hour + 1}
    assert {name: row["Runs"] for name, row in first.items()} == {
        "specification": 1,
        "inter-agent": 1,
        "verification": 0,
    }
    assert {row["Examined"] for row in first.values()} == {2}


def test_calls_over_time(store: Store) -> None:
    first, second = QUERIES["judge_calls_over_time"].run(store, **DAY)
    assert (first["Calls"], first["FailedShare"], first["Cost"]) == (4, 0.25, 2.0)
    assert (second["Calls"], second["FailedShare"], second["Cost"]) == (2, 0.0, 1.0)


def test_agreement_beyond_chance(store: Store) -> None:
    """Three of four agree; at rates of 3/4 and 1/2, chance alone gives a half."""
    (row,) = QUERIES["judge_agreement"].run(store, **DAY)
    assert (row["Labels"], row["Agreement"]) == (4, 0.75)
    assert (row["HumanFailures"], row["JudgeFailures"]) == (0.75, 0.5)
    assert row["Kappa"] == pytest.approx((0.75 - 0.5) / (1 - 0.5))
