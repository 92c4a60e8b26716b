"""The texts of boxes: names of agents, shortened to the width of a box."""

from __future__ import annotations

import unicodedata

from mast_trace_dashboards.web.visible import visible


def label_of(name: str, room: int) -> str:
    """Return a name in at most ``room`` columns, shortened in its middle: names often differ at their ends.

    Args:
        name: as recorded.
        room: columns, of which letters of East Asia and emoji take two.
    """
    line = " ".join(visible(name).split()) or "unknown"
    if _columns(line) <= room:
        return line
    end = _fitting(line[::-1], room // 3)[::-1]
    return f"{_fitting(line, room - 1 - _columns(end)).rstrip()}…{end.lstrip()}"


def _columns(text: str) -> int:
    return sum(map(_width, text))


def _width(character: str) -> int:
    if unicodedata.category(character) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _fitting(text: str, room: int) -> str:
    """Return as much of a text's beginning as fits."""
    used = 0
    for number, character in enumerate(text):
        used += _width(character)
        if used > room:
            return text[:number]
    return text
