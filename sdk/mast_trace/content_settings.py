"""Reads from the environment how much of the texts is recorded."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from mast_trace.content import Capture, ContentPolicy
from mast_trace.exceptions import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping

CAPTURE_VARIABLE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
# The convention's values say where content goes (span, event); this package writes spans only.
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
    """Return what OpenTelemetry's variable says of recording texts; None where it is not set.

    Raises:
        ConfigurationError: its value is not known.
    """
    text = os.environ.get(CAPTURE_VARIABLE, "").strip().lower()
    if not text:
        return None
    if text not in _CAPTURES:
        # A typing error in a switch for privacy must not mean "yes".
        raise ConfigurationError(
            f"{CAPTURE_VARIABLE}={text!r} is not known; use one of {', '.join(_CAPTURES)}."
        )
    return _CAPTURES[text]


def content_from_environment() -> ContentPolicy:
    """Return the policy that OpenTelemetry's variable asks for; everything where it is not set.

    Raises:
        ConfigurationError: its value is not known.
    """
    captured = capture_from_environment()
    return ContentPolicy() if captured is None else ContentPolicy(captured)
