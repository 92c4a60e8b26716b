"""The patches of a replay are in place from its start to its end."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from mast_trace.replay.player import Player
from mast_trace.replay.tape import Tape
from mast_trace_instrumentations.replay import interception
from mast_trace_instrumentations.replay.interception import Interception
from mast_trace_instrumentations.replay.tools import ToolRow

if TYPE_CHECKING:
    from pathlib import Path

    from fixture_types import Patch

BEFORE, MEANWHILE, AFTERWARDS = MODULES = ("tools_before", "tools_meanwhile", "tools_afterwards")


def called(*modules: str) -> list[str]:
    return [import_module(name).call() for name in modules]


def test_functions_of_frameworks_are_answered(tmp_path: Path, monkeypatch: Patch) -> None:
    """Also in a module that is imported later; a name that a version lacks is passed over."""
    for name in MODULES:
        (tmp_path / f"{name}.py").write_text("def call():\n    return 'executed'\n", "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    targets = [(name, target) for name in MODULES for target in ("lacking.call", "call")]
    rows = [ToolRow(*target, lambda *_: "answered") for target in targets]
    monkeypatch.setattr(interception, "ROWS", rows)
    patches = Interception(Player(Tape("run")))
    assert called(BEFORE) == ["executed"]
    patches.start()
    try:
        assert called(BEFORE, MEANWHILE) == ["answered", "answered"]
    finally:
        patches.stop()
    assert called(*MODULES) == ["executed"] * 3
