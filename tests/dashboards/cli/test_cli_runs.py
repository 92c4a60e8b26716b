"""`runs` lists, filters and follows; `outcome` is the last word."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from datetime import datetime, timezone
from typing import TYPE_CHECKING

import pytest
from starlette.testclient import TestClient

import mast_trace
from mast_trace_collector.storage import Store
from mast_trace_dashboards.found_run import find_run
from mast_trace_dashboards.web.app import web_app
from mast_trace_judge.store.verdicts import save
from mast_trace_judge.verdict import Place

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import CLI
    from fixture_types import Capture, Patch


def test_runs_are_listed_newest_first(cli: CLI) -> None:
    status, out, err = cli("runs")
    lines = out.splitlines()
    assert (status, err) == (0, "")
    named = [name for line in lines for name in cli.recorded.ids if name in line.split()]
    assert named == ["unjudged", "trip", "invoices"]
    assert "called" in lines[4], "the cause stands below the place"
    assert "unknown, waiting" in lines[1]
    assert "success" in lines[2]
    assert "failure" in lines[3]
    assert "1.3" in lines[3]
    assert "DECISIVE" not in out, "a hint is no decisive error"


def test_runs_as_json_have_full_ids(cli: CLI) -> None:
    rows = {row["Name"]: row for row in cli.json("runs")}
    assert {name: row["TraceId"] for name, row in rows.items()} == cli.recorded.ids
    assert rows["invoices"]["Outcome"] == "failure"
    assert "1.3" in rows["invoices"]["Modes"]
    assert rows["invoices"]["Start"].endswith("Z")
    assert {"CostUsd", "UnpricedCalls", "JudgeCostUsd"} <= rows["invoices"].keys()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--outcome", "failure"), {"invoices"}),
        (("--outcome", "failure", "--outcome", "success"), {"invoices", "trip"}),
        (("--outcome", "unknown"), {"unjudged"}),
        (("--agent", "planner"), {"trip", "unjudged"}),
        (("--mode", "1.3"), {"invoices"}),
        (("--since", "1h"), {"invoices", "trip", "unjudged"}),
        (("--since", "2200-01-01"), set()),
        (("--limit", "1"), {"unjudged"}),
        (("--project", "another"), set()),
    ],
)
def test_runs_can_be_filtered(cli: CLI, arguments: tuple[str, ...], expected: set[str]) -> None:
    assert {row["Name"] for row in cli.json("runs", *arguments)} == expected


@pytest.mark.parametrize(
    "given",
    [
        "--service nobody",
        "--agent nobody",
        "--project nope",
        "--outcome suspect",
        "--mode 3.3",
        "--since 2200-01-01",
    ],
)
def test_filters_that_match_nothing_are_said_and_no_error(cli: CLI, given: str) -> None:
    status, out, err = cli("runs", *given.split())
    assert (status, out) == (0, "")
    assert "matches" in err
    assert "mast-trace doctor" not in err


def test_no_runs_at_all_ask_for_a_doctor(empty: CLI) -> None:
    status, out, err = empty("runs")
    assert (status, out) == (0, "")
    assert "mast-trace doctor" in err


def test_equal_runs_are_said_to_be_equal(cli: CLI) -> None:
    run = cli.recorded.ids["invoices"]
    assert "All steps are the same in both." in cli.out("compare", run, run)


def test_a_store_without_runs_says_how_to_begin(no_store: object, capsys: Capture) -> None:
    from mast_trace_dashboards.cli.app import run

    assert run(["runs"]) == 1
    assert "mast-trace up" in capsys.readouterr().err


def test_watching_prints_each_run_once_until_it_changes(cli: CLI) -> None:
    cli.kept.close()
    command = [sys.executable, "-m", "mast_trace_dashboards", "runs", "--watch", "--json"]
    command += ["--every", "0.2", "--url", cli.recorded.url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        names = [json.loads(process.stdout.readline())["Name"] for _ in range(3)]
        time.sleep(1)  # several more looks
        process.terminate()
        more = process.stdout.read()
    assert (names, more) == (["invoices", "trip", "unjudged"], "")


def test_a_recorded_outcome_counts_more_than_all_else(cli: CLI) -> None:
    run_id = cli.recorded.ids["trip"]
    printed = cli.json("outcome", run_id[:12], "failure", "--reason", "it rained")
    assert printed == {"run": run_id, "outcome": "failure", "reason": "it rained"}
    [row] = [row for row in cli.json("runs") if row["Name"] == "trip"]
    assert (row["Outcome"], row["OutcomeReason"], row["State"]) == (
        "failure",
        "it rained",
        "changed",
    )
    cli("outcome", run_id, "success")


RUN = "a" * 32
_COMMANDS = (
    *("show RUN", "show RUN --tree", "label RUN --outcome failure", "outcome RUN failure"),
    *("compare RUN", "erase RUN --yes", "judge run RUN", "replay RUN -- true", "prove RUN -- true"),
    *("cases add RUN", "inject RUN -- true", "lessons --run RUN", "cost RUN"),
    "export --run RUN --out runs.jsonl",
)


@pytest.fixture
def shared(empty: CLI) -> CLI:
    """Two projects have a run of one id, and one of them a run of its own."""
    with Store.open(empty.recorded.url) as store:
        for project, trace in (("team-a", RUN), ("team-b", RUN), ("team-b", "b" * 32)):
            store.insert("otel_traces", [_root(project, trace)])
    return empty


def _root(project: str, trace: str) -> dict[str, object]:
    return {
        "Timestamp": datetime.now(timezone.utc),
        "TraceId": trace,
        "SpanId": "1" * 16,
        "SpanName": "invoke_workflow job",
        "Duration": 1_000_000,
        "ResourceAttributes": {"mast.project": project},
        "SpanAttributes": {
            "gen_ai.operation.name": "invoke_workflow",
            "gen_ai.workflow.name": f"job of {project}",
            "user.id": project,
        },
    }


def test_a_run_that_two_projects_have_is_asked_for_by_project(
    shared: CLI, tmp_path: Path, monkeypatch: Patch
) -> None:
    monkeypatch.chdir(tmp_path)
    for command in _COMMANDS:
        for name in (RUN, RUN[:5]):
            said = shared.err(*command.replace("RUN", name).split(), status=2)
            assert "2 projects: team-a, team-b; add --project" in said, command


def test_a_run_of_one_project_is_taken_from_it_alone(shared: CLI) -> None:
    for project in ("team-a", "team-b"):
        assert f"job of {project}" in shared.out("show", RUN, "--project", project)
        erased = shared.json("erase", RUN, "--dry-run", "--project", project)
        assert erased["runs"] == 1
    assert shared.json("erase", "--user", "team-a", "--dry-run")["runs"] == 1
    listed = [shared.out("runs", *more) for more in ((), ("--project", "team-b"))]
    assert ["PROJECT" in each for each in listed] == [True, False]


def _trip(said: str, *, succeeded: bool | None) -> None:
    with mast_trace.run("trip", input="What does a night in Lisbon cost?"):
        with mast_trace.agent("researcher"):
            with mast_trace.tool("hotel_price", {"city": "Lisbon"}) as call:
                call.result("Double room: 118 EUR per night")
            text = f"The hotel search says that a double room costs {said} EUR a night."
            mast_trace.message("researcher", "user", text)
        if succeeded is not None:
            mast_trace.record_outcome(succeeded)


def test_a_comparison_is_offered_where_there_is_a_good_run(empty: CLI) -> None:
    failed = empty.record(lambda: _trip("181", succeeded=False))
    assert "mast-trace compare" not in empty.out("show", failed)
    assert "no run of the same name" in empty.err("compare", failed, status=1)
    good = empty.record(lambda: _trip("118", succeeded=True))
    assert f"mast-trace compare {failed}" in empty.out("show", failed)
    assert good in empty.out("compare", failed)


def test_a_comparison_begins_with_what_no_good_run_does(empty: CLI) -> None:
    failed, good = (
        empty.record(lambda good=good: _trip("181", succeeded=good)) for good in (False, True)
    )
    unlike = Place(step=1, agent="researcher", basis="contrast", why="In none of 5 good runs.")
    with Store.open(empty.recorded.url) as store:
        found = find_run(store, failed)
        assert found is not None
        assert found.verdict is not None
        later = datetime.now(timezone.utc)
        told = {"look_first": (unlike,), "judged_at": later}
        save(store, [found.verdict.model_copy(update=told)])
    for given in ((failed,), (failed, good)):
        assert f"Unlike good runs, step 1, researcher: {unlike.why}" in empty.out("compare", *given)
    assert "Unlike" not in empty.out("compare", good, failed)


def test_lists_tell_a_decisive_error_from_a_hint(empty: CLI) -> None:
    """One basis, the record: decisive in the run that failed, a hint in the one that did not."""
    failed, suspect = (
        empty.record(lambda good=good: _trip("181", succeeded=good)) for good in (False, True)
    )
    listed = empty.out("runs")
    assert (listed.count("DECISIVE: researcher"), listed.count("researcher, step 1")) == (1, 2)
    assert empty.out("compare", failed, suspect).count("DECISIVE: researcher") == 1
    with Store.open(empty.recorded.url) as store:
        view = TestClient(web_app(store), base_url="http://127.0.0.1")
        assert view.get("/").text.count(">DECISIVE</span>") == 1


def test_a_good_end_that_its_record_contradicts_is_suspect(empty: CLI) -> None:
    for said, succeeded in (("181", True), ("181", None), ("118", True), ("181", False)):
        empty.record(lambda said=said, succeeded=succeeded: _trip(said, succeeded=succeeded))
    rows = empty.json("runs", "--outcome", "suspect")
    assert sorted(row["Outcome"] for row in rows) == ["success", "unknown"]
    assert {(row["LookAgent"], row["LookBasis"]) for row in rows} == {("researcher", "record")}
    assert {row["State"] for row in rows} == {"suspect"}
    assert empty.out("runs").count("suspect") == 2
    (good,) = [row["TraceId"] for row in rows if row["Outcome"] == "success"]
    shown = empty.out("show", good)
    assert "Recorded as a success; the record contradicts itself." in shown
    assert "Look here first: researcher, step 1" in shown
    assert "Decisive error" not in shown
    with Store.open(empty.recorded.url) as store:
        view = TestClient(web_app(store), base_url="http://127.0.0.1")
        assert view.get("/?outcome=suspect").text.count("suspect</span>") == 2
        assert "the record contradicts itself" in view.get(f"/runs/{good}").text
