"""The patches of the Google Gen AI client.

The methods that send one request each are private. The public ones above them, those of chats
included, send several when the client executes functions by itself.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING, Any

from mast_trace_instrumentations.base import Args, Instrumentor, Kwargs, Patch
from mast_trace_instrumentations.google_genai import chat, tool

if TYPE_CHECKING:
    from mast_trace.spans import Call


_MODELS = "google.genai.models"
_TOOLS = "google.genai._extra_utils"


class GoogleGenAIInstrumentor(Instrumentor):
    """Records model calls through the Google Gen AI client that nothing above it records."""

    framework = "google_genai"
    distributions = ("google-genai",)
    versions = ("1.30", "4")
    patches = (
        Patch(_MODELS, "Models._generate_content", "begin_call"),
        Patch(_MODELS, "AsyncModels._generate_content", "begin_call"),
        Patch(_MODELS, "Models._generate_content_stream", wrapper="stream"),
        Patch(_MODELS, "AsyncModels._generate_content_stream", wrapper="astream"),
        Patch(_TOOLS, "invoke_function_from_dict_args", "begin_tool"),
        Patch(_TOOLS, "invoke_function_from_dict_args_async", "begin_tool"),
    )

    def begin_call(self, models: Any, _args: Args, kwargs: Kwargs) -> Call | None:
        """Begin a call."""
        return chat.begin(self.telemetry, models, kwargs)

    def stream(
        self, wrapped: Callable[..., Iterator[Any]], models: Any, args: Args, kwargs: Kwargs
    ) -> Iterator[Any]:
        """Observe a stream, whose request is sent when its first piece is asked for."""
        return chat.stream(self.telemetry, models, kwargs, wrapped(*args, **kwargs))

    async def astream(
        self, wrapped: Callable[..., Any], models: Any, args: Args, kwargs: Kwargs
    ) -> AsyncIterator[Any]:
        """Observe an asynchronous stream, whose request is sent at once."""
        return await chat.astream(self.telemetry, models, kwargs, lambda: wrapped(*args, **kwargs))

    def begin_tool(self, _instance: Any, args: Args, kwargs: Kwargs) -> Call | None:
        """Begin the execution of a function that the client executes by itself."""
        return tool.begin(self.telemetry, *_invoked(*args, **kwargs))


def _invoked(args: Any, function_to_invoke: Any) -> tuple[Any, Any]:
    """Bind the arguments, passed by position or by name."""
    return args, function_to_invoke
