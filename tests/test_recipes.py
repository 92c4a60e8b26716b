"""The recipes for developers apply to the code as it is, and what they add works."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

import pytest
from program_runs import run_program
from toml_files import tomllib

HERE = Path(__file__).parent.parent
RECIPES = HERE / "docs" / "develop" / "recipes.md"
PACKAGES = ("sdk", "instrumentations", "collector", "judge", "dashboards", "lab")
FOLLOWED = """
from dataclasses import replace
from pathlib import Path

from mast_trace.trajectory import Step, StepKind, Trajectory
from mast_trace_collector.storage import Store, migrate
from mast_trace_dashboards.alerts.config import AlertConfig
from mast_trace_dashboards.grafana.dashboards import DASHBOARDS
from mast_trace_dashboards.queries import QUERIES
from mast_trace_judge.local.rules import RULES, find_modes
from mast_trace_judge.store.verdicts import load_latest, save
from mast_trace_judge.verdict import Verdict

thanks = Step(0, StepKind.MESSAGE, "a", "Thank you!", span_id="", start=0, end=0)
run = Trajectory("t", tuple(replace(thanks, index=number) for number in range(3)))
assert "thanked_each_other" in [rule.__name__ for rule in RULES]
assert "1.5" in [found.code for found in find_modes(run)]

assert AlertConfig.load(alert_timeout_seconds=3.0).alert_timeout_seconds == 3.0
assert any("Tokens by service" in str(each) for each in DASHBOARDS)

with Store.open(f"chdb://{Path.cwd()}/db") as store:
    assert migrate(store)[-1] == 43
    assert QUERIES["service_tokens"].run(store) == []
    moment = "2026-01-02T03:04:05Z"
    verdict = Verdict(trace_id="t", fingerprint="f", judge_version="v", judged_at=moment,
                      run_start=moment, run_end=moment, steps=3, judging_seconds=1.5)
    save(store, [verdict])
    assert load_latest(store, "t") == verdict
print("followed")
"""


def differences() -> list[str]:
    """The differences of the recipes, in order."""
    return re.findall(r"```diff\n(.*?)```", RECIPES.read_text("utf-8"), re.DOTALL)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the repository's packages."""
    folder = tmp_path_factory.mktemp("repository")
    ignored = shutil.ignore_patterns("__pycache__")
    for package in PACKAGES:
        shutil.copytree(HERE / package, folder / package, ignore=ignored)
    shutil.copy(HERE / "pyproject.toml", folder)
    return folder


def test_the_recipes_can_be_followed(copy: Path) -> None:
    """One after the other; then the copy has the entry, the rule, the query, the setting, the field."""
    assert len(differences()) == 6
    for difference in differences():
        alone = {**os.environ, "GIT_CEILING_DIRECTORIES": str(copy.parent)}
        applying = ("git", "apply", "--verbose", "-")
        applied = run_program(*applying, cwd=copy, input=difference, env=alone)
        assert applied.returncode == 0, f"{applied.stderr}\nfrom {RECIPES.name}:\n{difference}"
    ended = run_program(
        *(sys.executable, "-c", FOLLOWED),
        cwd=copy,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(str(copy / package) for package in PACKAGES),
        },
        timeout=120,
    )
    assert ended.stdout == "followed\n", ended.stderr
    project = tomllib.loads((copy / "pyproject.toml").read_text("utf-8"))["project"]
    assert "newteam" in project["entry-points"]["mast_trace_instrumentor"]
