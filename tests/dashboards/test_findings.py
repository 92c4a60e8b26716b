"""The verdict of an unchanged run has the run's metadata; the numbers stay the same."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from test_queries import store_runs, trace_id

from mast_trace_dashboards.queries import QUERIES

if TYPE_CHECKING:
    from mast_trace_collector.storage import Store


OF_VERDICTS = (
    *("filter_values", "outcomes_over_time", "decisive_agents", "modes_by_agent"),
    *("modes_by_model", "judge_lag", "summary"),
)


def told(store: Store) -> dict[str, list[dict[str, Any]]]:
    """Return the results of the queries that read a run's metadata from its verdict, if it is there."""
    asked = {
        name: QUERIES[name].run(store, bucket=86400)
        if name.endswith("time")
        else QUERIES[name].run(store)
        for name in OF_VERDICTS
    }
    asked["judge_lag"] = [
        {k: v for k, v in asked["judge_lag"][0].items() if "Lag" not in k and "Wait" not in k}
    ]
    return asked


def test_a_run_that_is_judged_again_changes_no_number(store: Store) -> None:
    results: list[Any] = []
    rows = store_runs(store)
    store.insert("mast_verdicts", rows)
    results.append(told(store))
    later = {"JudgeVersion": "again", "JudgedAt": rows[0]["JudgedAt"] + timedelta(hours=1)}
    store.insert("mast_verdicts", [{**row, **later} for row in rows])
    assert store.query("SELECT count() AS n FROM mast_findings") == [{"n": 6}]
    results.append(told(store))
    store.command("OPTIMIZE TABLE mast_findings FINAL")
    assert store.query("SELECT count() AS n FROM mast_findings") == [{"n": 3}]
    results.append(told(store))
    assert results[0] == results[1] == results[2]
    # A later outcome counts at once, before the judge has seen it.
    store.command(
        "INSERT INTO mast_run_states (TraceId, Said) SELECT {run:String}, "
        "concat('1', leftPad('9', 19, '0'), 'failure', '\\n', '')",
        {"run": trace_id(3)},
    )
    [row] = QUERIES["outcomes_over_time"].run(store, bucket=86400)
    assert (row["Runs"], row["Failures"], row["Judged"]) == (4, 3, 3)
    assert QUERIES["judge_lag"].run(store)[0]["Waiting"] == 2


def test_a_run_is_in_the_same_state_whatever_the_list_is_filtered_by(store: Store) -> None:
    """The run's verdict was given under another service's name."""
    rows = store_runs(store)
    store.insert("mast_verdicts", [{**row, "ServiceName": "earlier"} for row in rows])
    unfiltered = QUERIES["runs"].run(store)
    assert "judged" in {run["State"] for run in unfiltered}
    services = sorted({run["ServiceName"] for run in unfiltered})
    assert QUERIES["runs"].run(store, services=services) == unfiltered
