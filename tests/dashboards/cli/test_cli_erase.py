"""`erase`: what is chosen, what is asked first, and that it is gone."""

from __future__ import annotations

import io
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

import pytest

from mast_trace_collector.storage import Store
from mast_trace_collector.storage.removal import erasure
from mast_trace_collector.storage.removal.tombstones import find_tombstones

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import CLI
    from fixture_types import Patch


def listed(cli: CLI) -> set[str]:
    return {row["TraceId"] for row in cli.json("runs")}


def test_a_dry_run_counts_and_leaves_everything(cli: CLI) -> None:
    before = listed(cli)
    found = cli.json("erase", cli.recorded.ids["trip"], "--dry-run")
    assert (found["erased"], found["runs"]) == (False, 1)
    assert found["rows"]["otel_traces"] > 0
    assert found["rows"]["mast_verdicts"] == 1
    out = cli.out("erase", cli.recorded.ids["trip"], "--dry-run")
    assert "Nothing was erased" in out
    assert listed(cli) == before


def test_a_run_is_erased_and_a_second_time_its_erasure_is_known(own_cli: CLI) -> None:
    trip = own_cli.recorded.ids["trip"]
    assert own_cli.json("erase", trip[:6], "--yes")["runs"] == 1
    assert listed(own_cli) == {own_cli.recorded.ids["invoices"], own_cli.recorded.ids["unjudged"]}
    told = own_cli.json("erase", trip, "--yes")
    assert (told["runs"], set(told["rows"].values())) == (0, {0})
    (before,) = told["erased_before"]
    assert (before["trace_id"], before["arrived"]) == (trip, 0)
    out = own_cli.out("erase", trip[:6], "--yes")
    assert f"run {trip} was erased at" in out


def test_what_has_arrived_since_is_erased_again(own_cli: CLI) -> None:
    trip = own_cli.recorded.ids["trip"]
    first = own_cli.json("erase", trip, "--yes")
    assert first["erased_before"] == []
    with Store.open(own_cli.recorded.url) as store:
        store.insert("mast_lessons", [{"Project": "", "TraceId": trip}])
    told = own_cli.json("erase", trip, "--yes")
    assert told["rows"]["mast_lessons"] == 1
    with Store.open(own_cli.recorded.url) as store:
        assert store.query("SELECT count() AS n FROM mast_lessons") == [{"n": 0}]
        store.insert("mast_human_labels", [{"Project": "other", "TraceId": trip}])
    assert "other; add --project" in own_cli.err("erase", trip, "--yes", status=2)


def test_rows_that_keep_coming_in_end_with_an_error(own_cli: CLI, monkeypatch: Patch) -> None:
    monkeypatch.setattr(erasure, "_count", lambda *_: 1)
    monkeypatch.setattr(erasure, "_PAUSE", 0.0)
    status, out, err = own_cli("erase", own_cli.recorded.ids["trip"], "--yes", "--json")
    assert (status, out) == (1, "")
    assert "keep coming in" in err


def test_erasures_are_carried_to_another_store(own_cli: CLI, tmp_path: Path) -> None:
    status, nothing, _ = own_cli("erase", "--list")
    assert (status, nothing) == (0, "")
    ids = own_cli.recorded.ids
    url = own_cli.recorded.url
    own_cli.json("erase", ids["trip"], "--yes")
    assert own_cli("erase", "--list", "--project", "other") == (0, "", "")
    _, lines, _ = own_cli("erase", "--list")
    file = tmp_path / "erased.jsonl"
    file.write_text(lines)
    with Store.open(url) as store:
        (first,) = find_tombstones(store)
        store.command("TRUNCATE TABLE mast_tombstones")
        store.insert("mast_lessons", [{"Project": "", "TraceId": ids["trip"], "Number": 7}])
    others = own_cli.err("erase", "--again", str(file), "--project", "other", "--yes", status=1)
    assert "nothing to erase" in others
    told = own_cli.json("erase", "--again", str(file), "--yes")
    assert told["rows"]["mast_lessons"] == 1
    assert [each["trace_id"] for each in told["erased_before"]] == [ids["trip"]]
    with Store.open(url) as store:
        assert find_tombstones(store) == [first]
        assert store.query("SELECT count() AS n FROM mast_lessons") == [{"n": 0}]
    assert own_cli.json("erase", "--again", str(file), "--yes")["runs"] == 0
    file.write_text("{}\n")
    status, _, err = own_cli("erase", "--again", str(file), "--yes")
    assert (status, "erased.jsonl" in err) == (2, True)


def test_a_persons_a_sessions_and_an_attributes_runs_are_erased(own_cli: CLI) -> None:
    for choice in (
        ("--user", "ann"),
        ("--session", "talk-7"),
        ("--attribute", "gen_ai.agent.name=unjudged"),
    ):
        others = own_cli.err("erase", *choice, "--project", "other", "--yes", status=1)
        assert "nothing to erase" in others
        assert own_cli.json("erase", *choice, "--yes")["runs"] == 1
    assert listed(own_cli) == set()


def test_a_project_and_a_time_are_erased(own_cli: CLI) -> None:
    # Erasures know whole seconds, and the runs ended in this one.
    tomorrow = (datetime.now(timezone.utc) + timedelta(days=1)).date().isoformat()
    others = ("erase", "--before", tomorrow, "--project", "other", "--yes")
    assert "nothing to erase" in own_cli.err(*others, status=1)
    assert own_cli.json("erase", "--before", tomorrow, "--yes")["runs"] == 3
    with Store.open(own_cli.recorded.url) as store:
        assert store.query("SELECT count() AS n FROM mast_verdicts") == [{"n": 0}]


def test_nobody_to_ask_means_nothing_is_erased(cli: CLI) -> None:
    for more in ([], ["--json"]):
        err = cli.err("erase", cli.recorded.ids["trip"], *more, status=2)
        assert "--yes" in err
    assert cli.recorded.ids["trip"] in listed(cli)


@pytest.mark.parametrize(("answer", "erased"), [("n\n", False), ("y\n", True)])
def test_a_person_is_asked(own_cli: CLI, monkeypatch: Patch, answer: str, erased: bool) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stdin", Terminal(answer))
    out = own_cli.out("erase", own_cli.recorded.ids["trip"], status=0 if erased else 1)
    assert "1 run, in these rows" in out
    assert (own_cli.recorded.ids["trip"] not in listed(own_cli)) is erased
