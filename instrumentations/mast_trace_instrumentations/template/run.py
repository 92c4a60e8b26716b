"""Runs of a team: the root span of a trace."""

from __future__ import annotations

import asyncio
from typing import Any

from mast_trace.messages import Message
from mast_trace.semconv import Termination
from mast_trace.spans import Call, Inside, Telemetry


def begin_run(telemetry: Telemetry, team: Any, task: str) -> Call:
    """Begin a run on ``task``; its end records the reason for stopping."""
    run = telemetry.run(team.name, input=[Message(task, role="user")])

    def end(_result: Any, error: BaseException | None) -> None:
        # A consumer that leaves a stream early has cancelled the run; it has not failed.
        left = isinstance(error, GeneratorExit)
        stopped = left or isinstance(error, asyncio.CancelledError | KeyboardInterrupt)
        reason = Termination.COMPLETED if error is None else Termination.ERROR
        run.finish(Termination.CANCELLED if stopped else reason, error=None if left else error)

    return Inside(run.context, end)
