"""Attributes for the root spans of the runs that begin in a context."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from opentelemetry import context as otel_context

if TYPE_CHECKING:
    from opentelemetry.context import Context

_KEY = "mast-trace-run-marks"


def with_marks(attributes: Mapping[str, Any], context: Context | None = None) -> Context:
    """Return ``context`` (default: the current one) in which runs begin with these attributes."""
    marks = {**marks_of(context), **attributes}
    return otel_context.set_value(_KEY, marks, context)


def marks_of(context: Context | None = None) -> Mapping[str, Any]:
    """Return the attributes with which runs begin in ``context`` (default: the current one)."""
    value = otel_context.get_value(_KEY, context)
    return value if isinstance(value, Mapping) else {}
