"""The mark of messages that are not recorded: a hidden chat, a replayed history."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opentelemetry import context as otel_context

if TYPE_CHECKING:
    from opentelemetry.context import Context

_QUIET = "mast-trace-autogen-quiet"


def quiet() -> Context:
    """Return the current context, marked so that no message is recorded."""
    return otel_context.set_value(_QUIET, True, otel_context.get_current())


def is_quiet() -> bool:
    """Return whether messages are not recorded at present."""
    return otel_context.get_current().get(_QUIET) is True
