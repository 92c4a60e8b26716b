"""Shares of failure modes: over the runs in which they were looked for, from one threshold on."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pytest
from stores import new_store
from verdict_rows import verdict_row

from mast_trace_dashboards.queries import QUERIES
from mast_trace_judge.verdict import SHOWN_FROM

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mast_trace_collector.storage import Store

T0 = datetime(2026, 3, 2, 12, tzinfo=timezone.utc)
# Examined modes, and the findings with their probabilities.
RUNS: list[tuple[list[str], dict[str, float]]] = [
    (["1.3", "2.6", "3.2"], {"1.3": 0.9, "3.2": 0.5}),
    (["1.3", "2.6"], {"1.3": 0.4, "2.6": 0.7}),
    (["1.3", "2.6"], {}),
    ([], {"1.3": 0.9, "1.1": 0.9}),  # a verdict of an earlier version
]
ALL = set(range(len(RUNS)))


def verdict(number: int) -> dict[str, Any]:
    examined, modes = RUNS[number]
    return verdict_row(
        number,
        T0,
        [(code, probability, "exact") for code, probability in modes.items()],
        ServiceName="shop",
        Framework="ag2",
        RunSeen=T0,
        RunAgents=["clerk"],
        RunModels=["small"],
        Outcome="unknown",
        Examined=examined,
        Calibrated=number == 1,
        DecisiveStep=1,
        DecisiveAgent="clerk",
        DecisiveProbability=0.25 if number == 1 else 0.75,
    )


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with new_store(tmp_path_factory.mktemp("shown")) as opened:
        opened.insert(
            "otel_traces",
            [
                {
                    "TraceId": f"{number:032x}",
                    "SpanId": "1" * 16,
                    "Timestamp": T0,
                    "SpanName": "run",
                    "SpanAttributes": {"gen_ai.operation.name": "invoke_workflow"},
                }
                for number in ALL
            ],
        )
        opened.insert("mast_verdicts", [verdict(number) for number in ALL])
        yield opened


def test_the_list_has_the_modes_that_are_shown(store: Store) -> None:
    rows = {int(row["TraceId"], 16): row for row in QUERIES["runs"].run(store)}
    assert (rows[0]["Modes"], rows[1]["Modes"]) == (["1.3", "3.2"], ["2.6"])
    assert rows[1]["ModeProbabilities"] == pytest.approx([0.7])
    found = QUERIES["runs"].run(store, modes=["1.3"])
    assert {int(row["TraceId"], 16) for row in found} == {0, 3}
    every = QUERIES["runs"].run(store, modes=["1.3"], at_least=0.0)
    assert {int(row["TraceId"], 16) for row in every} == {0, 1, 3}
    assert QUERIES["runs"].params["at_least"].default == SHOWN_FROM


def test_a_mode_does_not_make_a_run_failed(store: Store) -> None:
    assert QUERIES["runs"].run(store, outcomes=["failure"]) == []
    assert len(QUERIES["runs"].run(store, outcomes=["unknown"])) == len(RUNS)
    summary = QUERIES["summary"].one(store)
    confidence = QUERIES["decisive_confidence"].one(store)
    assert summary is not None
    assert confidence is not None
    assert (summary["Failures"], summary["FailureShare"]) == (0, None)
    assert (confidence["Failures"], confidence["UndecidedShare"]) == (0, None)


def test_percentages_of_steps_are_those_that_were_measured(store: Store) -> None:
    rows = {int(row["TraceId"], 16): row for row in QUERIES["runs"].run(store)}
    sure = {number: row["DecisiveProbability"] for number, row in rows.items()}
    assert sure == {0: None, 1: 0.25, 2: None, 3: None}
    (rule,) = QUERIES["decisive_rules"].run(store)
    assert (rule["Runs"], rule["MeanProbability"]) == (4, 0.25)


def test_alerts_are_of_modes_that_were_looked_for(store: Store) -> None:
    rows = QUERIES["mode_spike"].run(store, until=T0 + timedelta(minutes=5))
    assert {row["mode"] for row in rows} == {"1.3", "2.6", "3.2"}
