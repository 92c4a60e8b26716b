"""Text of runs as pages show it: characters that reorder or hide the text around them stand as their code."""

from __future__ import annotations

from typing import Any, Final

_HIDDEN: Final = {
    code: f"<U+{code:04X}>"
    for code in (
        *range(9),
        *range(0x0B, 0x20),
        *range(0x7F, 0xA0),
        *range(0x202A, 0x202F),
        *range(0x2066, 0x206A),
    )
}


def visible(value: Any) -> str:
    """Return a value as text in which every character shows."""
    return str(value).translate(_HIDDEN)
