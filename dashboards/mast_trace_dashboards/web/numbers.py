"""Parses numbers in addresses and forms."""

from __future__ import annotations

import re

# Python accepts other digits than these, and refuses to parse thousands of them.
_WHOLE = re.compile(r"[0-9]{1,19}")


def whole(text: str) -> int | None:
    """Return a text as a whole number; None if it is none, or longer than any of ours."""
    return int(text) if _WHOLE.fullmatch(text) else None
