"""Reads JSON of other programs, so that its texts can be stored, shown and written again."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from mast_trace.content import well_formed

_DEEPEST = 100
_TOO_DEEP = "it nests too deeply"
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def _finite(number: str) -> float | str:
    value = float(number)
    return value if math.isfinite(value) else number


_DECODER = json.JSONDecoder(parse_constant=str, parse_float=_finite)


def read_json(text: str | bytes) -> Any:
    r"""Read JSON text.

    JSON can spell half a character (``\ud83d``, where a tool cut a text), which UTF-8 cannot
    encode: it becomes ``?``. ``NaN``, ``Infinity`` and numbers beyond all doubles, which strict
    readers refuse, become texts.

    Raises:
        ValueError: it is no JSON, or nests deeper than is supported.
    """
    if isinstance(text, bytes):
        text = text.decode(json.detect_encoding(text))
    try:
        value = _DECODER.decode(text)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    if _SURROGATE.search(text) or text.count("[") + text.count("{") > _DEEPEST:
        return well_formed_values(value)
    return value


def well_formed_values(value: Any) -> Any:
    """Return a value that was read from JSON with all its texts well-formed.

    Raises:
        ValueError: it nests deeper than is supported.
    """
    return _checked(value, 0)


def _checked(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return well_formed(value)
    if not isinstance(value, list | dict):
        return value
    if depth >= _DEEPEST:
        raise ValueError(_TOO_DEEP)
    if isinstance(value, list):
        return [_checked(item, depth + 1) for item in value]
    return {well_formed(key): _checked(item, depth + 1) for key, item in value.items()}
