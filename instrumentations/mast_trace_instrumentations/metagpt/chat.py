"""Model calls of every provider."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from mast_trace.spans import Call, Inside, Telemetry, chat_is_open, in_span, restore
from mast_trace_instrumentations.metagpt import reading

_usage: ContextVar[dict[str, int] | None] = ContextVar("mast_trace_metagpt_usage", default=None)


def begin_chat(telemetry: Telemetry, provider: Any, messages: Any) -> Call | None:
    """Begin a request to a model; None where a provider calls its parent's method."""
    if chat_is_open():
        return None
    config = getattr(provider, "config", None)
    api = getattr(config, "api_type", None)
    span = telemetry.chat(
        str(getattr(provider, "model", "") or getattr(config, "model", "") or "unknown"),
        provider=str(getattr(api, "value", api or "")) or None,
        input=reading.chat_messages(messages),
    )
    usage: dict[str, int] = {}
    token = _usage.set(usage)

    def answered(result: Any) -> None:
        span.response(
            reading.answer(result),
            finish_reason=reading.finish_reason(result),
            input_tokens=usage.get("input"),
            output_tokens=usage.get("output"),
        )

    call = in_span(span, answered)

    def end(result: Any, error: BaseException | None) -> None:
        restore(token)
        call.end(result, error)

    return Inside(span.context, end)


def note_usage(counts: Any) -> None:
    """Note the framework's token counts; without the provider's usage it estimates them."""
    usage = _usage.get()
    if usage is None or counts is None:
        return
    for ours, names in (
        ("input", ("prompt_tokens", "input_tokens")),
        ("output", ("completion_tokens", "output_tokens")),
    ):
        found = (reading.field(counts, name) for name in names)
        # MetaGPT counts zero when it cannot count: no request is empty.
        counted = next((n for n in found if isinstance(n, int) and n), None)
        if counted is not None:
            usage[ours] = counted
