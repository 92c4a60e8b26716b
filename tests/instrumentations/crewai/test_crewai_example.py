"""The example program on CrewAI runs offline, well and badly."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
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
