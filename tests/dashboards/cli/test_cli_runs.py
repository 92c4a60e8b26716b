"""`runs` lists, filters and follows; `outcome` is the last word."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import CLI
    from fixture_types import Capture


def test_runs_are_listed_newest_first(cli: CLI) -> None:
    status, out, err = cli("runs")
    lines = out.splitlines()
    assert (status, err) == (0, "")
    assert [line.split()[3] for line in lines[1:]] == ["unjudged", "trip", "invoices"]
    assert "unknown, waiting" in lines[1]
    assert "success" in lines[2]
    assert "failure" in lines[3]
    assert "1.3" in lines[3]
    assert "(the record shows it)" in lines[3], "it names a place, and calls no step decisive"


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


def test_no_runs_is_said_and_no_error(cli: CLI) -> None:
    status, out, err = cli("runs", "--service", "nobody")
    assert (status, out) == (0, "")
    assert "mast-trace doctor" in err


def test_a_store_without_runs_says_how_to_begin(no_store: object, capsys: Capture) -> None:
    from mast_trace_dashboards.cli.app import run

    assert run(["runs"]) == 1
    assert "mast-trace up" in capsys.readouterr().err


def test_watching_prints_each_run_once_until_it_changes(cli: CLI) -> None:
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
