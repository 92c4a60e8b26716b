"""Runs of a team or of an environment."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from opentelemetry import context as otel_context

from mast_trace import semconv
from mast_trace.messages import Message
from mast_trace.spans import Call, Inside, RunSpan, Telemetry, current_run
from mast_trace_instrumentations.metagpt import reading
from mast_trace_instrumentations.metagpt.message import record_message

_MAX_WAITING = 64


class Runs:
    """The runs in progress, and the messages published before they began."""

    def __init__(self) -> None:
        # run_project() publishes the task before run() begins: kept until the run is there.
        self._waiting: dict[int, list[tuple[int, Any]]] = {}
        self._errors: dict[int, BaseException] = {}

    def clear(self) -> None:
        """Forget messages that wait for a run."""
        self._waiting.clear()

    def begin(self, telemetry: Telemetry, name: str, env: Any, *, idea: str = "") -> Call:
        """Begin a run with the messages that were published before it."""
        waiting = self._waiting.pop(id(env), [])
        asked = [reading.message(message) for _, message in waiting] or (
            [Message(idea, role="user")] if idea else []
        )
        start = waiting[0][0] if waiting else None
        span = telemetry.run(name, input=asked, start_time=start)
        for moment, message in waiting:
            record_message(telemetry, env, message, span.context, moment)
        return Inside(span.context, lambda _, error: self._end(span, env, error))

    def noting(self) -> Call:
        """Keep the error of a call: `Team.run` swallows every exception and returns None."""
        return Inside(end=lambda _, error: self._note(error))

    def publish(self, telemetry: Telemetry, env: Any, message: Any) -> None:
        """Record a message, or keep it for the run that is about to begin."""
        if current_run() is not None:
            record_message(telemetry, env, message, otel_context.get_current())
            return
        waiting = self._waiting.setdefault(id(env), [])
        waiting.append((time.time_ns(), message))
        del waiting[:-_MAX_WAITING]

    def _note(self, error: BaseException | None) -> None:
        run = current_run()
        if run is not None and error is not None:
            self._errors[id(run)] = error

    def _end(self, span: RunSpan, env: Any, raised: BaseException | None) -> None:
        noted = self._errors.pop(id(span.run), None)
        error = raised or noted
        error = reading.cause(error) if error else None
        roles = list(env.roles.values())
        items = [item for role in roles for item in reading.open_items(role)]
        span.set({semconv.PLAN_OPEN_ITEMS: items or None})
        span.finish(_termination(error, env), error=error)


def _termination(error: BaseException | None, env: Any) -> str:
    if isinstance(error, asyncio.CancelledError | KeyboardInterrupt):
        return semconv.Termination.CANCELLED
    if error is not None:
        budget = type(error).__name__ == "NoMoneyException"
        return semconv.Termination.BUDGET if budget else semconv.Termination.ERROR
    return semconv.Termination.COMPLETED if env.is_idle else semconv.Termination.MAX_TURNS
