"""Replays a recorded run: its program runs again, with model and tool calls answered from the record.

The record is a `tape.Tape`, which `recording.tape_of` makes from a run's trajectory. A `player.Player`
answers calls from the tape and notes the first divergence; `program` sets the player up in the process
that `mast-trace replay` has started. These modules are loaded only while a run is replayed.
"""

from typing import Final

PLAN_VARIABLE: Final = "MAST_TRACE_REPLAY"
"""The environment variable that names a replay's folder, which holds its plan, spans and report."""
