"""Successful runs that retention has left out: what commands, pages and queries say of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from starlette.testclient import TestClient
from version_runs import store_runs

from mast_trace_collector.storage import Store
from mast_trace_collector.storage.removal import tombstones
from mast_trace_dashboards.plugins import named_queries
from mast_trace_dashboards.queries import QUERIES
from mast_trace_dashboards.web.app import web_app
from mast_trace_judge.patterns.indexing import PatternIndexer

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import CLI

DAY = 24 * 60
OF_SPANS = {
    "spans_over_time",
    "latency_over_time",
    "arrival",
    "searched",
    "table_sizes",
    "team_runs",
}
"""Queries on stored spans and tables."""
RETAIN = ("retain", "--successes-after", "14", "--keep", "0")
"""Leaves out all successes that are older than two weeks."""


@pytest.fixture
def thinned(empty: CLI, monkeypatch: pytest.MonkeyPatch) -> tuple[CLI, list[str]]:
    """A store with failures and successes of twenty days ago; returns the command on it and the successes."""
    monkeypatch.setattr(tombstones, "AT_ONCE", 15)  # there are several parts of runs
    with Store.open(empty.recorded.url) as store:
        good = store_runs(store, "1", {"success": 40}, minutes=20 * DAY, user="ada")
        store_runs(store, "1", {"failure": 10}, minutes=20 * DAY, modes=["1.3"])
        store_runs(store, "2", {"success": 5, "failure": 1}, minutes=DAY)
    return empty, good


def answers(url: str) -> dict[str, Any]:
    """Return the answers of all queries that show counts or shares."""
    found = {}
    with Store.open(url) as store:
        for name, query in named_queries().items():
            if name not in {"left_out", "storage"} and "run" not in query.params:
                found[name] = query.run(store)
    return found


def test_no_number_of_runs_and_no_share_changes(thinned) -> None:
    command, _ = thinned
    before = answers(command.recorded.url)
    assert any(row["Failures"] for row in before["outcomes_over_time"])
    assert [row["Runs"] for row in before["runs_by_user"]] == [40]
    assert len(before["runs_by_session"]) == 40
    command.out(*RETAIN)
    after = answers(command.recorded.url)
    changed = {name for name in before if before[name] != after[name]}
    assert changed <= OF_SPANS, changed
    assert (after["summary"], after["runs"]) == (before["summary"], before["runs"])
    assert after["run_counts"] == before["run_counts"]
    assert {row["Version"] for row in after["run_counts"]} == {"1", "2"}


def test_runs_of_a_version_are_the_same(thinned) -> None:
    command, good = thinned
    with Store.open(command.recorded.url) as store:
        before = QUERIES["runs_of_group"].run(store, version="1")
        both = {row["Value"]: row["Runs"] for row in QUERIES["runs_by_version"].run(store)}
    assert len(before) == 50
    assert both == {"1": 50, "2": 6}
    command.out(*RETAIN)
    with Store.open(command.recorded.url) as store:
        after = QUERIES["runs_of_group"].run(store, version="1")
        assert sorted(row["TraceId"] for row in after) == sorted(row["TraceId"] for row in before)
        assert QUERIES["runs_of_group"].run(store, user="nobody") == []
        PatternIndexer(store).index()
        rows = store.query("SELECT TraceId, Version FROM mast_pattern_runs WHERE Version = '1'")
        assert {row["TraceId"] for row in rows} >= set(good)
        (known,) = QUERIES["known_outcomes"].run(store)
        # The actions of the 40 successes without spans are known.
        assert (known["Failed"], known["Passed"]) == (11, 45)
        (failures,) = [
            row for row in QUERIES["version_regressions"].run(store) if row["Measure"] == "failures"
        ]
        assert (failures["RunsBefore"], failures["ExaminedBefore"]) == (10, 50)


def test_users_and_sessions_keep_their_runs_and_can_be_erased(thinned) -> None:
    command, good = thinned
    command.out(*RETAIN)
    with Store.open(command.recorded.url) as store:
        for group in ({"user": "ada"}, {"user": "ada", "version": "1"}):
            assert len(QUERIES["runs_of_group"].run(store, **group)) == 40
        assert QUERIES["runs_of_group"].run(store, session=good[0]) == [{"TraceId": good[0]}]
        assert QUERIES["runs_without_groups"].run(store) == [{"Runs": 0}]
    told = command.json("erase", "--session", good[0], "--dry-run")
    assert told["runs"] == 1
    command.out("erase", "--user", "ada", "--yes")
    with Store.open(command.recorded.url) as store:
        assert QUERIES["runs_by_user"].run(store) == []


def test_runs_whose_user_was_not_kept_are_told(thinned) -> None:
    """An earlier version left out spans without keeping user and session."""
    command, _ = thinned
    command.out(*RETAIN)
    with Store.open(command.recorded.url) as store:
        for column in ("UserId", "ConversationId", "GroupsKnown"):
            # As the table was before the columns were added.
            store.command(f"ALTER TABLE mast_left_out DROP COLUMN {column}")
            kind = "Bool" if column == "GroupsKnown" else "String"
            store.command(f"ALTER TABLE mast_left_out ADD COLUMN {column} {kind}")
        with TestClient(web_app(store), base_url="http://127.0.0.1") as client:
            pages = {by: client.get(f"/groups/{by}").text for by in ("user", "session", "version")}
            recent = client.get("/groups/user?since=7d").text
    assert "spans of 40 runs of this time before it kept their user" in pages["user"]
    assert "spans of 40 runs of this time before it kept their session" in pages["session"]
    assert "Retention left out" not in pages["version"]
    assert "Retention left out" not in recent


def test_it_says_what_would_go_what_went_and_when(thinned) -> None:
    command, good = thinned
    out = command.out("retain", "--successes-after", "14", "--keep", "0.25", "--dry-run")
    assert "Of the successful runs would be left out" in out
    told = command.json("retain", "--successes-after", "14", "--keep", "0.25", "--dry-run")
    assert command("retain", "--left-out")[1].strip() == "No run was left out."
    done = command.json("retain", "--successes-after", "14", "--keep", "0.25")
    assert done["left_out"] == told["left_out"]
    assert 15 < done["left_out"]["runs"] < 40
    rows = command.json("retain", "--left-out")
    assert [row["Runs"] for row in rows] == [done["left_out"]["runs"]]
    assert rows[0]["Service"] == "shop"
    assert "shop" in command("retain", "--left-out")[1]
    kept = command.json("runs", "--limit", "100")
    assert len([row for row in kept if row["TraceId"] in set(good)]) == 40


def test_such_a_run_says_so_everywhere(thinned, tmp_path: Path) -> None:
    command, good = thinned
    command.out(*RETAIN)
    out = command.out("show", good[0])
    assert "Retention left the steps of this run out" in out
    assert command.json("show", good[0])["steps"] == []
    with (
        Store.open(command.recorded.url) as store,
        TestClient(web_app(store), base_url="http://127.0.0.1") as client,
    ):
        page = client.get(f"/runs/{good[0]}").text
    assert "Retention left the steps of this run out" in page
    out_file = tmp_path / "all.jsonl"
    command.out("export", "--out", str(out_file))
    assert len(out_file.read_text().splitlines()) == 16
    err = command.err("cases", "add", good[0], "--dir", str(tmp_path), status=1)
    assert "retention left its spans out" in err
    status, out, err = command("profile", "shop")
    assert status == 0
    assert "16" in out
    assert "left out the spans of 40 successful runs" in err


def test_failures_stay_when_the_rest_has_gone(thinned) -> None:
    command, _ = thinned
    command.out("retain", "--days", "180", "--successes-after", "14", "--keep", "0")
    with Store.open(command.recorded.url) as store:
        (row,) = store.query("SELECT uniqExact(TraceId) AS n FROM otel_traces")
    assert row["n"] == 16
