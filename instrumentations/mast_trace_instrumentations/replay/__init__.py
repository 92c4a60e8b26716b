"""Answers a program's model calls and tool calls from the tape of a recorded run.

It is loaded only while a run is replayed; `mast_trace.replay.program` finds it by its entry point.
"""

from mast_trace_instrumentations.replay.interception import Interception

__all__ = ["Interception"]
