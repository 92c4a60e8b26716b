"""The example program on CrewAI runs offline, well and badly."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from code_blocks import PAGES, blocks_of, run
from installed import installed

if not installed("crewai.crew"):
    pytest.skip("needs CrewAI; `nox -s framework` has environments", allow_module_level=True)

import crewai
import crewai_programs  # noqa: F401  # sets CrewAI's surroundings

pytestmark = pytest.mark.framework("crewai")

PROGRAM = Path(__file__).parents[3] / "examples" / "crewai_stock.py"


@pytest.mark.skipif(crewai.__version__.startswith("0."), reason="the script calls tools natively")
@pytest.mark.parametrize(
    ("script", "answer"),
    [
        ("ordered", "340 will be sold and 130 are there: order 210 kettles."),
        ("ignored-stock", "340 will be sold in four weeks: order 340 kettles."),
    ],
)
def test_the_example_runs_against_its_script(script: str, answer: str) -> None:
    """Its crew decides, with nobody there to take the spans."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("OPENAI_")}
    done = subprocess.run(
        [sys.executable, str(PROGRAM), script],
        capture_output=True,
        text=True,
        check=False,
        env=env,
    )
    assert done.returncode == 0, done.stderr
    assert answer in done.stdout.splitlines()


def test_the_page_about_it_runs_as_written(tmp_path: Path) -> None:
    """CrewAI 0.x asks for tools in text, which this model does not; newer ones record the call."""
    [block] = [each for each in blocks_of(PAGES / "how-to/crewai.md") if "run" in each.words]
    ran = run(block, tmp_path)
    assert ran.named("invoke_agent")[0] == "Clerk"
    assert ran.named("execute_tool") == (
        [] if crewai.__version__.startswith("0.") else ["price_of"]
    )
    assert "record_outcome success" in [span.name for span in ran.spans]
