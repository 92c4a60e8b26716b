"""`mast-trace selftest` end to end: it records a real program, plants faults, judges, and shows the shares."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confirmations import SHOP
from policies import shop
from scripted_llm import ScriptedLLM
from starlette.testclient import TestClient

from mast_trace_collector.storage import Store, migrate
from mast_trace_dashboards.cli.app import run
from mast_trace_dashboards.web.app import web_app
from mast_trace_judge.store.injections import injections
from mast_trace_judge.store.labels import labels_of
from mast_trace_lab.selftest.queries import SELFTESTS
from mast_trace_lab.selftest.store import ALL, selftests

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.end_to_end, pytest.mark.slow, pytest.mark.timeout(600)]


@dataclass
class Command:
    """The command on a store of its own."""

    url: str
    program: Path
    server: ScriptedLLM
    capture: pytest.CaptureFixture[str]

    def __call__(
        self, *options: str, command: tuple[str, ...] | None = None
    ) -> tuple[int, str, str]:
        """Return status, output and errors."""
        program = (sys.executable, str(self.program)) if command is None else command
        self.capture.readouterr()
        status = run(["selftest", "--url", self.url, *options, "--", *program])
        told = self.capture.readouterr()
        return status, told.out, " ".join(told.err.split())


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path, ScriptedLLM]]:
    folder = tmp_path_factory.mktemp("shop")
    url = f"chdb://{folder / 'store'}"
    with Store.open(url) as store:
        migrate(store)
    with ScriptedLLM(shop) as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_BASE_URL", server.url)
        patch.setenv("OPENAI_API_KEY", "scripted")
        patch.setenv("OTEL_SERVICE_NAME", "shop")
        patch.setenv("EXECUTED", str(folder / "executed"))
        yield url, Path(shutil.copy(SHOP, folder)), server


@pytest.fixture
def selftest(system: tuple[str, Path, ScriptedLLM], capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(*system, capsys)


def test_a_system_is_examined_by_one_command(selftest: Command) -> None:
    """It records, plants, judges and stores; the same command again asks no model; people's labels stay none."""
    options = ("--yes", "--runs=2", "--count=2", "--operator=2.6", "--operator=tool-wrong")
    status, out, err = selftest(*options, "--json")
    assert status == 0, err
    told = json.loads(out)
    asked = len(selftest.server.requests)
    assert told["live_calls"] == asked
    shares = {(e["measure"], e["stage"], e["mode"]): e for e in told["shares"]}
    step = shares["step", "before", ALL]
    assert step["runs"] >= 2
    assert 0 <= step["low"] <= step["hits"] / step["runs"] <= step["high"] <= 1
    # Two recordings of a deterministic program are one healthy run.
    healthy = shares["accused", "before", ALL]
    assert (healthy["hits"], healthy["runs"]) == (0, 1)
    survived = shares["survived", "before", ALL]
    assert (survived["hits"], survived["runs"]) == (0, told["verdicts"].get("survived", 0))
    after = shares["step", "after", ALL]
    assert (after["runs"], "too few to fit" in after["note"]) == (0, True)
    status, out, _ = selftest(*options)
    assert status == 0
    assert len(selftest.server.requests) == asked
    text = " ".join(out.split())
    assert "Only 1 healthy run differs from each other; more come from --set tasks=FILE" in text
    counts = told["verdicts"]
    assert f"{sum(counts.values())} faults: {counts['kept']} made the run fail" in text
    assert "too few" in text
    assert "Faulty runs that succeeded and are said to have failed, outcome hidden:" in text
    with Store.open(selftest.url) as store:
        (stored,) = selftests(store)
        assert (stored.id, stored.service) == (told["id"], "shop")
        assert {each.original for each in injections(store)} == {
            row["TraceId"]
            for row in store.query("SELECT TraceId FROM mast_runs ORDER BY Start LIMIT 1")
        }
        assert labels_of(store) == []
        page = TestClient(web_app(store), base_url="http://localhost").get("/judge").text
        rows = SELFTESTS.run(store)
    assert "Self-test of shop" in page
    assert "all together" in page
    assert {row["Mode"] for row in rows} >= {"2.6", ALL}


def test_a_budget_holds_over_recordings_and_replays(selftest: Command) -> None:
    """A small one stops it with a reason; what is stored counts when it goes on."""
    before = len(selftest.server.requests)
    status, _, err = selftest(
        "--yes", "--runs=1", "--count=4", "--seed=7", "--max-calls=20", "--operator=2.6"
    )
    assert len(selftest.server.requests) - before <= 20
    assert "live calls are used" in err
    assert status in {0, 1}


@pytest.mark.parametrize(
    ("options", "command", "status", "said"),
    [
        ((), None, 2, "Add --yes"),
        (("--yes",), (), 2, "name your program after --"),
        (("--yes", "--operator", "9.9"), None, 2, "no operator 9.9"),
        (("--yes",), ("team", "{task}"), 2, "name the file of tasks by --set tasks=FILE"),
        (("--yes",), ("/no-such-program",), 2, "cannot start /no-such-program"),
        (("--yes", "--runs", "1"), (sys.executable, "-c", "print(1)"), 1, "recorded no run"),
    ],
)
def test_refusals(
    selftest: Command,
    options: tuple[str, ...],
    command: tuple[str, ...] | None,
    status: int,
    said: str,
) -> None:
    asked = len(selftest.server.requests)
    ended, _, err = selftest(*options, command=command)
    assert (ended, said in err) == (status, True), err
    assert len(selftest.server.requests) == asked


def test_a_system_that_fails_is_refused(selftest: Command) -> None:
    policy, selftest.server.script = selftest.server.script, lambda _: "Order nothing."
    try:
        status, _, err = selftest("--yes", "--runs", "2", "--seed", "9")
    finally:
        selftest.server.script = policy
    assert status == 1
    assert "0 of 2 recorded runs succeeded" in err


def test_tasks_fill_the_command(selftest: Command, tmp_path: Path) -> None:
    file = tmp_path / "tasks.txt"
    file.write_text("\n\n")
    status, _, err = selftest("--yes", "--set", f"tasks={file}", command=("team", "{task}"))
    assert (status, "has no task" in err) == (2, True)
    file.write_text("one\ntwo\none\n")
    status, _, err = selftest("--yes", "--set", f"tasks={file}", command=("team",))
    assert (status, "write {task} there" in err) == (2, True)
    status, _, err = selftest(
        "--yes", "--set", f"tasks={tmp_path / 'none'}", command=("team", "{task}")
    )
    assert (status, "cannot read" in err) == (2, True)
