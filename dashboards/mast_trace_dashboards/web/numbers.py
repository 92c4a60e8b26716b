"""Reads numbers that stand in addresses and forms."""

from __future__ import annotations

import re

# Python takes other digits than these for digits, too, and refuses to read thousands of them.
_WHOLE = re.compile(r"[0-9]{1,19}")


def whole(text: str) -> int | None:
    """Return the whole number that a text is; None if it is none, or longer than any of ours."""
    return int(text) if _WHOLE.fullmatch(text) else None
