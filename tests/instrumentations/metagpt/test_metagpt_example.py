"""The example program on MetaGPT runs offline, well and badly."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from installed import installed

if not installed("metagpt.team"):
    pytest.skip("needs MetaGPT; `nox -s framework` has an environment", allow_module_level=True)

pytestmark = pytest.mark.framework("metagpt")

PROGRAM = Path(__file__).parents[3] / "examples" / "metagpt" / "leap_year_team.py"


@pytest.mark.parametrize(
    ("script", "answer"),
    [("fixed", "All tests pass."), ("never-fixed", "The tests still fail.")],
)
def test_the_example_runs_against_its_script(script: str, answer: str, tmp_path: Path) -> None:
    """The code is really run; there is nobody to take the spans."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("OPENAI_")}
    done = subprocess.run(
        [sys.executable, str(PROGRAM), script],
        capture_output=True,
        text=True,
        check=False,
        env={**env, "HOME": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    assert answer in done.stdout.splitlines()
