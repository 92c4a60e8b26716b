"""Text of runs and servers, made harmless for terminals and logs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from typing import Any, Final

ID_SHOWN: Final = 8
"""Characters of an id in lists: enough to name what it is of, where ids are drawn at random."""
UNSAFE = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]"
)
"""Control characters, and those that reorder or hide text; not tab and newline."""


def id_width(ids: Iterable[str]) -> int:
    """Return how many characters tell ids apart, at least `ID_SHOWN`: other tools may count from one."""
    all_ids = set(ids)
    width = ID_SHOWN
    while len({each[:width] for each in all_ids}) < len(all_ids):
        width += 1
    return width


def counted(number: int, noun: str) -> str:
    """Return a number of things in words: "1 run", "2 runs"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def safe(text: str) -> str:
    """Make the text of a run harmless: control characters are shown as symbols."""
    return UNSAFE.sub(_symbol, text)


def _symbol(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else f"<U+{code:04X}>"


def clip(text: str, width: int) -> str:
    """Return a text as one line of at most ``width`` characters."""
    line = " ".join(safe(text).split())
    return line if len(line) <= width else line[: width - 1] + "…"


def json_text(value: Any, indent: int | None = None) -> str:
    """Return a value as JSON text that is harmless in a terminal."""
    text = json.dumps(value, ensure_ascii=False, indent=indent, default=_as_json)
    return UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _as_json(value: Any) -> Any:
    if isinstance(value, datetime):
        aware = value if value.tzinfo else value.replace(tzinfo=timezone.utc)
        return aware.astimezone(timezone.utc).isoformat().replace("+00:00", "Z")
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, tuple | set | frozenset):
        return list(value)
    return str(value)
