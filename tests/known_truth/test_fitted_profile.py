"""A profile fitted to 60 labels of a program is used where it beats the judge and one step that is always named."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("clickhouse_connect", reason="needs a store")
pytest.importorskip("langgraph_supervisor")

from known_truth.failures import OURS
from known_truth.labelled import label
from labelled_set import PROGRAMS

from mast_trace_collector.storage import Store, migrate

if TYPE_CHECKING:
    from pathlib import Path

LABELS = 60
TEAMS = {"openai": (OURS[0], 60), "langgraph": (PROGRAMS[0], 120)}
"""A program of each framework, and its runs in each voice, of which a part fails."""


def fitted(framework: str, folder: Path) -> tuple[int, dict[str, Any], bool]:
    """Fit to people's labels; return the exit status, the report, and whether a file was written."""
    file = folder / f"{framework}.json"
    command = ("judge", "fit", "--framework", framework, "--out", str(file), "--json")
    place = ("--url", f"chdb://{folder / 'store'}")
    done = subprocess.run(
        [sys.executable, "-m", "mast_trace_dashboards", *command, *place],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)["report"], file.exists()


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_held_out_gain_of_a_profile(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Store.open(f"chdb://{tmp_path / 'store'}") as store:
        migrate(store)
        for program, runs in TEAMS.values():
            assert label(store, program, sys.executable, LABELS, runs) == LABELS
    found = {framework: fitted(framework, tmp_path) for framework in TEAMS}
    for framework, (status, report, written) in found.items():
        told, (program, _) = report["people"], TEAMS[framework]
        with capsys.disabled():
            shares = ", ".join(
                f"{each} {told[each]:.1%}" for each in ("before", "fitted", "constant")
            )
            print(f"\n{program.name}, {told['runs']} runs: {shares}; used: {written}")  # noqa: T201
        assert told["runs"] == LABELS
        better = told["difference"]["low"] > 0 and told["fitted"] > told["constant"]
        assert (status, written) == ((0, True) if better else (1, False))
    # Three agents who each err in their turn; and a team whose review leaves the last answer as the one that counts.
    gained, refused = (found[framework][1] for framework in TEAMS)
    assert gained["people"]["fitted"] > gained["people"]["constant"] + 0.3
    assert gained["decision"]["better"]
    assert refused["people"]["fitted"] > refused["people"]["before"]
    assert "one step, always named" in refused["decision"]["held_back"]
