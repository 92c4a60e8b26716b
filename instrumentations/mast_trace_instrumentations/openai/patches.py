"""What of the OpenAI client is wrapped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mast_trace.spans.guard import guarded
from mast_trace_instrumentations._streams import Inside
from mast_trace_instrumentations.base import Instrumentor, Patch
from mast_trace_instrumentations.openai import calls

if TYPE_CHECKING:
    from collections.abc import Callable

_Args = tuple[Any, ...]
_Kwargs = dict[str, Any]

_CHAT = "openai.resources.chat.completions"
_RESPONSES = "openai.resources.responses"


class OpenAIInstrumentor(Instrumentor):
    """Records model calls through the OpenAI client that no framework's instrumentation records."""

    framework = "openai"
    distributions = ("openai",)
    versions = ("1.30", "4.0")
    patches = (
        Patch(_CHAT, "Completions.create", "_chat"),
        Patch(_CHAT, "AsyncCompletions.create", "_achat"),
        Patch(_CHAT, "Completions.parse", "_chat", since="1.92"),
        Patch(_CHAT, "AsyncCompletions.parse", "_achat", since="1.92"),
        Patch(_RESPONSES, "Responses.create", "_response", since="1.66"),
        Patch(_RESPONSES, "AsyncResponses.create", "_aresponse", since="1.66"),
        Patch(_RESPONSES, "Responses.parse", "_response", since="1.66"),
        Patch(_RESPONSES, "AsyncResponses.parse", "_aresponse", since="1.66"),
    )

    def _chat(
        self, wrapped: Callable[..., Any], resource: Any, args: _Args, kwargs: _Kwargs
    ) -> Any:
        return self._call(calls.CHAT, wrapped, resource, args, kwargs)

    def _achat(
        self, wrapped: Callable[..., Any], resource: Any, args: _Args, kwargs: _Kwargs
    ) -> Any:
        return self._acall(calls.CHAT, wrapped, resource, args, kwargs)

    def _response(
        self, wrapped: Callable[..., Any], resource: Any, args: _Args, kwargs: _Kwargs
    ) -> Any:
        return self._call(calls.RESPONSES, wrapped, resource, args, kwargs)

    def _aresponse(
        self, wrapped: Callable[..., Any], resource: Any, args: _Args, kwargs: _Kwargs
    ) -> Any:
        return self._acall(calls.RESPONSES, wrapped, resource, args, kwargs)

    def _call(
        self,
        interface: calls.Interface,
        wrapped: Callable[..., Any],
        resource: Any,
        args: _Args,
        kwargs: _Kwargs,
    ) -> Any:
        entered = self._enter(interface, resource, kwargs)
        if entered is None:
            return wrapped(*args, **kwargs)
        with entered:
            entered.result = wrapped(*args, **kwargs)
        return entered.result

    async def _acall(
        self,
        interface: calls.Interface,
        wrapped: Callable[..., Any],
        resource: Any,
        args: _Args,
        kwargs: _Kwargs,
    ) -> Any:
        entered = self._enter(interface, resource, kwargs)
        if entered is None:
            return await wrapped(*args, **kwargs)
        with entered:
            entered.result = await wrapped(*args, **kwargs)
        return entered.result

    def _enter(self, interface: calls.Interface, resource: Any, kwargs: _Kwargs) -> Inside | None:
        with guarded("beginning a model call"):
            call = calls.begin(self.telemetry, interface, resource, kwargs)
            if call is not None:
                return Inside(call.span.context, call.finish)
        return None
