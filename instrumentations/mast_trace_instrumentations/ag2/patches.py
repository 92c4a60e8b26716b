"""AG2 1.x (``import ag2``): agents, tools, model calls, and the channels of a hub.

The classic API (``import autogen``), which older releases ship under the same name on PyPI, is
another framework: see `mast_trace_instrumentations.autogen`.

AG2's own `TelemetryMiddleware` can stay. Where it writes to the same provider as mast-trace, it is
switched off, because both make the standard ``invoke_agent``, ``chat`` and ``execute_tool`` spans
and nothing may be counted twice; with a provider of its own it works unchanged.
"""

from __future__ import annotations

import atexit
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from mast_trace.spans import Call, Inside, Telemetry, guarded
from mast_trace_instrumentations.ag2.agent import DrivenTurn, TurnScope
from mast_trace_instrumentations.ag2.run import Channels
from mast_trace_instrumentations.ag2.state import here, in_delivery
from mast_trace_instrumentations.ag2.tool import begin_tool
from mast_trace_instrumentations.base import Args, Instrumentor, Kwargs, Patch


class AG2Instrumentor(Instrumentor):
    """Instruments AG2 1.0 up to 1.2."""

    framework = "ag2"
    distributions = ("ag2",)
    versions = ("1.0", "1.3")
    patches = (
        Patch("ag2.agent", "Agent._turn_scope", wrapper="turn_scope"),
        Patch("ag2.tools.executor", "_execute_call", "begin_tool"),
        Patch("ag2.network.hub.core", "Hub._fan_out", "begin_event"),
        Patch("ag2.network.hub.core", "Hub._wal_append", "begin_storing"),
        Patch("ag2.network.hub.core", "Hub._dispatch", "begin_dispatch"),
        Patch("ag2.network.hub.core", "Hub.close", "begin_closing"),
        Patch("ag2.network.client.agent_client", "AgentClient.receive", "begin_receiving"),
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
        """Return whether the package `ag2` is installed and is the one with agents and a network."""
        spec = find_spec("ag2")
        folders = [Path(found) for found in (spec and spec.submodule_search_locations) or ()]
        return any((f / "agent.py").exists() and (f / "network").exists() for f in folders)

    def started(self) -> None:
        """End open channels when the process ends."""
        atexit.register(self._channels.close_all)

    def stopped(self) -> None:
        """End the runs of open channels: nothing more is recorded of them."""
        atexit.unregister(self._channels.close_all)
        self._channels.close_all()

    # -- agents and tools -----------------------------------------------------------------------

    def turn_scope(
        self, wrapped: Callable[..., Any], instance: Any, args: Args, kwargs: Kwargs
    ) -> Any:
        """Record an agent's turn: all ways of asking an agent enter this scope."""
        turn: DrivenTurn | None = None
        given = kwargs
        with guarded("observing an agent's turn"):
            event = args[0] if args else kwargs["event"]
            turn = DrivenTurn(self.telemetry, instance, event, kwargs["context"])
            # The last middleware is the innermost: it sees each request to the model, retries
            # included.
            others = kwargs.get("additional_middleware") or ()
            given = {**kwargs, "additional_middleware": (*others, turn.recorder)}
        if turn is None:
            return wrapped(*args, **kwargs)
        return TurnScope(wrapped(*args, **given), turn)

    def stand_aside(
        self, wrapped: Callable[..., Any], instance: Any, args: Args, kwargs: Kwargs
    ) -> Any:
        """Replace AG2's own telemetry by a no-op where both would write to one provider."""
        with guarded("looking at AG2's own telemetry"):
            if _same_provider(instance, self.telemetry):
                from ag2.middleware import BaseMiddleware

                return BaseMiddleware(*args, **kwargs)
        return wrapped(*args, **kwargs)

    def begin_tool(self, _instance: Any, args: Args, kwargs: Kwargs) -> Call:
        """Begin a tool call; unknown tools pass here too."""
        return begin_tool(self.telemetry, *args, **kwargs)

    # -- the network ----------------------------------------------------------------------------

    def begin_event(self, hub: Any, args: Args, kwargs: Kwargs) -> None:
        """Follow the life of channels, and the turns that fail in them."""
        self._channels.hub_event(self.telemetry, hub, *args, **kwargs)

    def begin_storing(self, hub: Any, args: Args, kwargs: Kwargs) -> None:
        """Write the run into an envelope before it is stored, in AG2's field for trace contexts."""
        self._channels.stamp(self.telemetry, hub, *args, **kwargs)

    def begin_dispatch(self, hub: Any, args: Args, kwargs: Kwargs) -> None:
        """Record a message: it is accepted and stored, but not delivered yet."""
        self._channels.message(self.telemetry, hub, *args, **kwargs)

    def begin_receiving(self, client: Any, args: Args, kwargs: Kwargs) -> Call:
        """Handle an envelope inside the run of its channel: the delivery carries no context."""
        context = self._channels.context_of(args[0] if args else kwargs["envelope"])
        return Inside(in_delivery(client, here() if context is None else context))

    def begin_closing(self, hub: Any, _args: Args, _kwargs: Kwargs) -> Call:
        """End the runs of channels that a closing hub leaves open."""
        return Inside(end=lambda *_: self._channels.close_all(hub))


def _same_provider(middleware: Any, telemetry: Telemetry) -> bool:
    """Return whether both providers pass their spans to the same processors."""
    ours = getattr(telemetry._tracer, "span_processor", None)  # noqa: SLF001
    theirs = getattr(getattr(middleware, "_tracer", None), "span_processor", None)
    return theirs is not None and theirs is ours
