"""The patches of the Anthropic client.

All are installed once the whole package is imported: the classes for Bedrock and Vertex copy
methods of others while they are defined, and would copy patched ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mast_trace.spans import Call, Inside
from mast_trace_instrumentations.anthropic import chat
from mast_trace_instrumentations.base import Args, Instrumentor, Kwargs, Patch

_RESOURCES = (
    ("resources.messages", ""),
    ("resources.beta.messages", ""),
    ("lib.bedrock._beta_messages", "with a copy for Bedrock"),
    ("lib.vertex._beta_messages", "with a copy for Vertex"),
)
_MANAGERS = (
    "MessageStreamManager",
    "AsyncMessageStreamManager",
    "BetaMessageStreamManager",
    "BetaAsyncMessageStreamManager",
)


def _patches() -> Iterator[Patch]:
    for resource, optional in _RESOURCES:
        for name in ("Messages", "AsyncMessages"):
            path = f"{resource}.{name}"
            yield Patch("anthropic", f"{path}.create", "begin_call", optional=optional)
            yield Patch("anthropic", f"{path}.parse", "begin_call", optional="since 0.77")
            yield Patch("anthropic", f"{path}.stream", "begin_helper", optional=optional)
    for name in _MANAGERS:
        enter = "__aenter__" if "Async" in name else "__enter__"
        path = f"lib.streaming.{name}"
        yield Patch("anthropic", f"{path}.__init__", "begin_manager")
        yield Patch("anthropic", f"{path}.{enter}", "begin_streaming")
    yield Patch("anthropic", "Stream.close", "begin_close")
    yield Patch("anthropic", "AsyncStream.close", "begin_close")


class AnthropicInstrumentor(Instrumentor):
    """Records model calls through the Anthropic client that nothing above it records."""

    framework = "anthropic"
    distributions = ("anthropic",)
    versions = ("0.49", "3")
    patches = tuple(_patches())

    def begin_call(self, resource: Any, _args: Args, kwargs: Kwargs) -> Call | None:
        """Begin a call."""
        return chat.begin(self.telemetry, resource, kwargs)

    def begin_helper(self, resource: Any, _args: Args, kwargs: Kwargs) -> Call:
        """Hold the request of a stream: it is sent when the stream's block is entered."""
        return Inside(chat.holding(resource, kwargs))

    def begin_manager(self, manager: Any, _args: Args, _kwargs: Kwargs) -> None:
        """Note that request with the manager that will send it, in whatever it is wrapped."""
        chat.note_request(manager)

    def begin_streaming(self, manager: Any, _args: Args, _kwargs: Kwargs) -> Call | None:
        """Begin the call of a stream's block."""
        return chat.begin_noted(self.telemetry, manager)

    def begin_close(self, stream: Any, _args: Args, _kwargs: Kwargs) -> None:
        """End the call of a stream that the program closes."""
        chat.close(stream)
