"""`mast-trace inject` and `dataset build` end to end: real processes on a model that reads its input."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confirmations import SHOP, failed_shop, keep, spent
from policies import shop
from replays import record
from scripted_llm import Reply, ScriptedLLM, last_text

from mast_trace_collector.storage import Store
from mast_trace_dashboards.cli.app import run
from mast_trace_judge.store.injections import injections
from mast_trace_judge.study.labelled import read_injected
from mast_trace_lab.inject.operators.phrases import SENTENCES
from mast_trace_lab.program.conducting import INTERRUPTED

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.end_to_end, pytest.mark.slow, pytest.mark.timeout(600)]

PYTHON = sys.executable
REPORTED = 2
"""The step in which the counter reports the stock."""
MOST_CALLS = 60
"""Live calls for one fault of the shop, with those of a replay that is lost."""
WRITTEN = "I take it that the common amount is meant."
PHRASED = ("--yes", "--set", "phrasings=model", "--operator", "2.2-assume", "--count", "1")


def asking(request: dict[str, Any]) -> str:
    """Let the counter ask something in its report."""
    if "stock of" in last_text(request):
        return "There are 130 pieces of kettle, do you need more?"
    return shop(request)


def misread_and_ask(request: dict[str, Any]) -> str:
    """Report another number than the tool's result, with a question after it."""
    return asking(request).replace("130", "310")


@dataclass
class Succeeded:
    """A stored success of the shop, and the command line on it."""

    url: str
    program: Path
    server: ScriptedLLM
    capture: pytest.CaptureFixture[str]

    def __call__(self, *options: str, command: str = PYTHON) -> tuple[int, str, str]:
        """Return status, output and errors of `inject`."""
        program = ["--", command, str(self.program)] if command else []
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
    with ScriptedLLM(asking) as server, pytest.MonkeyPatch.context() as patch:
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


@pytest.fixture
def writer(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedLLM]:
    """A judge's model that writes three sentences, of which one passes the checks."""
    lies = (SENTENCES["2.2-assume"].written[0], "I assume that it is 210.")
    with ScriptedLLM(lambda _: json.dumps({"sentences": [*lies, WRITTEN]})) as server:
        monkeypatch.setenv("MAST_TRACE_JUDGE_MODEL", "writer")
        monkeypatch.setenv("MAST_TRACE_JUDGE_BASE_URL", server.url)
        monkeypatch.setenv("MAST_TRACE_JUDGE_ATTEMPTS", "1")
        yield server


def test_a_fault_becomes_a_dataset(inject: Succeeded, writer: ScriptedLLM, tmp_path: Path) -> None:
    """A model phrases it; the command tells the counts, plants and asks nothing twice, and the set is built."""
    status, out, err = inject(*PHRASED, "--json")
    assert status == 0, err
    (planted,) = json.loads(out)
    where = [planted[name] for name in ("operator", "step", "agent")]
    assert where == ["2.2-assume", REPORTED, "counter"]
    what = [planted[name] for name in ("verdict", "decisive", "deterministic")]
    assert what == ["kept", True, True]
    assert (planted["change"]["text"], planted["change"]["phrased_by"]) == (WRITTEN, "writer")
    told = "2.2-assume: 1 of 3 sentences of the model passed the checks (refused: 1 a figure or a name, 1 not new)"
    assert f"{told}; 0 of 1 faults use a rule's sentence." in " ".join(err.split())
    asked = len(inject.server.requests)
    status, out, _ = inject(*PHRASED)
    assert status == 0
    assert "2.2-assume" in out
    assert len(inject.server.requests) == asked
    assert len(writer.requests) == 1
    # Another seed comes to the same fault, which is decided.
    status, out, _ = inject(*PHRASED, "--seed", "2")
    assert status == 0
    told = "0 replays, 0 live model calls. 1 fault was decided before under the same setup and not replayed again."
    assert told in " ".join(out.split())
    assert len(inject.server.requests) == asked
    folder = tmp_path / "set"
    status, out, _ = inject.run("dataset", "build", "--url", inject.url, "--out", str(folder))
    assert status == 0
    assert "Wrote 1 run " in out
    (labelled,) = read_injected(folder)
    assert (labelled.step, labelled.agent) == (REPORTED, "counter")
    assert labelled.trajectory.steps[REPORTED].text == WRITTEN
    # The original run is the only one in lists.
    _, out, _ = inject.run("runs", "--url", inject.url, "--json")
    assert len(json.loads(out)) == 1


def test_a_killed_injection_goes_on(inject: Succeeded) -> None:
    """Killed within a faulty replay: no label is doubled, the fault is decided, and the budget holds over both processes."""
    halted, go = threading.Event(), threading.Event()

    def halts(request: dict[str, Any]) -> Reply | str:
        said = last_text(request)
        if "Missing: " in said and "Missing: 210" not in said:  # the buyer reads the planted number
            halted.set()
            go.wait()
        return asking(request)

    with Store.open(inject.url) as store:
        calls_before = spent(store)[1]
        planted_before = len(list(injections(store)))
    asked_before = len(inject.server.requests)
    inject.server.script = halts
    options = ["--yes", "--operator", "2.6-computed", "--count", "1", "--set", "preload=openai"]
    options += ["--max-calls", str(MOST_CALLS)]
    program = ["--", sys.executable, str(inject.program)]
    process = subprocess.Popen(
        [sys.executable, "-m", "mast_trace_dashboards", "inject", "--url", inject.url, *options, "last", *program],
        stdout=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        while not halted.wait(0.05):
            assert process.poll() is None
    finally:
        process.kill()
        process.wait()
        inject.server.script = asking
        go.set()

    def used() -> tuple[int, int]:
        """Return the calls that the server saw, and those that the store counts."""
        with Store.open(inject.url) as store:
            counted = spent(store)[1] - calls_before
        return len(inject.server.requests) - asked_before, counted

    seen, counted = used()
    assert 0 < seen <= counted <= MOST_CALLS
    status, out, err = inject(*options, "--json")
    assert status == 0, err
    (planted,) = json.loads(out)
    assert (planted["verdict"], planted["agent"]) == ("kept", "planner")
    seen, counted = used()
    assert seen <= counted <= MOST_CALLS
    with Store.open(inject.url) as store:
        assert len(list(injections(store))) == planted_before + 1
        (row,) = store.query(
            "SELECT countIf(Status = 'reserved') AS Open, countIf(Reason = {lost:String}) AS Lost"
            " FROM mast_replays FINAL",
            {"lost": INTERRUPTED},
        )
    assert row == {"Open": 0, "Lost": 1}


def test_a_model_that_cannot_be_asked_plants_nothing(
    inject: Succeeded, writer: ScriptedLLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer.script = lambda _: Reply("out of order", status=500)
    asked = len(inject.server.requests)
    status, out, err = inject(*PHRASED, "--seed", "7")
    assert (status, out) == (1, "")
    assert "out of order" in err
    monkeypatch.delenv("MAST_TRACE_JUDGE_MODEL")
    status, out, err = inject(*PHRASED)
    assert (status, out) == (2, "")
    assert "Set MAST_TRACE_JUDGE_MODEL" in " ".join(err.split())
    assert len(inject.server.requests) == asked


@pytest.mark.parametrize(
    ("options", "command", "status", "said"),
    [
        ((), PYTHON, 2, "Add --yes"),
        (("--yes",), "", 2, "name your program after --"),
        (("--yes", "--operator", "9.9"), PYTHON, 2, "no operator 9.9; there are 1.1-unit"),
        (("--yes", "--operator", "3.3"), PYTHON, 1, "no operator applies"),
        (("--yes", "--set", "budget.usd=1"), PYTHON, 2, "needs the price of small"),
        (("--yes",), "/no-such-program", 2, "cannot start /no-such-program"),
    ],
)
def test_refusals_ask_no_model(
    inject: Succeeded, options: tuple[str, ...], command: str, status: int, said: str
) -> None:
    asked = len(inject.server.requests)
    ended, _, err = inject(*options, command=command)
    assert ended == status
    assert said in " ".join(err.split())
    assert len(inject.server.requests) == asked


def test_a_failed_run_is_refused(tmp_path: Path, inject: Succeeded, writer: ScriptedLLM) -> None:
    with failed_shop(tmp_path, wrong=misread_and_ask) as failed:
        options = ("--yes", "--set", "phrasings=model", "--url", failed.url)
        # The import judges the run by the configured model.
        before = len(writer.requests)
        status, _, err = inject.run("inject", *options, "last", "--", *failed.command)
    assert status == 1
    assert "has not succeeded" in err
    assert len(writer.requests) == before
