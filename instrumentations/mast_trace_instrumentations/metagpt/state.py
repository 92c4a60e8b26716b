"""The message that a turn is about, kept in the context of the turn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opentelemetry import context as otel_context

if TYPE_CHECKING:
    from opentelemetry.context import Context

_KEY = "mast-trace-metagpt-answering"


def answered(context: Context) -> str | None:
    """Return the id of the message that the turn of ``context`` answers."""
    value = otel_context.get_value(_KEY, context)
    return value if isinstance(value, str) else None


def answering(message_id: str, context: Context) -> Context:
    """Return ``context`` for a turn that answers the message."""
    return otel_context.set_value(_KEY, message_id, context)
