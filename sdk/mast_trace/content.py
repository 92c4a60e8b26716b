"""Content policy: capture, redaction, truncation and hashing of texts.

Nothing in here raises, whatever it is given: these functions meet the values of arbitrary programs.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Literal

ATTRIBUTE_LIMIT = 1024 * 1024
"""Default limit of one attribute's size, in bytes of UTF-8."""
MOST_CONTENT = 16 * ATTRIBUTE_LIMIT
"""Highest limit that can be set, in bytes: one span may hold several such texts, and one request at
least one span.
"""
RENDERING_LIMIT = 64 * 1024
"""Characters up to which a structure, such as the state of a graph, is rendered as text."""
WITHHELD = "[withheld: the redact function failed]"
_HEAD_SHARE = 0.7
_CUT = "characters cut by mast-trace"
_DEPTH_LIMIT = 24
_REMEMBERED_LENGTH = 8 * 1024
_ESCAPED = re.compile(r'["\\\x00-\x1f]')
"""Characters that JSON spells otherwise."""
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{256}")
_DATA_URL = re.compile(rf"data:[^,\s]{{0,128}};base64,(?={_BASE64.pattern})")
_OF_MEDIA = {"base64", "data"}
"""Names under which parts of messages hold a picture or a sound in base64."""
_HASHED = 1 << 16
"""Characters at each end of encoded data that distinguish one picture from another."""

Capture = Literal[True, False, "full"]
"""True: each text once. "full": every input in full as well. False: hashes and sizes only."""


_redaction: Callable[[str], str] | None = None


class Redacted(str):
    """Text of a structure in which redaction has changed a string."""

    __slots__ = ()


def redact_structures(clean: Callable[[str], str] | None) -> None:
    """Set the function that redacts strings inside of structures: the session's, or None after it.

    Instrumentations make texts of a framework's structures long before a span is written, and a redactor
    cannot recognise a secret of which only a part is left, or whose quotes are escaped.
    """
    global _redaction  # noqa: PLW0603  # a process has one session
    _redaction = clean


def joined(separator: str, texts: Iterable[str]) -> str:
    """Return texts in one, `Redacted` if one of them is."""
    parts = list(texts)
    text = separator.join(parts)
    return Redacted(text) if any(isinstance(part, Redacted) for part in parts) else text


def content_hash(text: str) -> str:
    """Return 16 hexadecimal digits, equal for equal texts."""
    # A conversation's messages are hashed every time an agent sees them. Long ones are not cached,
    # because the cache would keep their texts alive.
    return _remembered_hash(text) if len(text) <= _REMEMBERED_LENGTH else _hash(text)


def data_mark(data: str | bytes) -> str:
    """Return size and hash of a picture, a sound or a document, as bytes or in base64, to be shown in place of it."""
    ends = [data] if len(data) <= 2 * _HASHED else [data[:_HASHED], data[-_HASHED:]]
    text = "".join(end if isinstance(end, str) else end.hex() for end in ends)
    unit = "characters of base64" if isinstance(data, str) else "bytes"
    return f"{len(data)} {unit}, {content_hash(text)[:12]}"


def _hash(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


_remembered_hash = lru_cache(maxsize=1024)(_hash)


def well_formed(text: str) -> str:
    """Return ``text`` as an exact `str` that UTF-8 can encode: lone surrogates become ``?``."""
    if type(text) is not str:
        text = str.__str__(text)
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def truncate(text: str, limit: int = ATTRIBUTE_LIMIT) -> str:
    """Cut ``text`` to ``limit`` bytes of UTF-8, keeping head and tail around a visible mark."""
    if len(text) * 4 <= limit:
        return well_formed(text)
    if len(text) <= limit and (text.isascii() or len(text.encode("utf-8", "replace")) <= limit):
        return well_formed(text)
    mark = f"\n[... {{}} {_CUT} ...]\n"
    room = max(limit - len(mark.format(len(text))), 0)
    head = int(room * _HEAD_SHARE)
    tail = room - head
    # Only the ends are encoded, however long the text: a character takes a byte at least.
    kept_head = text[:head].encode("utf-8", "replace")[:head].decode("utf-8", "ignore")
    kept_tail = (
        text[max(len(text) - tail, 0) :]
        .encode("utf-8", "replace")[-tail:]
        .decode("utf-8", "ignore")
    )
    cut = len(text) - len(kept_head) - len(kept_tail)
    return f"{kept_head}{mark.format(cut)}{kept_tail}" if room else mark.format(cut)[:limit]


def is_cut(kept: str, text: str) -> bool:
    """Return whether `truncate` has cut anything off ``text``."""
    if len(kept) != len(text):
        return True
    return kept is not text and _CUT in kept and _CUT not in text


def as_text(
    value: Any,
    limit: int = RENDERING_LIMIT,
    clean: Callable[[str], str] | None = None,
    on_cut: Callable[[], None] | None = None,
) -> str:
    """Render any value as text: strings as they are, the rest as JSON, `str` where JSON fails.

    Containers are rendered item by item and the rendering stops once ``limit`` characters are
    collected, so that a huge state costs no more than a large one.

    Args:
        value: anything.
        limit: about how many characters to collect; a string is returned uncut.
        clean: applied to each string inside that is cut, or that JSON spells otherwise; the session's
            redaction if absent (see `redact_structures`).
        on_cut: called if the text is not the whole value.

    Returns:
        the text, as `Redacted` where ``clean`` has changed a string.
    """
    kind = type(value)
    if kind is str or kind is Redacted:
        return value  # type: ignore[no-any-return]
    if value is None:
        return ""
    if is_a(value, str):
        return str.__str__(value)
    try:
        capped = _Capped(limit, clean or _redaction)
        copied = capped.copy(value, 0)
        if on_cut is not None and capped.is_cut:
            on_cut()
        text = copied if isinstance(copied, str) else _encode(copied)
        return Redacted(text) if capped.is_redacted else text
    except Exception:  # noqa: BLE001  # a container may change, or fail, while it is read
        return shown(value)


_encode = json.JSONEncoder(ensure_ascii=False, separators=(", ", ": ")).encode


def is_a(value: Any, kind: Any) -> bool:
    """Return the same as `isinstance`; False where the value's own ``__class__`` raises."""
    try:
        return isinstance(value, kind)
    except Exception:  # noqa: BLE001  # `__class__` may raise anything
        return False


def shown(value: Any) -> str:
    """Return `str` of a value; the name of its type where `str` raises or gives no text."""
    try:
        if isinstance(value, bytes | bytearray | memoryview):
            return f"<{len(value)} bytes>"
        return str.__str__(str(value))
    except Exception:  # noqa: BLE001  # a user's __str__ may raise anything
        return f"<{type(value).__name__}>"


class _Capped:
    """Copies a value as plain JSON, up to a number of characters and to a depth that `json` accepts."""

    def __init__(self, limit: int, clean: Callable[[str], str] | None) -> None:
        self._left = limit
        self._clean = clean
        self.is_cut = False
        self.is_redacted = False

    def copy(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if kind is str:
            media = _DATA_URL.match(value)
            if media:
                value = media[0] + self._media(value[media.end() :])
            return self._text(value)
        # Each item counts, or a structure that contains itself twice would grow for ever.
        self._left -= 4
        if value is None or kind is bool or kind is int:
            return value
        if kind is float:  # JSON has no spelling for infinity and NaN
            return value if math.isfinite(value) else str(value)
        if depth < _DEPTH_LIMIT:
            if kind is dict or is_a(value, Mapping):
                return self._mapping(value, depth)
            if kind is list or is_a(value, list | tuple | set | frozenset):
                return self._items(value, depth)
        return self._text(shown(value))

    def _mapping(self, value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
        copied: dict[str, Any] = {}
        for key, item in value.items():
            if self._left <= 0:
                self.is_cut = True
                copied["..."] = f"{len(value) - len(copied)} more keys cut"
                break
            name = self._cleaned(key) if type(key) is str else self._text(shown(key))
            is_media = name in _OF_MEDIA and type(item) is str and _BASE64.match(item)
            copied[name] = self.copy(self._media(item) if is_media else item, depth + 1)
        return copied

    def _items(self, value: Any, depth: int) -> list[Any]:
        copied: list[Any] = []
        for item in value:
            if self._left <= 0:
                self.is_cut = True
                copied.append(f"... {len(value) - len(copied)} more items cut")
                break
            copied.append(self.copy(item, depth + 1))
        return copied

    def _media(self, data: str) -> str:
        self.is_cut = True
        return f"[{data_mark(data)}]"

    def _text(self, text: str) -> str:
        too_long = len(text) > self._left
        text = self._cleaned(text, always=too_long)
        if too_long:
            kept = truncate(text, max(self._left, 256))
            self.is_cut = self.is_cut or is_cut(kept, text)
            text = kept
        self._left -= len(text)
        return text

    def _cleaned(self, text: str, *, always: bool = False) -> str:
        """Return a string as it is; redacted, if the whole text will not hold it as it is."""
        if self._clean is None or not (always or _ESCAPED.search(text)):
            return text
        cleaned = self._clean(text)
        self.is_redacted = self.is_redacted or cleaned != text
        return cleaned


@dataclass(frozen=True)
class ContentPolicy:
    """The rules by which texts become attributes.

    Attributes:
        capture: see `Capture`.
        redact: applied to each text before anything else, hashing included; if it raises, the text
            is withheld.
        limit: bytes that one attribute may hold.
    """

    capture: Capture = True
    redact: Callable[[str], str] | None = None
    limit: int = ATTRIBUTE_LIMIT

    @property
    def full(self) -> bool:
        """True if inputs are written out in full on every span."""
        return self.capture == "full"

    def clean(self, text: str) -> str:
        """Return ``text`` redacted, before truncation."""
        if self.redact is None or not text:
            return text
        try:
            cleaned = self.redact(self._clean_inside(text))
        except Exception:  # noqa: BLE001  # a redactor that fails must not let the text through
            return WITHHELD
        return cleaned if isinstance(cleaned, str) else WITHHELD

    def _clean_inside(self, text: str) -> str:
        """Return JSON text, such as a model's arguments, with its strings redacted as they are unescaped."""
        if "\\" not in text or text.lstrip()[:1] not in {"{", "["}:
            return text
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return text
        spelled = as_text(value, 8 * len(text), self.clean)
        return spelled if isinstance(spelled, Redacted) else text

    def text(self, value: Any) -> str:
        """Return any value as redacted text, before truncation."""
        return self.clean(as_text(value, self.limit, self.clean if self.redact else None))

    def render(self, value: Any) -> str | None:
        """Return the attribute for a tool's arguments or result, or None when not captured."""
        return truncate(self.text(value), self.limit) if self.capture else None
