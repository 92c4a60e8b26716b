"""The stored results of the simulation keep the promise, and the pages say what they hold."""

from __future__ import annotations

import json
from pathlib import Path

from simulated_teams import AA, DEAF, HARMED, HELPED

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "benchmarks" / "feedback"
RESULTS = {each["name"]: each for each in json.loads((FOLDER / "results.json").read_text("utf-8"))}


def test_every_kind_was_simulated_a_thousand_times() -> None:
    assert list(RESULTS) == [team.name for team in (*AA, *DEAF, *HELPED, *HARMED)]
    assert {each["experiments"] for each in RESULTS.values()} == {1000}


def test_better_is_said_in_at_most_five_percent_where_nothing_helps() -> None:
    without = [RESULTS[team.name]["better"] for team in (*AA, *DEAF)]
    assert max(without) <= 0.05
    page = (ROOT / "docs" / "how-to" / "feedback.md").read_text("utf-8")
    assert (
        f"{min(without):.1%} to {max(without):.1%}".replace("%", "", 1).replace("%", " %") in page
    )
    assert len(without) == 9


def test_the_power_is_the_planned_one() -> None:
    found = [RESULTS[team.name] for team in HELPED]
    assert all(0.78 <= each["better"] <= 0.92 for each in found)
    page = (ROOT / "docs" / "how-to" / "feedback.md").read_text("utf-8")
    rises = [each for each in found if ".6 to .7" in each["name"]]
    rates = sorted(round(100 * each["better"]) for each in rises)
    tasks = sorted(each["tasks_until"] for each in rises)
    assert f"{rates[0]} to {rates[-1]} %" in page
    assert f"{tasks[0]} to {tasks[-1]} tasks" in page


def test_the_table_holds_the_results() -> None:
    page = (FOLDER / "README.md").read_text("utf-8")
    for each in RESULTS.values():
        assert f"| {each['name']} | 1,000 | {each['tasks']:,} | {each['better']:.1%} |" in page
