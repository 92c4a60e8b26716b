"""Replays recorded runs: starts the user's program again and answers its calls from the record."""

from mast_trace_lab.replay.runner import Replayed, Status, replay

__all__ = ["Replayed", "Status", "replay"]
