"""The command that builds a labelled set from the example programs, and what other commands make of the set."""

from __future__ import annotations

import importlib
import json
import sys
from typing import TYPE_CHECKING

import pytest

from mast_trace_dashboards.cli.app import run
from mast_trace_judge.study.labelled import read_injected

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = [pytest.mark.end_to_end, pytest.mark.slow, pytest.mark.timeout(300)]

NOWHERE = "http://127.0.0.1:9"
"""A proxy at which nothing listens: what leaves this machine fails."""


@pytest.fixture
def build(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Run the command without a key, and without a network."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, NOWHERE)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")

    def run_it(*arguments: object) -> None:
        monkeypatch.setattr(sys, "argv", ["labelled_set.py", *map(str, arguments)])
        importlib.import_module("labelled_set").main()

    return run_it


def test_a_set_is_built_by_one_command_and_read_by_others(
    build: Callable[..., None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One program and one fault, for time; the label stands in the set, the benchmark and another store."""
    pytest.importorskip("ag2")
    folder = tmp_path / "planted"
    build("--out", folder, "--program", "ag2_group_chat.py", "--count", 1)
    assert capsys.readouterr().out.startswith("ag2_group_chat.py, voice 1 of 3: 1 kept in ")
    (labelled,) = read_injected(folder)
    assert labelled.trajectory.framework == "ag2"
    assert labelled.trajectory.outcome == "failure"
    assert labelled.step is not None
    card = (folder / "card.md").read_text("utf-8")
    assert ("Apache-2.0" in card, labelled.extra["operator"] in card) == (True, True)
    assert run(["judge", "bench", "--data", str(folder), "--layers", "rules", "--uncertain", "--json"]) == 0  # fmt: skip
    (planted,) = json.loads(capsys.readouterr().out)["planted"]
    assert (planted["code"], planted["runs"]) == (next(iter(labelled.modes)), 1)
    other = ["--url", f"chdb://{tmp_path / 'other'}", "--json"]
    assert run(["migrate", *other[:2]]) == 0
    capsys.readouterr()
    assert run(["import", str(folder), *other]) == 0
    taken = json.loads(capsys.readouterr().out)
    assert (taken["faults"], taken["new_faults"]) == (1, 1)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--program", "none.py"], "error: there is no program none.py; there are langgraph_team.py,"),
        (["--python", "crewai_stock.py=/nowhere"], "error: there is no Python /nowhere for crewai_stock.py"),
    ],
)  # fmt: skip
def test_a_program_that_cannot_be_run_is_named(
    build: Callable[..., None], tmp_path: Path, arguments: list[str], said: str
) -> None:
    with pytest.raises(SystemExit, match=said):
        build("--out", tmp_path / "none", *arguments)
    assert not (tmp_path / "none").exists()
