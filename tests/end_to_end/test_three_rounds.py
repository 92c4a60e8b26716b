"""AgenTracer's rounds on a running `mast-trace up`: a team that listens, one that is deaf, one that is harmed."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from program_runs import run_program
from up_process import UpProcess

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.end_to_end, pytest.mark.slow, pytest.mark.timeout(900)]

PROGRAM = Path(__file__).parents[2] / "examples" / "three_rounds.py"
TASKS = 3
"""One of them succeeds without any lesson."""


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UpProcess]:
    process = UpProcess(tmp_path_factory.mktemp("rounds") / "data")
    process.start()
    yield process
    process.kill_if_running()


def play(up: UpProcess, *arguments: str) -> str:
    """Run the example on its scripted model and return what it prints."""
    environment = {**up.environment(), "MAST_TRACE_FEEDBACK_URL": up.ready["web"]}
    environment.pop("OPENAI_API_KEY", None)
    environment["PYTHONPATH"] = os.environ.get("PYTHONPATH", "")
    command = (sys.executable, PROGRAM, *arguments)
    return run_program(*command, status=0, env=environment, timeout=600).stdout


FIRST = {"listening": 0, "deaf": 30, "harmed": 60}
"""The first task of each team; lessons are those of the others' tasks, too. One can harm only what succeeds without."""


@pytest.fixture(scope="module")
def rounds(up: UpProcess) -> dict[str, str]:
    """The three rounds of each team, as the example prints them."""
    more = ("--tasks", str(TASKS), "--wait", "60")
    return {team: play(up, team, "--first", str(first), *more) for team, first in FIRST.items()}


@pytest.mark.parametrize(
    ("team", "outcomes"), [("listening", [1, 3, 3]), ("deaf", [1, 1, 1]), ("harmed", [1, 1, 1])]
)
def test_three_rounds(rounds: dict[str, str], team: str, outcomes: list[int]) -> None:
    """Each failed task is diagnosed and run again with its lesson, which never holds its answer."""
    out = rounds[team]
    told = re.findall(r"round \d: (\d) of 3", out)
    assert [int(each) for each in told] == outcomes
    assert "copy figures from tool results" in out
    lessons = out.partition("round 2")[0]
    for number in range(FIRST[team], FIRST[team] + TASKS):
        assert f"{20 + 7 * number} EUR" not in lessons


@pytest.mark.usefixtures("rounds")
def test_the_experiment_tells_the_teams_apart(up: UpProcess) -> None:
    """The listening team is better on other tasks too, the deaf one is not, the harmed one is worse."""
    words = {}
    for number, (team, tasks) in enumerate({"listening": 24, "deaf": 12, "harmed": 24}.items()):
        planned = up.mast_trace(
            "experiment", team, "--plan", "--design", "pairs", "--workflow", "price-desk",
            "--baseline", ".3", "--effect", ".5",
        )  # fmt: skip
        assert planned.returncode == 0, planned.stderr
        assert "frozen as version" in planned.stdout
        play(up, team, f"--tasks={tasks}", f"--first={100 + 30 * number}", "--experiment", team)
        found = json.loads(up.mast_trace("experiment", team, "--json").stdout)
        assert found["conclusion"]["objections"] == []
        assert [arm["missing"] for arm in found["conclusion"]["arms"]] == [0, 0, 0]
        assert [arm["delivered"] for arm in found["conclusion"]["arms"]] == [0, tasks, tasks]
        words[team] = [each["word"] for each in found["conclusion"]["contrasts"]]
    assert words == {
        "listening": ["better", "better"],
        "deaf": ["not decided", "not decided"],
        "harmed": ["worse", "worse"],
    }
