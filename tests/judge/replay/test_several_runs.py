"""Programs that make several runs: the place of the recorded one among them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confirmations import keep
from replays import NOWHERE, parents, record_all
from scripted_llm import ScriptedLLM

from mast_trace.semconv import CALL_KIND, RUN_KIND
from mast_trace_collector.storage import Store
from mast_trace_dashboards.cli.app import run
from mast_trace_judge.arms import ReplayArm
from mast_trace_lab.program.setup import Setup
from mast_trace_lab.replay import replay
from mast_trace_lab.replay.arm_runner import run_arm
from mast_trace_lab.replay.changes import NotConfirmable
from mast_trace_lab.replay.replaying import earlier_runs, run_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mast_trace.trajectory import Trajectory

pytestmark = pytest.mark.end_to_end
LOOP = Path(__file__).parent / "loop.py"
COMMAND = (sys.executable, str(LOOP))


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedLLM]:
    with ScriptedLLM(lambda _: "Done.") as made:
        yield made


@pytest.fixture(scope="module")
def runs(server: ScriptedLLM, tmp_path_factory: pytest.TempPathFactory) -> list[Trajectory]:
    """The recorded runs of the program."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_BASE_URL", server.url)
        patch.setenv("OPENAI_API_KEY", "scripted")
        patch.setenv("OTEL_SERVICE_NAME", "loop")
        return record_all(LOOP, folder=tmp_path_factory.mktemp("loop"), keep="OPENAI_")


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", NOWHERE)
    monkeypatch.setenv("OPENAI_API_KEY", "scripted")


@pytest.mark.parametrize("place", [1, 2, 3])
def test_one_of_several_is_identical(runs: list[Trajectory], place: int) -> None:
    """Those before it are answered from their records, and calls of those after it are no divergence."""
    *earlier, recorded = runs[:place]
    done = replay(recorded, Setup(COMMAND, earlier=earlier, run=place, parent=parents()))
    assert (done.status, done.text) == ("identical", "")


@pytest.mark.parametrize(("way", "place", "said"), [
    ((), 1, "run 2 of this program"),
    ((), 2, "run 1 of this program"),
    (("outside",), 1, "run 1 of this program"),
])  # fmt: skip
def test_a_divergence_says_to_which_run_its_call_belongs(
    runs: list[Trajectory], way: tuple[str, ...], place: int, said: str
) -> None:
    done = replay(runs[place - 1], Setup((*COMMAND, *way), parent=parents()))
    assert done.status == "diverged"
    assert (said in done.text, "--set run=N" in done.text) == (True, True)


def test_nobody_is_told_to_name_the_run_that_is_named(runs: list[Trajectory]) -> None:
    told = replay(runs[1], Setup(COMMAND, run=2, parent=parents())).text
    assert ("run 1 of this program" in told, "--set run=N" in told) == (True, False)


def test_no_later_run_is_live(
    runs: list[Trajectory], server: ScriptedLLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    setup = Setup(COMMAND, earlier=runs[:1], run=2, timeout=60)
    done = run_arm(runs[1], setup, ReplayArm("start"))
    assert (done.status, done.success, done.served_calls, done.live_calls) == ("ok", True, 1, 1)


def test_the_runs_before_are_found_in_the_store(runs: list[Trajectory], tmp_path: Path) -> None:
    url = f"chdb://{tmp_path / 'store'}"
    for each in runs:
        keep(each, url, tmp_path)
    with Store.open(url) as store:
        summary, recorded = run_of(store, runs[2].trace_id, None)
        found = earlier_runs(store, summary, recorded, 3)
        assert [each.task for each in found] == ["first", "second"]
        assert earlier_runs(store, summary, recorded, 1) == ()
        with pytest.raises(NotConfirmable, match="2 runs of loop are stored"):
            earlier_runs(store, summary, recorded, 4)
    options = ("--url", url, "--yes", "--set", "run=3")
    assert run(["replay", *options, runs[2].trace_id, "--", *COMMAND]) == 0
    with Store.open(url) as store:
        (call,) = store.query(
            "SELECT * FROM otel_traces WHERE TraceId = {trace:String} AND SpanName LIKE 'chat%'",
            {"trace": runs[1].trace_id},
        )
        of_kind = {**call["SpanAttributes"], RUN_KIND: CALL_KIND}
        alone = {"TraceId": "c" * 32, "ParentSpanId": "", "SpanAttributes": of_kind}
        store.insert("otel_traces", [{**call, **alone}])
        found = earlier_runs(store, summary, recorded, 4)
        assert {each.trace_id for each in found} == {*(run.trace_id for run in runs[:2]), "c" * 32}
