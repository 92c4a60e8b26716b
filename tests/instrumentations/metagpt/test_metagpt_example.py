"""The example program on MetaGPT runs offline, well and badly."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from code_blocks import PAGES, blocks_of, run
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


def test_the_page_about_it_runs_as_written(tmp_path: Path) -> None:
    """Its program, with the scripted model in MetaGPT's settings: the role's turn is recorded."""
    [block] = [each for each in blocks_of(PAGES / "how-to/metagpt.md") if "run" in each.words]

    def write_settings(address: str) -> None:
        llm = {"api_type": "openai", "model": "gpt-5-mini", "base_url": address, "api_key": "x"}
        (tmp_path / "config").mkdir()
        settings = json.dumps({"llm": {**llm, "stream": False}})
        (tmp_path / "config" / "config2.yaml").write_text(settings)

    home = str(tmp_path)
    ran = run(block, tmp_path, prepare=write_settings, HOME=home, METAGPT_PROJECT_ROOT=home)
    assert ran.named("invoke_agent")
    assert ran.named("chat")
    assert "record_outcome success" in [span.name for span in ran.spans]
