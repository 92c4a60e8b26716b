"""Removes the characters of a text that are not visible."""

from __future__ import annotations

import re
import unicodedata

_INVISIBLE = {"Cc", "Cf", "Co", "Cs", "Cn"}
_CONTROL = bytes(code for code in (*range(32), 127) if chr(code) not in "\n\t")
_VARIATION = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]")
_NOT_PRINTED = re.compile(r"[^\n\t -~]+")


def clean(text: str) -> str:
    """Return the visible text: NFKC, without control, zero-width and other invisible characters."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if text.isascii():
        return text.encode("ascii").translate(None, _CONTROL).decode("ascii")
    folded = _VARIATION.sub("", unicodedata.normalize("NFKC", text))
    if folded.isprintable():
        return folded
    return _NOT_PRINTED.sub(_seen, folded)


def _seen(found: re.Match[str]) -> str:
    piece = found[0]
    if piece.isprintable():
        return piece
    return "".join(char for char in piece if unicodedata.category(char) not in _INVISIBLE)
