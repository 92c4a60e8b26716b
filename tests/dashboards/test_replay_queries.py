"""Replays are in no list, trend, alert, cost or judge query; their conclusion is, the same as in Python."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from dashboards.test_queries import spans, store_runs, trace_id, verdict
from invented_records import contrast
from judge.store.invented_replays import result

from mast_trace_collector.storage.runs import finished_runs, run_summary
from mast_trace_dashboards.found_run import find_run
from mast_trace_dashboards.queries import QUERIES
from mast_trace_judge.arms import Fix, ReplayArm
from mast_trace_judge.confirmation import Confirmation
from mast_trace_judge.store.confirmations import record_confirmation, show_missing
from mast_trace_judge.store.replay_plans import plan_of
from mast_trace_judge.store.replays import record_result, reserve

if TYPE_CHECKING:
    from stores import Tables

    from mast_trace_collector.storage import Store
    from mast_trace_judge.verdict import Verdict

OF_REPLAYS = {"confirmed_decisive"}
"""Queries that are about replays."""
OF_TABLES = {"table_sizes"}
"""Queries on the size of all tables."""
OF_NOW = {"OldestWaitSeconds"}
"""Columns that grow with time."""


@pytest.fixture
def store(tables: tuple[Store, Tables]) -> Store:
    """Four runs, three of them judged."""
    opened, made = tables
    made.renew()
    opened.insert("mast_verdicts", store_runs(opened))
    return opened


def answers(store: Store) -> dict[str, list[dict[str, Any]]]:
    """The rows of every named query, with the run's id where one is asked for."""
    found = {}
    for name, query in QUERIES.items():
        if name not in OF_REPLAYS | OF_TABLES:
            given = {"run": trace_id(1)} if "run" in query.params else {}
            rows = query.run(store, **given)
            found[name] = [{key: row[key] for key in row if key not in OF_NOW} for row in rows]
    found["to be judged"] = [
        vars(run) for run in finished_runs(store, judge_version="next", quiet=0, idle=0)
    ]
    return found


def replayed(store: Store, number: int) -> Any:
    """Store expensive replays of a run."""
    run = run_summary(store, trace_id(number))
    assert run is not None
    plan = plan_of(store, run, "{}")
    fix = ReplayArm("fix", 1, Fix("person", "18"))
    for sequence in range(4):
        ended = result(arm=fix, success=sequence % 2 == 0, live_calls=50, cost_usd=9.0)
        record_result(store, plan, sequence, ended, span_id="s1")
    reserve(store, plan, 4, fix, live_calls=99, cost_usd=99.0)
    return plan


def shown(store: Store, number: int) -> tuple[Verdict, dict[str, Any]]:
    """The verdict on a run that a page shows, and the run's row of the list."""
    found = find_run(store, trace_id(number))
    assert found is not None
    assert found.verdict is not None
    return found.verdict, found.row


def test_replays_are_in_no_other_query(store: Store) -> None:
    before = answers(store)
    replayed(store, 2)
    after = answers(store)
    assert len(before) >= 40
    for name, rows in before.items():
        assert after[name] == rows, name
    assert QUERIES["confirmed_decisive"].run(store)[0]["Replays"] == 5


CONCLUSIONS = {
    "another step": Confirmation(
        status="confirmed",
        text="Proved.",
        origin=0,
        origin_agent="analyst",
        contrasts=(contrast(0, "say 18", agent="supervisor"),),
    ),
    "the same step": Confirmation(status="repairable", text="Proved.", origin=1, origin_agent="b"),
    "systematic, proved": Confirmation(status="systematic", text="P.", origin=0, origin_agent="b"),
    "systematic": Confirmation(status="systematic", text="It fails from the start."),
    "refuted": Confirmation(status="refuted", text="No.", refuted=(1,)),
    "others refuted": Confirmation(status="inconclusive", text="No.", refuted=(0,)),
    "diffuse": Confirmation(status="diffuse", text="Nothing stands out."),
    "overdetermined": Confirmation(status="overdetermined", text="Two errors."),
    "point of no return alone": Confirmation(
        status="inconclusive", text="It could be repaired until 0.", point_of_no_return=0
    ),
    "unstable": Confirmation(status="unstable", text="-", origin=0, refuted=(1,)),
    "not isolated": Confirmation(status="not isolated", text="-", origin=0, refuted=(1,)),
    "untested": Confirmation(),
}


@pytest.mark.parametrize("name", CONCLUSIONS)
def test_lists_say_what_the_shown_verdict_says(store: Store, name: str) -> None:
    for number in (1, 2, 3):
        record_confirmation(store, replayed(store, number), CONCLUSIONS[name])
    listed = {row["TraceId"]: row for row in QUERIES["runs"].run(store)}
    for number in (1, 2, 3):
        seen, row = shown(store, number)
        assert seen.confirmation is not None
        assert seen.confirmation.status == CONCLUSIONS[name].status
        error = seen.decisive
        assert row["Confirmation"] == CONCLUSIONS[name].status
        assert row["DecisiveStep"] == (error.step if error else None)
        assert row["DecisiveAgent"] == (error.agent if error else "")
        assert row["DecisiveReason"] == (error.reason if error else "")
        assert row == listed[trace_id(number)]


def test_a_conclusion_about_another_state_of_the_run_has_no_effect(store: Store) -> None:
    """Its steps may be others: it is shown as outdated, and lists know nothing of it."""
    plan = replayed(store, 2)
    record_confirmation(store, plan, CONCLUSIONS["another step"])
    late = spans(2)[1] | {"SpanId": "f" * 16}
    store.insert("otel_traces", [late])
    again = verdict(store, 2)
    again["JudgedAt"] += timedelta(hours=1)
    assert again["Fingerprint"] != plan.fingerprint
    store.insert("mast_verdicts", [again])
    seen, row = shown(store, 2)
    assert seen.decisive is not None
    assert seen.decisive.step == 1
    assert seen.confirmation is not None
    assert seen.confirmation.status == "untested"
    assert "has changed" in seen.confirmation.text
    assert (row["DecisiveStep"], row["Confirmation"]) == (1, "")


def test_a_run_that_is_judged_again_keeps_its_confirmation(store: Store) -> None:
    """Another version of the judge names other steps; the proof stands."""
    record_confirmation(store, replayed(store, 2), CONCLUSIONS["another step"])
    again = verdict(store, 2)
    again |= {"JudgeVersion": "other", "JudgedAt": again["JudgedAt"].replace(year=2027)}
    store.insert("mast_verdicts", [again | {"DecisiveAgent": "planner"}])
    assert [show_missing(store), show_missing(store)] == [1, 0], "its writer did not show it"
    seen, row = shown(store, 2)
    assert (seen.judge_version, seen.rank) == ("other", "confirmed by replay")
    assert (row["DecisiveStep"], row["DecisiveAgent"]) == (0, "analyst")


def test_numbers_of_decisive_errors_follow_the_proof(store: Store) -> None:
    before = {row["Agent"]: row["Decided"] for row in QUERIES["decisive_agents"].run(store)}
    record_confirmation(store, replayed(store, 2), CONCLUSIONS["another step"])
    rules = {row["Rule"]: row for row in QUERIES["decisive_rules"].run(store)}
    assert rules["confirmed by replay"]["MeanProbability"] is None
    [row] = [row for row in QUERIES["runs"].run(store) if row["Confirmation"] == "confirmed"]
    seen = (row["DecisiveAgent"], row["DecisiveStep"], row["DecisiveProbability"])
    assert seen == ("analyst", 0, None)
    decided = {row["Agent"]: row["Decided"] for row in QUERIES["decisive_agents"].run(store)}
    assert (before, decided) == ({"analyst": 1, "supervisor": 1}, {"analyst": 2})


def test_failed_runs_by_conclusion_with_their_cost(store: Store) -> None:
    """Two of the judged runs failed."""
    (row,) = QUERIES["confirmed_decisive"].run(store)
    assert (row["Conclusion"], row["Runs"], row["Replays"]) == ("untested", 2, 0)
    record_confirmation(store, replayed(store, 2), CONCLUSIONS["another step"])
    row, rest = QUERIES["confirmed_decisive"].run(store)
    assert (rest["Conclusion"], rest["Runs"], rest["Replays"]) == ("untested", 1, 0)
    assert (row["Conclusion"], row["Runs"], row["Failures"], row["Share"]) == (
        "confirmed",
        1,
        2,
        0.5,
    )
    assert (row["Confirmed"], row["Replays"], row["LiveCalls"]) == (1, 5, 4 * 50 + 99)
    assert row["CostUsd"] == pytest.approx(4 * 9 + 99)
