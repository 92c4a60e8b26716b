"""Two errors of which each is enough, end to end: no single fix helps, and a joint one is a proof."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confirmations import Failed, environment, failed_shop
from scripted_llm import last_text, system_text

from mast_trace_dashboards.cli.app import run
from mast_trace_judge.arms import Fix, ReplayArm
from mast_trace_lab.program.setup import Setup
from mast_trace_lab.replay.arm_runner import run_arm

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mast_trace_judge.arms import ArmResult

pytestmark = [pytest.mark.end_to_end, pytest.mark.slow, pytest.mark.timeout(600)]

QUOTE = Path(__file__).parents[2] / "judge" / "replay" / "quote.py"
COUNTED, PRICED, ORDERED = range(3)
"""Steps of the recorded run."""
FIXES = {COUNTED: "Missing: 210.", PRICED: "The price is 79 EUR."}


def errs_twice(request: dict) -> str:
    """Misread the stock and the list, always; write down what the reports say."""
    said = last_text(request)
    if "You are counter." in system_text(request):
        return "Missing: 30."
    if "You are pricer." in system_text(request):
        return "The price is 97 EUR."
    found = re.search(r"Missing: (\d+)\. The price is (\d+)", said)
    return f"Order {found[1]} kettles at {found[2]} EUR." if found else "Order nothing."


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Failed]:
    """A stored failure with two errors; the model goes on making both."""
    folder = tmp_path_factory.mktemp("quote")
    with failed_shop(folder, program=QUOTE, answers=errs_twice, wrong=errs_twice) as made:
        yield made


def replayed(failed: Failed, arm: ReplayArm) -> ArmResult:
    """Replay an arm of the run."""
    return run_arm(failed.recorded, Setup(failed.command, timeout=60.0), arm)


def test_a_stronger_model_may_be_one_part(failed: Failed) -> None:
    """It is asked at its agent's turn alone; later calls go to the program's model."""
    strong = Fix("stronger model", model="large")
    done = replayed(
        failed, ReplayArm("fix", COUNTED, Fix("person", "Missing: 9."), also=((PRICED, strong),))
    )
    assert done.status == "ok"
    assert [each["model"] for each in failed.server.requests[-2:]] == ["large", "small"]
    both = replayed(failed, ReplayArm("model", COUNTED, strong, also=((PRICED, strong),)))
    assert both.status == "ok"
    assert [each["model"] for each in failed.server.requests[-3:]] == ["large", "large", "small"]


def test_both_errors_are_named_together(failed: Failed, capsys: pytest.CaptureFixture[str]) -> None:
    given = [option for step, text in FIXES.items() for option in ("--fix", f"{step}={text}")]
    arguments = failed.arguments(*given, "--set", "resample=false", "--json")
    command = [sys.executable, "-m", "mast_trace_dashboards", *arguments]
    with subprocess.Popen(
        command, env=environment(failed), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        asked = len(failed.server.requests)
        until = time.monotonic() + 120
        while len(failed.server.requests) < asked + 40 and time.monotonic() < until:
            time.sleep(0.05)
        process.kill()
    capsys.readouterr()
    assert run(arguments) == 0
    captured = capsys.readouterr()
    told = json.loads(captured.out)["confirmation"]
    assert told["status"] == "overdetermined", captured.err
    assert "those of step 0 (counter) and step 1 (pricer) together do: " in told["text"]
    # The killed replay is none that is alike.
    assert re.search(r", 0 of \d+ with the steps as recorded$", told["text"])
    assert told["planned_contrasts"] == 3
    singles = [each for each in told["contrasts"] if not each["also"]]
    assert {each["step"]: each["fix_successes"] for each in singles} == {COUNTED: 0, PRICED: 0}
    (joint,) = [each for each in told["contrasts"] if each["also"]]
    assert [(each["step"], each["fix_text"]) for each in joint["also"]] == [(PRICED, FIXES[PRICED])]

    with failed.store() as store:
        rows = store.query(
            "SELECT FixText, Step FROM mast_replays FINAL WHERE FixSource = 'joint' AND Status = 'ok'"
        )
    assert {each["Step"] for each in rows} == {COUNTED}
    parts = json.loads(rows[0]["FixText"])
    assert [(each["step"], each["text"]) for each in parts] == [*FIXES.items()]

    # It is shown again, without replays.
    assert run([each for each in arguments if each != "--json"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "no single correction helps" in shown
    assert "those of step 0 (counter) and step 1 (pricer) together" in shown
