"""AG2 1.x (``import ag2``): agents, tools, model calls, and the channels of a hub.

The classic API (``import autogen``), which older releases ship under the same name on PyPI, is
another framework: see `mast_trace_instrumentations.autogen`.

AG2's own `TelemetryMiddleware` can stay. Where it writes to the provider that mast-trace writes to,
it stands aside, for both make the standard ``invoke_agent``, ``chat`` and ``execute_tool`` spans and
nothing is to be counted twice; with a provider of its own it goes on unchanged.
"""

from __future__ import annotations

import atexit
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mast_trace.spans import guarded
from mast_trace_instrumentations.ag2.agent import Turn, TurnScope
from mast_trace_instrumentations.ag2.run import Channels
from mast_trace_instrumentations.ag2.state import attached
from mast_trace_instrumentations.ag2.tool import execute
from mast_trace_instrumentations.base import Instrumentor, Patch

if TYPE_CHECKING:
    from collections.abc import Callable

    from mast_trace.spans import Telemetry

Call = tuple[Any, ...]


class AG2Instrumentor(Instrumentor):
    """Instruments AG2 1.0 up to 1.2."""

    framework = "ag2"
    distributions = ("ag2",)
    versions = ("1.0", "1.3")
    patches = (
        Patch("ag2.agent", "Agent._turn_scope", wrapper="turn_scope"),
        Patch("ag2.tools.executor", "_execute_call", wrapper="execute_call"),
        Patch("ag2.network.hub.core", "Hub._fan_out", wrapper="hub_event"),
        Patch("ag2.network.hub.core", "Hub._wal_append", wrapper="stamp"),
        Patch("ag2.network.hub.core", "Hub._dispatch", wrapper="dispatch"),
        Patch("ag2.network.hub.core", "Hub.close", wrapper="close_hub"),
        Patch("ag2.network.client.agent_client", "AgentClient.receive", wrapper="receive"),
        Patch(
            "ag2.middleware.builtin.telemetry",
            "TelemetryMiddleware.__call__",
            wrapper="stand_aside",
        ),
    )

    def __init__(self) -> None:
        super().__init__()
        self._channels = Channels()

    def present(self) -> bool:
        """Whether the package `ag2` is there and is the one with agents and a network."""
        spec = find_spec("ag2")
        folders = [Path(found) for found in (spec and spec.submodule_search_locations) or ()]
        return any((f / "agent.py").exists() and (f / "network").exists() for f in folders)

    def started(self) -> None:
        """Channels that nobody closes end with the process."""
        atexit.register(self._channels.close_all)

    def stopped(self) -> None:
        """End the runs of channels that are open: nothing more is recorded of them."""
        atexit.unregister(self._channels.close_all)
        self._channels.close_all()

    # -- agents and tools -----------------------------------------------------------------------

    def turn_scope(
        self, wrapped: Callable[..., Any], instance: Any, args: Call, kwargs: dict[str, Any]
    ) -> Any:
        """Record an agent's turn: every way to ask an agent enters this scope."""
        turn: Turn | None = None
        given = kwargs
        with guarded("observing an agent's turn"):
            event = args[0] if args else kwargs["event"]
            turn = Turn(self.telemetry, instance, event, kwargs["context"])
            # Last is innermost: it sees what the model is sent, once per retry.
            others = kwargs.get("additional_middleware") or ()
            given = {**kwargs, "additional_middleware": (*others, turn.recorder)}
        if turn is None:
            return wrapped(*args, **kwargs)
        return TurnScope(wrapped(*args, **given), turn)

    async def execute_call(
        self, wrapped: Callable[..., Any], _instance: Any, args: Call, kwargs: dict[str, Any]
    ) -> Any:
        """Record a tool call; unknown tools pass here too."""
        return await execute(self.telemetry, wrapped, *args, **kwargs)

    def stand_aside(
        self, wrapped: Callable[..., Any], instance: Any, args: Call, kwargs: dict[str, Any]
    ) -> Any:
        """Replace AG2's own telemetry by nothing where both would write to one provider."""
        with guarded("looking at AG2's own telemetry"):
            if _same_provider(instance, self.telemetry):
                from ag2.middleware import BaseMiddleware

                return BaseMiddleware(*args, **kwargs)
        return wrapped(*args, **kwargs)

    # -- the network ----------------------------------------------------------------------------

    async def hub_event(
        self, wrapped: Callable[..., Any], instance: Any, args: Call, kwargs: dict[str, Any]
    ) -> Any:
        """Follow the life of channels, and the turns that fail in them."""
        with guarded("recording an event of a hub"):
            self._channels.hub_event(self.telemetry, instance, *args, **kwargs)
        return await wrapped(*args, **kwargs)

    async def stamp(
        self, wrapped: Callable[..., Any], instance: Any, args: Call, kwargs: dict[str, Any]
    ) -> Any:
        """Write the run into an envelope before it is stored, in AG2's own field for it."""
        with guarded("passing the run on with an envelope"):
            self._channels.stamp(self.telemetry, instance, *args, **kwargs)
        return await wrapped(*args, **kwargs)

    async def dispatch(
        self, wrapped: Callable[..., Any], instance: Any, args: Call, kwargs: dict[str, Any]
    ) -> Any:
        """Record a message: it is accepted and stored, and its receivers do not have it yet."""
        with guarded("recording a message"):
            self._channels.message(self.telemetry, instance, *args, **kwargs)
        return await wrapped(*args, **kwargs)

    async def receive(
        self, wrapped: Callable[..., Any], _instance: Any, args: Call, kwargs: dict[str, Any]
    ) -> Any:
        """Handle an envelope inside the run of its channel: no context comes with the delivery."""
        context = None
        with guarded("receiving a message"):
            context = self._channels.context_of(args[0] if args else kwargs["envelope"])
        with attached(context):
            return await wrapped(*args, **kwargs)

    async def close_hub(
        self, wrapped: Callable[..., Any], instance: Any, args: Call, kwargs: dict[str, Any]
    ) -> Any:
        """End the runs of channels that a closing hub leaves open."""
        try:
            return await wrapped(*args, **kwargs)
        finally:
            with guarded("closing the channels of a hub"):
                self._channels.close_all(instance)


def _same_provider(middleware: Any, telemetry: Telemetry) -> bool:
    """Whether both hand their spans to the same processors."""
    ours = getattr(telemetry._tracer, "span_processor", None)  # noqa: SLF001
    theirs = getattr(getattr(middleware, "_tracer", None), "span_processor", None)
    return theirs is not None and theirs is ours
