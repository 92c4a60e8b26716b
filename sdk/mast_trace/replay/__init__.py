"""Replays a recorded run: its program runs again, with model and tool calls answered from the record.

A program, or a test, replays a run in its own process::

    from mast_trace.replay import replayed

    with replayed("runs/refund.jsonl") as replay:
        my_team.main()
    print(replay.report.divergence or "as recorded")

`replayed` needs neither pytest nor a store. Importing this package loads nothing else; each name loads
its module at first use.

The record is a `tape.Tape`, which `recording.tape_of` makes from a run's trajectory. A `player.Player`
answers calls from the tape and notes the first divergence; `program` sets the player up in the process
that `mast-trace replay` has started. These modules are loaded only while a run is replayed.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from mast_trace.replay.canonical import normalize
    from mast_trace.replay.recording import NotReplayable
    from mast_trace.replayed_run import ReplayedRun, replayed

__all__ = ["NotReplayable", "ReplayedRun", "normalize", "replayed"]

_HOMES: Final = {
    "NotReplayable": "mast_trace.replay.recording",
    "normalize": "mast_trace.replay.canonical",
    "ReplayedRun": "mast_trace.replayed_run",
    "replayed": "mast_trace.replayed_run",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
