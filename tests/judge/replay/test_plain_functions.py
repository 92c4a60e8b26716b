"""Functions that a program executes by itself: named before anything runs, and counted where they are allowed."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from replays import NOWHERE, parents, record
from scripted_llm import Call, Reply, ScriptedLLM, messages_of

from mast_trace.replay.executions import plain_functions
from mast_trace.replay.recording import NotReplayable
from mast_trace_judge.arms import ReplayArm
from mast_trace_lab.confirm.preparation import check
from mast_trace_lab.program.setup import Setup
from mast_trace_lab.replay import replay
from mast_trace_lab.replay.arm_runner import run_arm

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mast_trace.trajectory import Trajectory
    from mast_trace_lab.replay import Replayed

pytestmark = pytest.mark.end_to_end
BY_HAND = Path(__file__).parent / "by_hand.py"


def answer(request: dict[str, Any]) -> Any:
    last = messages_of(request)[-1]
    return Reply(calls=(Call("charge", {"card": "7"}),)) if last["role"] == "user" else "Charged."


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedLLM]:
    """A model that asks for the tool once."""
    with ScriptedLLM(answer) as made:
        yield made


@pytest.fixture(scope="module")
def made(
    server: ScriptedLLM, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., Trajectory]:
    """Records the program in each of its ways once."""

    @cache
    def run(way: str = "") -> Trajectory:
        folder = tmp_path_factory.mktemp("made")
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("EXECUTED", str(folder / "executed"))
            return record(BY_HAND, *filter(None, [way]), folder=folder, keep="OPENAI_")

    return run


@pytest.fixture(autouse=True)
def environment(server: ScriptedLLM, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.setenv("OPENAI_API_KEY", "scripted")
    monkeypatch.setenv("EXECUTED", str(tmp_path / "executed"))


def again(run: Trajectory, way: str = "", **options: Any) -> Replayed:
    command = (sys.executable, str(BY_HAND), *filter(None, [way]))
    return replay(run, Setup(command, parent=parents(), **options))


@pytest.mark.parametrize(
    ("way", "found"),
    [
        ("", {"charge": 1}),
        ("earlier", {"charge": 1}),
        ("decorated", {}),
        ("block", {}),
        ("unanswered", {}),
    ],
)
def test_the_record_shows_them(
    made: Callable[..., Trajectory], way: str, found: dict[str, int]
) -> None:
    assert plain_functions(made(way)) == found


@pytest.mark.parametrize("way", ["", "block"])
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "`@mast_trace.tool`"),
        ({"live_tools": ["charge"]}, "nothing restores the state"),
        ({"plain": ["other"]}, "charge"),
    ],
)
def test_nothing_runs_unless_it_is_allowed(
    made: Callable[..., Trajectory], tmp_path: Path, way: str, options: dict[str, Any], said: str
) -> None:
    run = made(way)
    with pytest.raises(NotReplayable, match=said):
        again(run, way, **options)
    with pytest.raises(NotReplayable, match=said):
        check(run, Setup((sys.executable, str(BY_HAND)), **options))
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize("way", ["", "earlier", "block"])
@pytest.mark.parametrize(
    "options",
    [{"plain": ["charge"]}, {"plain": ["*"]}, {"live_tools": ["charge"], "reset": ["true"]}],
)
def test_each_execution_is_counted(
    made: Callable[..., Trajectory],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    way: str,
    options: dict[str, Any],
) -> None:
    run = made(way)
    monkeypatch.setenv("OPENAI_BASE_URL", NOWHERE)
    done = again(run, way, **options)
    assert (done.status, done.text) == ("identical", "")
    assert done.report is not None
    assert done.report.live_executions == 1
    assert (tmp_path / "executed").read_text() == "7\n"


def test_one_that_is_decorated_is_answered(made: Callable[..., Trajectory], tmp_path: Path) -> None:
    done = again(made("decorated"), "decorated")
    assert done.status == "identical"
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize("way", ["", "block"])
def test_what_a_live_model_asks_for_is_counted(
    made: Callable[..., Trajectory], tmp_path: Path, way: str
) -> None:
    command = (sys.executable, str(BY_HAND), *filter(None, [way]))
    done = run_arm(
        made(way), Setup(command, plain=["charge"], parent=parents()), ReplayArm("start")
    )
    assert (done.status, done.live_calls, done.live_tools) == ("ok", 2, 1)
    assert (tmp_path / "executed").read_text() == "7\n"
