"""CrewAI: crews, flows, delegation and guardrails, from the framework's own event bus.

The bus emits in the thread and context of the work, in order, so one patch of `emit` sees nearly
everything. Subscribing instead would see it late, out of order and without context: handlers run in
a pool of threads.
"""

from __future__ import annotations

import asyncio
import inspect
from typing import TYPE_CHECKING, Any

from mast_trace import semconv
from mast_trace.spans import current_run, guarded
from mast_trace_instrumentations.base import Instrumentor
from mast_trace_instrumentations.crewai import state
from mast_trace_instrumentations.crewai.calls import CallWrappers
from mast_trace_instrumentations.crewai.events import EventRecorder
from mast_trace_instrumentations.crewai.run import MAX_TURNS
from mast_trace_instrumentations.crewai.targets import PATCHES

if TYPE_CHECKING:
    from collections.abc import Callable


class CrewAIInstrumentor(CallWrappers, Instrumentor):
    """Instruments CrewAI 0.177 up to 1.x."""

    framework = "crewai"
    distributions = ("crewai",)
    versions = ("0.177", "2")
    patches = PATCHES

    def started(self) -> None:
        """Begin with an empty record."""
        self.recorder = EventRecorder(self.telemetry)

    def emit(
        self, wrapped: Callable[..., Any], _instance: Any, args: Any, kwargs: dict[str, Any]
    ) -> Any:
        """Record an event, then let the bus have it."""
        with guarded("recording an event of CrewAI"):
            source, event = _arguments(*args, **kwargs)
            self.recorder.record(source, event)
        return wrapped(*args, **kwargs)

    def delegate(
        self, wrapped: Callable[..., Any], instance: Any, args: Any, kwargs: dict[str, Any]
    ) -> Any:
        """Note a delegation to a coworker that does not exist: CrewAI reports it as a success."""
        result = wrapped(*args, **kwargs)
        with guarded("recording a delegation of CrewAI"):
            name = (args[0] if args else kwargs.get("agent_name")) or ""
            known = {instance.sanitize_agent_name(agent.role) for agent in instance.agents}
            if instance.sanitize_agent_name(name) not in known:
                self.recorder.refused(result, f"unknown coworker: {name}")
        return result

    def max_iterations(
        self, wrapped: Callable[..., Any], _instance: Any, args: Any, kwargs: dict[str, Any]
    ) -> Any:
        """Note that an agent was stopped by its iteration limit."""
        with guarded("recording the iteration limit of CrewAI"):
            run = current_run()
            if run is not None:
                run.marks.add(MAX_TURNS)
        return wrapped(*args, **kwargs)

    def guard(
        self, wrapped: Callable[..., Any], _instance: Any, args: Any, kwargs: dict[str, Any]
    ) -> Any:
        """Close what the call left open. Versions before 1.15.10 emit no end of a failed flow."""
        depth = len(state.frames())
        if inspect.iscoroutinefunction(wrapped):
            return _guarded_coroutine(wrapped(*args, **kwargs), depth)
        try:
            result = wrapped(*args, **kwargs)
        except BaseException as error:
            _close(depth, error)
            raise
        _close(depth, None)
        return result


def _arguments(source: Any, event: Any) -> tuple[Any, Any]:
    """Bind the arguments of `emit`, however they were passed."""
    return source, event


async def _guarded_coroutine(call: Any, depth: int) -> Any:
    try:
        result = await call
    except BaseException as error:
        _close(depth, error)
        raise
    _close(depth, None)
    return result


def _close(depth: int, error: BaseException | None) -> None:
    with guarded("closing spans of CrewAI"):
        for frame in state.unwind(depth):
            if frame.kind == "run" and error is not None:
                frame.span.set({semconv.RUN_TERMINATION_REASON: _termination(error)})
            frame.span.end(error)


def _termination(error: BaseException) -> str:
    if isinstance(error, asyncio.CancelledError | KeyboardInterrupt):
        return semconv.Termination.CANCELLED
    return semconv.Termination.ERROR


__all__ = ["CrewAIInstrumentor"]
