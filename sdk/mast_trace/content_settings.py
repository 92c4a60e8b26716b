"""Reads from the environment how much of the texts is recorded."""

from __future__ import annotations

import os
from collections.abc import Mapping

from mast_trace.content import ATTRIBUTE_LIMIT, MOST_CONTENT, Capture, ContentPolicy
from mast_trace.exceptions import ConfigurationError

CAPTURE_VARIABLE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
LIMIT_VARIABLES = (
    "OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT",
    "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT",
)
# The convention's values name the carrier of content (span, event); this package writes spans only.
_CAPTURES: Mapping[str, Capture] = {
    "true": True,
    "1": True,
    "span_only": True,
    "span_and_event": True,
    "full": "full",
    "false": False,
    "0": False,
    "no_content": False,
    "event_only": False,
}


def capture_from_environment() -> Capture | None:
    """Return the capture mode that OpenTelemetry's variable sets; None where it is not set.

    Raises:
        ConfigurationError: its value is not known.
    """
    text = os.environ.get(CAPTURE_VARIABLE, "").strip().lower()
    if not text:
        return None
    if text not in _CAPTURES:
        # A typing error in a privacy switch must not count as "yes".
        raise ConfigurationError(
            f"{CAPTURE_VARIABLE}={text!r} is not known; use one of {', '.join(_CAPTURES)}."
        )
    return _CAPTURES[text]


def limit_from_environment() -> tuple[int, str]:
    """Return the limit of an attribute in bytes of UTF-8, and the variable that sets it.

    OpenTelemetry's variables for the longest value of an attribute are read as bytes; the one for
    spans wins. `MOST_CONTENT` is the upper bound: a span may hold several such texts, and has to
    fit into one request. The variable's name is empty where neither is set.

    Raises:
        ConfigurationError: a value is no number.
    """
    for variable in LIMIT_VARIABLES:
        text = os.environ.get(variable, "").strip()
        if text:
            if not (text.isascii() and text.isdigit()):
                raise ConfigurationError(f"{variable}={text!r} is not a number of bytes.")
            return min(int(text), MOST_CONTENT) if len(text) < 12 else MOST_CONTENT, variable
    return ATTRIBUTE_LIMIT, ""


def content_from_environment() -> ContentPolicy:
    """Return the policy that OpenTelemetry's variables set; everything is recorded where none is set.

    Raises:
        ConfigurationError: a value is not known.
    """
    captured = capture_from_environment()
    limit, _ = limit_from_environment()
    return ContentPolicy(True if captured is None else captured, limit=limit)
