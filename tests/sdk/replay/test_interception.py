"""The patches of a replay are in place from its start to its end."""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest

from mast_trace.replay.player import Player
from mast_trace.replay.tape import Execution, Tape
from mast_trace_instrumentations.replay import interception
from mast_trace_instrumentations.replay.interception import Interception
from mast_trace_instrumentations.replay.tools import HandMadeTools, ToolFailed, ToolRow

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


@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize("error", [None, "", "KeyError: 'kettle'"])
def test_a_tool_of_the_program_fails_as_it_did(error: str | None, *, later: bool) -> None:
    recorded = Execution("", "count", "{}", "7", error=error, result_type="int")
    tools = HandMadeTools(Player(Tape("run", executions=(recorded,))))

    def answered() -> tuple[Any] | None:
        if later:
            return asyncio.run(tools.answered_async("count", {}, len))
        return tools.answered("count", {}, len)

    if error is None:
        assert answered() == (7,)
    else:
        with pytest.raises(ToolFailed) as failed:
            answered()
        assert str(failed.value) == error
