"""`mast-trace inject` and `dataset build` end to end: real processes on a model that reads its input."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confirmations import SHOP, failed_shop, keep
from policies import shop
from replays import record
from scripted_llm import ScriptedLLM

from mast_trace_dashboards.cli.app import run
from mast_trace_judge.study.datasets.injected import read_injected

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.end_to_end, pytest.mark.slow, pytest.mark.timeout(600)]

PLANNED = 3
"""The step in which the planner computes the order."""


@dataclass
class Succeeded:
    """A stored success of the shop, and the command line on it."""

    url: str
    program: Path
    server: ScriptedLLM
    capture: pytest.CaptureFixture[str]

    def __call__(self, *options: str, command: bool = True) -> tuple[int, str, str]:
        """Return status, output and errors of `inject`."""
        program = ["--", sys.executable, str(self.program)] if command else []
        return self.run("inject", "--url", self.url, *options, "last", *program)

    def run(self, *arguments: str) -> tuple[int, str, str]:
        self.capture.readouterr()
        status = run(arguments)
        told = self.capture.readouterr()
        return status, told.out, told.err


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path, ScriptedLLM]]:
    folder = tmp_path_factory.mktemp("shop")
    program = Path(shutil.copy(SHOP, folder))
    with ScriptedLLM(shop) as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_BASE_URL", server.url)
        patch.setenv("OPENAI_API_KEY", "scripted")
        patch.setenv("EXECUTED", str(folder / "executed"))
        recorded = record(program, folder=folder, keep="OPENAI_")
        assert recorded.outcome == "success"
        keep(recorded, f"chdb://{folder / 'store'}", folder)
        yield f"chdb://{folder / 'store'}", program, server


@pytest.fixture
def inject(stored: tuple[str, Path, ScriptedLLM], capsys: pytest.CaptureFixture[str]) -> Succeeded:
    return Succeeded(*stored, capsys)


def test_a_planted_fault_becomes_a_labelled_set(inject: Succeeded, tmp_path: Path) -> None:
    """The command tells the counts, plants nothing twice, and the set is built from the store."""
    status, out, err = inject("--yes", "--operator", "2.6-computed", "--count", "1", "--json")
    assert status == 0, err
    (planted,) = json.loads(out)
    assert (planted["operator"], planted["step"], planted["agent"]) == (
        "2.6-computed",
        PLANNED,
        "planner",
    )
    assert (planted["verdict"], planted["decisive"], planted["deterministic"]) == (
        "kept",
        True,
        True,
    )
    asked = len(inject.server.requests)
    status, out, _ = inject("--yes", "--operator", "2.6-computed", "--count", "1")
    assert status == 0
    assert "2.6-computed" in out
    assert len(inject.server.requests) == asked
    folder = tmp_path / "set"
    status, out, _ = inject.run("dataset", "build", "--url", inject.url, "--out", str(folder))
    assert status == 0
    assert "Wrote 1 runs" in out
    (labelled,) = read_injected(folder)
    assert (labelled.step, labelled.agent) == (PLANNED, "planner")


def test_injected_runs_are_in_no_list(inject: Succeeded) -> None:
    """The original run is the only one."""
    inject("--yes", "--operator", "2.6-computed")
    _, out, _ = inject.run("runs", "--url", inject.url, "--json")
    assert len(json.loads(out)) == 1


@pytest.mark.parametrize(
    ("options", "command", "status", "said"),
    [
        ((), True, 2, "Add --yes"),
        (("--yes",), False, 2, "after --, the program"),
        (("--yes", "--operator", "9.9"), True, 2, "no operator 9.9; there are 1.1-unit"),
        (("--yes", "--operator", "3.3"), True, 1, "no operator applies"),
        (("--yes", "--max-cost", "1"), True, 2, "needs the price of small"),
    ],
)
def test_refusals_ask_no_model(
    inject: Succeeded, options: tuple[str, ...], command: bool, status: int, said: str
) -> None:
    asked = len(inject.server.requests)
    ended, _, err = inject(*options, command=command)
    assert ended == status
    assert said in " ".join(err.split())
    assert len(inject.server.requests) == asked


def test_a_program_that_cannot_be_started(inject: Succeeded) -> None:
    status, _, err = inject.run(
        "inject", "--yes", "--url", inject.url, "last", "--", "/no-such-program"
    )
    assert status == 2
    assert "cannot start /no-such-program" in err


def test_a_failed_run_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], inject: Succeeded
) -> None:
    with failed_shop(tmp_path) as failed:
        status, _, err = inject.run(
            "inject", "--yes", "--url", failed.url, "last", "--", *failed.command
        )
    assert status == 1
    assert "has not succeeded" in err
