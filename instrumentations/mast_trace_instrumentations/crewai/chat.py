"""Model calls and their tokens."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from mast_trace.spans import Call, ChatSpan, Inside, restore
from mast_trace_instrumentations.crewai import reading, state
from mast_trace_instrumentations.crewai.state import Recorder, text

_shown: ContextVar[Any] = ContextVar("mast_trace_crewai_shown", default=None)


class ModelEvents(Recorder):
    """Records events of model calls. Before 1.13 they lack tokens, which are noted in between."""

    @staticmethod
    def shown(messages: Any) -> Call:
        """Hold a model's input while the event of its call is emitted.

        The event's own copy is cut: below a depth of five everything is replaced by its `repr`,
        also the names and arguments of earlier tool calls.
        """
        token = _shown.set(messages)
        return Inside(end=lambda *_: restore(token))

    @staticmethod
    def usage(counts: Any) -> None:
        """Note the tokens of the open call, in any provider's form."""
        frame = state.top("chat")
        if frame is not None and counts:
            frame.notes["usage"] = counts

    def _on_llm_call_started(self, source: Any, event: Any) -> None:
        model = text(getattr(event, "model", None) or getattr(source, "model", None))
        agent = state.top("agent")
        provider = getattr(source, "provider", None)
        span = self._telemetry.chat(
            model,
            provider=provider if isinstance(provider, str) else None,
            agent=text(event.agent_role) or (agent.notes["role"] if agent else None),
            input=reading.chat_messages(_shown.get() or event.messages),
        )
        self._open("chat", getattr(event, "call_id", None), span)

    def _on_llm_call_completed(self, _source: Any, event: Any) -> None:
        frame = state.pop("chat", getattr(event, "call_id", None))
        if frame is None or not isinstance(frame.span, ChatSpan):
            return
        usage = getattr(event, "usage", None) or frame.notes.get("usage")
        answer = reading.answer(event.response)
        frame.span.response(
            answer,
            response_id=getattr(event, "response_id", None),
            finish_reason=getattr(event, "finish_reason", None),
            **reading.tokens(usage),
        )
        frame.span.end()
        agent = state.top("agent")
        if agent is not None:
            agent.notes["answered"] = answer.content

    def _on_llm_call_failed(self, _source: Any, event: Any) -> None:
        # Some versions report one failure twice; the second event finds no open call and is
        # ignored.
        frame = state.pop("chat", getattr(event, "call_id", None))
        if frame is not None:
            frame.span.end(text(event.error))
