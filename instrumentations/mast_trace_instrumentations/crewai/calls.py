"""What CrewAI has no event for: calls of tools that it refuses, tokens, and what people say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mast_trace.messages import ToolCall
from mast_trace.spans import guarded
from mast_trace_instrumentations.crewai import reading
from mast_trace_instrumentations.crewai.tool import Watch

if TYPE_CHECKING:
    from collections.abc import Callable

    from mast_trace_instrumentations.crewai.events import EventRecorder


class CallWrappers:
    """Wrappers of functions inside of an agent's turn."""

    recorder: EventRecorder

    # -- tools ------------------------------------------------------------------------------------

    def text_call(
        self, wrapped: Callable[..., Any], _instance: Any, args: Any, kwargs: dict[str, Any]
    ) -> Any:
        """Watch a call that the model wrote as text."""
        with self._watch_text(args, kwargs) as watch:
            watch.result = wrapped(*args, **kwargs)
        return watch.result

    async def async_text_call(
        self, wrapped: Callable[..., Any], _instance: Any, args: Any, kwargs: dict[str, Any]
    ) -> Any:
        """Watch a call that the model wrote as text."""
        with self._watch_text(args, kwargs) as watch:
            watch.result = await wrapped(*args, **kwargs)
        return watch.result

    def native_call(
        self, wrapped: Callable[..., Any], loop: Any, args: Any, kwargs: dict[str, Any]
    ) -> Any:
        """Watch a call that the model made through its interface."""
        watch = Watch(self.recorder, reading.native_result)
        with guarded("watching a tool call of CrewAI"):
            agent = getattr(loop, "agent", None) or kwargs.get("agent")
            watch.begin(reading.requested_call(args, kwargs), agent)
        with watch:
            watch.result = wrapped(*args, **kwargs)
        return watch.result

    def _watch_text(self, args: Any, kwargs: dict[str, Any]) -> Watch:
        watch = Watch(self.recorder, lambda result: result.result)
        with guarded("watching a tool call of CrewAI"):
            action = args[0] if args else kwargs["agent_action"]
            watch.begin(ToolCall(str(action.tool), action.tool_input), kwargs.get("agent"))
        return watch

    # -- tokens -----------------------------------------------------------------------------------

    def usage(
        self, wrapped: Callable[..., Any], _llm: Any, args: Any, kwargs: dict[str, Any]
    ) -> Any:
        """Note the tokens that one of CrewAI's own providers has counted."""
        with guarded("recording tokens of CrewAI"):
            self.recorder.usage(args[0] if args else next(iter(kwargs.values()), None))
        return wrapped(*args, **kwargs)

    def streamed_usage(
        self, wrapped: Callable[..., Any], _llm: Any, args: Any, kwargs: dict[str, Any]
    ) -> Any:
        """Note the tokens that the last chunk of a stream of LiteLLM has told."""
        with guarded("recording tokens of CrewAI"):
            self.recorder.usage(kwargs.get("usage_info") or (args[1] if len(args) > 1 else None))
        return wrapped(*args, **kwargs)

    def answer(
        self, wrapped: Callable[..., Any], _instance: Any, args: Any, kwargs: dict[str, Any]
    ) -> Any:
        """Note the tokens of an answer of LiteLLM; a stream has none yet."""
        result = wrapped(*args, **kwargs)
        with guarded("recording tokens of CrewAI"):
            self.recorder.usage(getattr(result, "usage", None))
        return result

    async def async_answer(
        self, wrapped: Callable[..., Any], _instance: Any, args: Any, kwargs: dict[str, Any]
    ) -> Any:
        """Note the tokens of an answer of LiteLLM; a stream has none yet."""
        result = await wrapped(*args, **kwargs)
        with guarded("recording tokens of CrewAI"):
            self.recorder.usage(getattr(result, "usage", None))
        return result

    # -- people -----------------------------------------------------------------------------------

    def human_input(
        self, wrapped: Callable[..., Any], _instance: Any, args: Any, kwargs: dict[str, Any]
    ) -> Any:
        """Record what a person says to an agent's answer."""
        said = wrapped(*args, **kwargs)
        with guarded("recording human input of CrewAI"):
            self.recorder.human_input(_draft(args, kwargs), said)
        return said

    async def async_human_input(
        self, wrapped: Callable[..., Any], _instance: Any, args: Any, kwargs: dict[str, Any]
    ) -> Any:
        """Record what a person says to an agent's answer."""
        said = await wrapped(*args, **kwargs)
        with guarded("recording human input of CrewAI"):
            self.recorder.human_input(_draft(args, kwargs), said)
        return said


def _draft(args: Any, kwargs: dict[str, Any]) -> str | None:
    """Return the answer that is shown to the person; newer versions pass the crew instead."""
    shown = args[0] if args else kwargs.get("final_answer")
    return shown if isinstance(shown, str) else None
