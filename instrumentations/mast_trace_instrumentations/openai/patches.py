"""The patches of the OpenAI client."""

from __future__ import annotations

from typing import Any

from mast_trace_instrumentations.base import Args, Instrumentor, Kwargs, Patch
from mast_trace_instrumentations.openai.chat import CHAT, RESPONSES, ClientCall, begin

_CHAT = "openai.resources.chat.completions"
_RESPONSES = "openai.resources.responses"


class OpenAIInstrumentor(Instrumentor):
    """Records model calls through the OpenAI client that no framework's instrumentation records."""

    framework = "openai"
    distributions = ("openai",)
    versions = ("1.30", "4.0")
    patches = (
        Patch(_CHAT, "Completions.create", "begin_chat"),
        Patch(_CHAT, "AsyncCompletions.create", "begin_chat"),
        Patch(_CHAT, "Completions.parse", "begin_chat", optional="since 1.92"),
        Patch(_CHAT, "AsyncCompletions.parse", "begin_chat", optional="since 1.92"),
        Patch(_RESPONSES, "Responses.create", "begin_response", optional="since 1.66"),
        Patch(_RESPONSES, "AsyncResponses.create", "begin_response", optional="since 1.66"),
        Patch(_RESPONSES, "Responses.parse", "begin_response", optional="since 1.66"),
        Patch(_RESPONSES, "AsyncResponses.parse", "begin_response", optional="since 1.66"),
    )

    def begin_chat(self, resource: Any, _args: Args, kwargs: Kwargs) -> ClientCall | None:
        """Begin a call of the chat completions."""
        return begin(self.telemetry, CHAT, resource, kwargs)

    def begin_response(self, resource: Any, _args: Args, kwargs: Kwargs) -> ClientCall | None:
        """Begin a call of the responses."""
        return begin(self.telemetry, RESPONSES, resource, kwargs)
