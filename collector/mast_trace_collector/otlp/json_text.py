"""JSON as senders write it: with numbers that are none, half characters, and bytes that are no text."""

from __future__ import annotations

import json
import re
from typing import Any

import orjson

from mast_trace_collector.otlp.errors import RequestError

_MOST_DIGITS = 4000
"""Longer numbers are none for Python."""
_HALF_CHARACTER = re.compile("[\\ud800-\\udfff]")


def read_json(body: bytes) -> tuple[Any, bool]:
    """Return a document, and whether it is JSON by the standard; if not, texts may be invalid.

    Raises:
        RequestError: it is no JSON by any reading.
    """
    try:
        return orjson.loads(body), True
    except orjson.JSONDecodeError as error:
        try:
            return _read_leniently(body), False
        except (ValueError, RecursionError):
            raise RequestError(f"the body is no JSON: {error}") from error


def _read_leniently(body: bytes) -> Any:
    """Parse JSON in which a number may be NaN, and a byte no text; that becomes half a character."""
    return json.loads(
        body.decode("utf-8-sig", "surrogateescape"),
        # OTLP writes such numbers as texts.
        parse_constant=str,
        parse_int=lambda digits: int(digits) if len(digits) < _MOST_DIGITS else float(digits),
        strict=False,
    )


def with_valid_texts(value: Any) -> Any:
    """Return a value with U+FFFD in place of each half of a character."""
    if isinstance(value, str):
        return _HALF_CHARACTER.sub("\ufffd", value)
    if isinstance(value, list):
        return [with_valid_texts(item) for item in value]
    if isinstance(value, dict):
        return {key: with_valid_texts(item) for key, item in value.items()}
    return value
