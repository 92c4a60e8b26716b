"""Model calls of every provider, and what a human answers in a model's place."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from mast_trace.messages import Message
from mast_trace.spans import chat_is_open, current_agent, current_run, guarded
from mast_trace_instrumentations.metagpt import reading

if TYPE_CHECKING:
    from collections.abc import Callable

    from mast_trace.spans import ChatSpan, Telemetry

_usage: ContextVar[dict[str, int] | None] = ContextVar("mast_trace_metagpt_usage", default=None)
HUMAN = "Human"


class ModelWrappers:
    """Wrappers of the providers."""

    telemetry: Telemetry

    async def complete(
        self, wrapped: Callable[..., Any], provider: Any, args: Any, kwargs: dict[str, Any]
    ) -> Any:
        """Record one request to a model; a provider that calls its parent's method counts once."""
        span = None if chat_is_open() else self._begin_chat(provider, args, kwargs)
        if span is None:
            return await wrapped(*args, **kwargs)
        usage: dict[str, int] = {}
        token = _usage.set(usage)
        try:
            with span.attached():
                result = await wrapped(*args, **kwargs)
        except BaseException as error:
            span.end(error)
            raise
        finally:
            _usage.reset(token)
        with guarded("recording a model's answer of MetaGPT"):
            span.response(
                reading.answer(result),
                finish_reason=reading.finish_reason(result),
                input_tokens=usage.get("input"),
                output_tokens=usage.get("output"),
            )
            span.end()
        return result

    def usage(
        self, wrapped: Callable[..., Any], _provider: Any, args: Any, kwargs: dict[str, Any]
    ) -> Any:
        """Note the tokens that the framework counts; without the provider's word it estimates."""
        with guarded("recording tokens of MetaGPT"):
            counts = args[0] if args else kwargs.get("usage")
            open_usage = _usage.get()
            if open_usage is not None and counts is not None:
                for ours, names in (
                    ("input", ("prompt_tokens", "input_tokens")),
                    ("output", ("completion_tokens", "output_tokens")),
                ):
                    found = (reading.field(counts, name) for name in names)
                    # Nought is what MetaGPT counts when it cannot: no request is empty.
                    counted = next((n for n in found if isinstance(n, int) and n), None)
                    if counted is not None:
                        open_usage[ours] = counted
        return wrapped(*args, **kwargs)

    def human(
        self, wrapped: Callable[..., Any], _provider: Any, args: Any, kwargs: dict[str, Any]
    ) -> Any:
        """Record what a person is asked in a model's place, and answers."""
        asked = None
        with guarded("recording human input of MetaGPT"):
            prompt = args[0] if args else kwargs.get("msg")
            agent = current_agent()
            if current_run() is not None and agent:
                asked = self.telemetry.message(agent, [HUMAN], Message(str(prompt)))
        typed = wrapped(*args, **kwargs)
        self._answered(typed, asked)
        return typed

    async def review(
        self, wrapped: Callable[..., Any], _action: Any, args: Any, kwargs: dict[str, Any]
    ) -> Any:
        """Record what a person says to a plan or to the result of a task."""
        result = await wrapped(*args, **kwargs)
        self._answered(result[0])
        return result

    def _answered(self, typed: Any, asked: str | None = None) -> None:
        with guarded("recording human input of MetaGPT"):
            if current_run() is not None:
                agent = current_agent()
                self.telemetry.message(
                    HUMAN,
                    [agent] if agent else [],
                    Message(str(typed), role="user"),
                    in_reply_to=asked,
                )

    def _begin_chat(self, provider: Any, args: Any, kwargs: dict[str, Any]) -> ChatSpan | None:
        with guarded("recording a model call of MetaGPT"):
            messages = args[0] if args else kwargs.get("messages")
            config = getattr(provider, "config", None)
            api = getattr(config, "api_type", None)
            return self.telemetry.chat(
                str(getattr(provider, "model", "") or getattr(config, "model", "") or "unknown"),
                provider=str(getattr(api, "value", api or "")) or None,
                input=reading.chat_messages(messages),
            )
        return None
