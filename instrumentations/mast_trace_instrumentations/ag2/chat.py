"""Calls of an agent's model and questions to its human, through AG2's public middleware."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from itertools import chain
from typing import Any, Protocol

from mast_trace import semconv
from mast_trace.messages import Message
from mast_trace.spans import Call, ChatSpan, Telemetry, awaited, current_agent, guarded
from mast_trace_instrumentations.ag2.reading import answer, encoder, shown_to_model
from mast_trace_instrumentations.ag2.state import here, in_own_span, nested

HUMAN = "user"
"""Name of the human whom an agent asks: AG2 has none."""
_CONFIG_KEY = "__ag2_model_config__"


class RecordedTurn(Protocol):
    """The turn in which a model is called.

    Attributes:
        telemetry: makes its spans.
    """

    telemetry: Telemetry

    def saw(self, messages: Sequence[Message]) -> None:
        """Record the agent's input."""


class TurnMiddleware:
    """The middleware of one turn, the innermost."""

    def __init__(self, turn: RecordedTurn, event: Any, context: Any) -> None:
        self.initial_event = event
        self.context = context
        self._turn = turn

    async def on_turn(
        self, call_next: Callable[..., Awaitable[Any]], event: Any, context: Any
    ) -> Any:
        """Leave the turn to its scope, which also sees errors raised around the middleware."""
        return await call_next(event, context)

    async def on_tool_execution(
        self, call_next: Callable[..., Awaitable[Any]], event: Any, context: Any
    ) -> Any:
        """Leave tools to the executor: unknown tools never pass here."""
        return await call_next(event, context)

    async def on_llm_call(
        self, call_next: Callable[..., Awaitable[Any]], events: Sequence[Any], context: Any
    ) -> Any:
        """Record a model call."""
        return await awaited(
            partial(call_next, events, context),
            partial(self._begin, call_next, events, context),
            "recording a model call",
        )

    async def on_human_input(
        self, call_next: Callable[..., Awaitable[Any]], event: Any, context: Any
    ) -> Any:
        """Record a question to a human and the answer, both as messages."""
        telemetry = self._turn.telemetry
        question: str | None = None
        with guarded("recording a question to a human"):
            agent = current_agent(here()) or ""
            question = telemetry.message(agent, [HUMAN], Message(event.content), parent=here())
        reply = await call_next(event, context)
        with guarded("recording a human's answer"):
            reply_message = Message(reply.content, role="user", name=HUMAN)
            telemetry.message(HUMAN, [agent], reply_message, parent=here(), in_reply_to=question)
        return reply

    def _begin(self, call_next: Any, events: Sequence[Any], context: Any) -> Call:
        # The innermost call is the client's, together with its other arguments.
        given = getattr(call_next, "keywords", {})
        schema_prompt = getattr(given.get("response_schema"), "system_prompt", None)
        prompt = chain(context.prompt, [schema_prompt] if schema_prompt else ())
        shown = shown_to_model(prompt, events, encoder(given.get("serializer")))
        self._turn.saw([message for message in shown if message.role != "system"])
        config = context.dependencies.get(_CONFIG_KEY)
        span = self._turn.telemetry.chat(
            _model(config), parent=here(), provider=_provider(config), input=shown
        )
        return in_own_span(nested(span), partial(_answered, span))


def _model(config: Any) -> str:
    """Return the model's name; configurations of the user's own may have none."""
    try:
        return str(config.model or "unknown")
    except Exception:  # noqa: BLE001  # a property of the user's may raise anything
        return "unknown"


def _provider(config: Any) -> str | None:
    """Return AG2's name for the provider, known before the call (ag2.config.openai...)."""
    module = type(config).__module__.split(".")
    return module[2] if module[:2] == ["ag2", "config"] and len(module) > 2 else None


def _answered(span: ChatSpan, response: Any) -> None:
    usage = response.usage
    span.set({semconv.PROVIDER_NAME: response.provider})
    span.response(
        answer(response),
        model=response.model,
        response_id=getattr(response, "response_id", None),
        finish_reason=response.finish_reason,
        input_tokens=_count(usage.prompt_tokens),
        output_tokens=_count(usage.completion_tokens),
        cached_tokens=_count(usage.cache_read_input_tokens),
    )


def _count(tokens: float | None) -> int | None:
    return None if tokens is None else int(tokens)
