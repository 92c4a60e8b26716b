"""`mast-trace replay` with a change: options, output, exit status, and what is refused."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest
from confirmations import Failed, failed_shop

from mast_trace_dashboards.cli.app import run
from mast_trace_dashboards.web.comparisons import compared
from mast_trace_dashboards.web.loaded_run import run_of
from mast_trace_judge.arms import Fix, ReplayArm
from mast_trace_lab.replay.arms import arm_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Failed]:
    """A stored failure of the shop."""
    with failed_shop(tmp_path_factory.mktemp("shop")) as failed:
        yield failed


@pytest.fixture
def replay(
    stored: Failed, capfd: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Runs the command on the stored run with the given options, which precede the run's name."""
    capfd.readouterr()

    def call(*options: str, program: tuple[str, ...] = stored.command):
        status = run(["replay", "--url", stored.url, *options, "last", "--", *program])
        captured = capfd.readouterr()
        return status, captured.out, captured.err

    return call


@pytest.mark.end_to_end
def test_a_fix_is_replayed_and_shown(replay, tmp_path: Path) -> None:
    answer = tmp_path / "answer.txt"
    answer.write_text("There are 130 pieces of kettle.\n")
    status, out, _ = replay("--yes", "--change", f"fix:2=@{answer}", "--repeat", "2")
    assert status == 0
    words = " ".join(out.split())
    assert "2 model calls and 1 tool call answered from the record; 2 model calls live" in words
    assert "Order 210 pieces." in words
    assert "fix at step 2 (counter): 2 of 2 replays succeeded" in words


@pytest.mark.end_to_end
def test_a_replay_with_a_change_is_written_to_be_compared(replay, stored, tmp_path: Path) -> None:
    file = tmp_path / "fixed.json"
    options = (
        "--yes",
        "--json",
        "--out",
        str(file),
        "--change",
        "fix:2=There are 130 pieces of kettle.",
    )
    status, out, _ = replay(*options)
    assert (status, json.loads(out)["succeeded"]) == (0, 1)
    made = (stored.folder / "run.jsonl").read_bytes()
    found = compared(run_of(made).steps, run_of(file.read_bytes()).steps)
    assert found.parting is not None
    assert found.parting.left.index == 2
    file.unlink()
    assert replay(*options, "--max-calls", "1")[0] == 1
    assert run_of(file.read_bytes()).steps[2].text == "There are 130 pieces of kettle."


@pytest.mark.end_to_end
def test_the_limit_of_calls_holds_for_all_replays(replay, stored) -> None:
    before = len(stored.server.requests)
    status, out, err = replay(
        "--yes", "--json", "--change", "keep:2", "--repeat", "5", "--max-calls", "3"
    )
    shape = json.loads(out)
    assert status == 1
    assert [each["status"] for each in shape["replays"]] == ["ok", "over budget"]
    assert (shape["ended"], shape["succeeded"]) == (1, 0)
    assert len(stored.server.requests) - before == 3
    assert '"answer": "Order 30 pieces."' in err  # the program's own output


@pytest.mark.end_to_end
def test_an_oracle_judges(replay, stored) -> None:
    program = (*stored.command, "no-outcome")
    oracle = f"{sys.executable} -c \"import sys; sys.exit('210' not in sys.stdin.read())\""
    options = ("--yes", "--json", "--change", "resample:2")
    status, out, _ = replay(*options, "--set", f"oracle={oracle}", program=program)
    assert (status, json.loads(out)["succeeded"]) == (0, 1)
    status, out, _ = replay(*options, program=program)
    assert (status, json.loads(out)["ended"]) == (1, 0)
    assert "no oracle" in json.loads(out)["replays"][0]["reason"]


@pytest.mark.parametrize(
    ("changes", "status", "words"),
    [
        (("keep:9",), 1, "There is no step 9; the run has steps 0 to 4"),
        (("keep:1",), 1, "counter calls count) is not an answer of a model; the nearest is step 0"),
        (("fix:2=There are 310 pieces of kettle.",), 1, "has this answer already"),
        (("result:2=7",), 1, "not a tool call with a result; the nearest is step 1"),
        (("keep:0", "resample:2"), 2, "a replay makes one change, and not keep:0 and resample:2"),
        (("result:1=7", "keep:2"), 2, "a replay makes one change, and not result:1=7 and keep:2"),
        (("result:1=7", "fix:2=There are 310 pieces of kettle."), 1, "has this answer"),
        (("fix:2=a", "fix:2=b"), 2, "fix: names step 2 twice"),
        (("hold:2",), 2, "--change is KIND:STEP"),
        (("start:2",), 2, "--change is KIND:STEP"),
        (("fix:x=y",), 2, "fix: is STEP=TEXT or STEP=@FILE"),
        (("model:2",), 2, "model: is STEP=NAME"),
        (("resample:2=x",), 2, "resample: is STEP"),
        (("drop:two",), 2, "drop: is STEP or drop:STEP=TEXT"),
        (("fix:2=@/no/such/file",), 2, "cannot be read"),
    ],
)
def test_a_change_that_cannot_be_made_is_refused(
    replay, tmp_path: Path, changes: tuple[str, ...], status: int, words: str
) -> None:
    mark = tmp_path / "ran"
    options = [part for change in changes for part in ("--change", change)]
    ended, _, err = replay("--yes", *options, program=("/bin/touch", str(mark)))
    assert ended == status
    assert words in " ".join(err.split())
    assert not mark.exists()


def test_live_calls_are_announced(replay) -> None:
    status, _, err = replay("--change", "keep:2", "--repeat", "3", "--max-calls", "5")
    assert status == 2
    assert "About 6 model calls go to the program's model, at most 5." in " ".join(err.split())


@pytest.mark.parametrize(
    ("given", "arm"),
    [
        (["fix:3=a=b"], ReplayArm("fix", 3, Fix("person", "a=b"))),
        (
            ["fix:5=late", "fix:3=a"],
            ReplayArm("fix", 3, Fix("person", "a"), also=((5, Fix("person", "late")),)),
        ),
        (["result:1=7"], ReplayArm("result", 1, Fix("person", "7", result=True))),
        (
            ["fix:5=late", "fix:3=text", "result:3=7", "result:1=a=b"],
            ReplayArm(
                "result",
                1,
                Fix("person", "a=b", result=True),
                also=(
                    (3, Fix("person", "text")),
                    (3, Fix("person", "7", result=True)),
                    (5, Fix("person", "late")),
                ),
            ),
        ),
        (["keep:4"], ReplayArm("keep", 4)),
        (["drop:2"], ReplayArm("drop", 2)),
        (["drop:2=no"], ReplayArm("drop", 2, Fix("person", "no"))),
        (["model:2=org/m=1"], ReplayArm("model", 2, Fix("stronger model", model="org/m=1"))),
        ([], None),
        (["start"], ReplayArm("start")),
        (["resample:2"], ReplayArm("resample", 2)),
        (['arguments:2={"a": "="}'], ReplayArm("arguments", 2, Fix("person", '{"a": "="}'))),
    ],
)
def test_changes_name_an_arm(given: list[str], arm: ReplayArm | None) -> None:
    assert arm_of(given) == arm
