"""The patches of LiteLLM's functions and of the streams that they return."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mast_trace_instrumentations.base import Args, Instrumentor, Kwargs, Patch
from mast_trace_instrumentations.litellm import chat
from mast_trace_instrumentations.litellm.chat import CHAT, RESPONSES, TEXT

if TYPE_CHECKING:
    from mast_trace.spans import Call


_CHUNKS = "litellm.litellm_core_utils.streaming_handler"
_EVENTS = "litellm.responses.streaming_iterator"
_BRIDGED = "litellm.responses.litellm_completion_transformation.streaming_iterator"


class LiteLLMInstrumentor(Instrumentor):
    """Records model calls through LiteLLM that nothing above it records."""

    framework = "litellm"
    distributions = ("litellm",)
    versions = ("1.74", "2")
    patches = (
        Patch("litellm", "completion", "begin_chat"),
        Patch("litellm", "acompletion", "begin_chat"),
        Patch("litellm", "text_completion", "begin_text"),
        Patch("litellm", "atext_completion", "begin_text"),
        Patch("litellm", "responses", "begin_response"),
        Patch("litellm", "aresponses", "begin_response"),
        Patch("litellm.router", "run_async_function", wrapper="carry", optional="in some versions"),
        Patch(_CHUNKS, "CustomStreamWrapper.__next__", "begin_step"),
        Patch(_CHUNKS, "CustomStreamWrapper.__anext__", "begin_step"),
        Patch(_CHUNKS, "CustomStreamWrapper.close", "begin_close", optional="in some versions"),
        Patch(_CHUNKS, "CustomStreamWrapper.aclose", "begin_close", optional="in some versions"),
        Patch(_EVENTS, "ResponsesAPIStreamingIterator.__anext__", "begin_step"),
        Patch(_EVENTS, "SyncResponsesAPIStreamingIterator.__next__", "begin_step"),
        Patch(_BRIDGED, "LiteLLMCompletionStreamingIterator.__anext__", "begin_step"),
        Patch(_BRIDGED, "LiteLLMCompletionStreamingIterator.__next__", "begin_step"),
    )

    def begin_chat(self, _instance: Any, args: Args, kwargs: Kwargs) -> Call | None:
        """Begin a chat completion."""
        return chat.begin(self.telemetry, CHAT, args, kwargs)

    def begin_text(self, _instance: Any, args: Args, kwargs: Kwargs) -> Call | None:
        """Begin a completion of a text."""
        return chat.begin(self.telemetry, TEXT, args, kwargs)

    def begin_response(self, _instance: Any, args: Args, kwargs: Kwargs) -> Call | None:
        """Begin a call of the Responses interface."""
        return chat.begin(self.telemetry, RESPONSES, args, kwargs)

    def carry(self, wrapped: Callable[..., Any], _instance: Any, args: Args, kwargs: Kwargs) -> Any:
        """Carry the context over to the thread in which a router's synchronous call runs."""
        function, *rest = args
        return wrapped(chat.carried(function), *rest, **kwargs)

    def begin_step(self, stream: Any, _args: Args, _kwargs: Kwargs) -> Call | None:
        """Observe one step of a stream."""
        return chat.step(stream)

    def begin_close(self, stream: Any, _args: Args, _kwargs: Kwargs) -> None:
        """End the call of a stream that the program closes."""
        chat.close(stream)
