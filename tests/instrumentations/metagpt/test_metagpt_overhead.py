"""The program by which the cost of tracing MetaGPT is measured."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from installed import installed

if not installed("metagpt.team"):
    pytest.skip("needs MetaGPT; `nox -s framework` has environments", allow_module_level=True)

pytestmark = pytest.mark.framework("metagpt")

ROOT = Path(__file__).parents[3]


def test_a_run_has_as_many_steps_as_it_says(tmp_path) -> None:
    """In a process of its own, because MetaGPT reads its settings once; two runs are alike."""
    program = """
        from collections import Counter

        import programs.metagpt_team as program
        from floor import recorded
        from scripted_llm import ScriptedLLM

        with ScriptedLLM(program.script) as model:
            spans = recorded(lambda: program.prepare(model.url))
            requests = len(model.requests)
        kinds = Counter(span.attributes["gen_ai.operation.name"] for span in spans)
        assert kinds["chat"] + kinds["execute_tool"] == program.STEPS, kinds
        assert kinds["invoke_workflow"] == 1
        assert requests == 3 * kinds["chat"], requests
    """
    folders = [ROOT / "benchmarks" / "overhead", ROOT / "benchmarks", ROOT / "examples"]
    found = [*map(str, folders), os.environ.get("PYTHONPATH", "")]
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env={**os.environ, "HOME": str(tmp_path), "PYTHONPATH": os.pathsep.join(found)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-2000:]
