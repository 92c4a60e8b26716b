"""Model calls: the span `chat`, for every provider, at AutoGen's single client class."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from opentelemetry import context as otel_context

from mast_trace.spans import Call, ChatSpan, Telemetry, in_span
from mast_trace_instrumentations.autogen.reading import is_quiet, name_of, read, shown


def begin_chat(telemetry: Telemetry, client: Any, config: Mapping[str, Any]) -> Call:
    """Begin a model call."""
    settings = _settings(client, config)
    # The agents of a hidden chat have no names: the group's manager asks for the next speaker.
    agent = None if is_quiet() else name_of(config.get("agent")) or None
    span = telemetry.chat(
        str(settings.get("model") or "unknown"),
        parent=otel_context.get_current(),
        provider=str(settings.get("api_type") or "openai"),
        agent=agent,
        input=shown(config.get("messages") or ()),
    )
    return in_span(span, partial(_answered, span, client))


def _settings(client: Any, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of the first configured client."""
    configured = getattr(client, "_config_list", None) or [{}]
    return {**configured[0], **{k: v for k, v in config.items() if k in {"model", "api_type"}}}


def _answered(span: ChatSpan, client: Any, response: Any) -> None:
    choice = next(iter(getattr(response, "choices", None) or ()), None)
    usage = getattr(response, "usage", None)
    details = getattr(usage, "prompt_tokens_details", None)
    span.response(
        read(next(iter(client.extract_text_or_completion_object(response)), None)),
        model=getattr(response, "model", None),
        response_id=getattr(response, "id", None),
        finish_reason=getattr(choice, "finish_reason", None),
        input_tokens=getattr(usage, "prompt_tokens", None),
        output_tokens=getattr(usage, "completion_tokens", None),
        cached_tokens=getattr(details, "cached_tokens", None),
    )
