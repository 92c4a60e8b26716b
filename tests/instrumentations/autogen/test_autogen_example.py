"""The example program on AG2 classic runs offline, well and badly."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from code_blocks import PAGES, blocks_of, run

pytest.importorskip("autogen.agentchat.group", reason="needs AG2 classic (`import autogen`)")

pytestmark = pytest.mark.framework("autogen")

PROGRAM = Path(__file__).parents[3] / "examples" / "autogen_group_chat.py"


@pytest.mark.parametrize(
    ("script", "answer"),
    [
        ("refunded", "We are sorry about the leak and return your 59 EUR."),
        ("wrong-policy", "We are sorry, but the time for a refund is over."),
    ],
)
def test_the_example_runs_against_its_script(script: str, answer: str) -> None:
    """Its team answers the customer, with nobody there to take the spans."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("OPENAI_")}
    done = subprocess.run(
        [sys.executable, str(PROGRAM), script],
        capture_output=True,
        text=True,
        check=False,
        env=env,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == answer


def test_the_page_about_it_runs_as_written(tmp_path: Path) -> None:
    """Its program, against a model that calls the tool once: the turn, the call and the answer are recorded."""
    [block] = [each for each in blocks_of(PAGES / "how-to/ag2-classic.md") if "run" in each.words]
    ran = run(block, tmp_path)
    assert ran.named("invoke_agent")[0] == "clerk"
    assert ran.named("execute_tool") == ["price_of"]
    assert "record_outcome success" in [span.name for span in ran.spans]
