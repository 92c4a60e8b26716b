"""Alterations of a span's texts: by the user's redaction, and by the limit of an attribute.

Both are noted on the span, because a text that is not as the program had it cannot stand for it: a replay
would give the program, and look for, another one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mast_trace import semconv
from mast_trace.content import Redacted, as_text, is_cut, truncate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opentelemetry.trace import Span

    from mast_trace.content import ContentPolicy

_MARKS = (semconv.CONTENT_REDACTED, semconv.CONTENT_TRUNCATED)


class Alterations:
    """Redacts and cuts the texts of one attribute, and notes whether any of them was changed.

    Attributes:
        redacted: the redact function has returned another text.
        cut: a text did not fit.
    """

    __slots__ = ("_content", "cut", "redacted")

    def __init__(self, content: ContentPolicy) -> None:
        self._content = content
        self.redacted = False
        self.cut = False

    def clean(self, text: str) -> str:
        """Return ``text`` redacted, before truncation."""
        cleaned = self._content.clean(text)
        # A function that finds nothing mostly returns the same object, which costs no comparison.
        if cleaned is not text and cleaned != text:
            self.redacted = True
        return cleaned

    def text(self, value: Any) -> str:
        """Return any value as redacted text, before truncation."""
        if self._content.redact is None:
            return as_text(value, self._content.limit, on_cut=self.note_cut)
        self.redacted = self.redacted or isinstance(value, Redacted)
        return self.clean(as_text(value, self._content.limit, self.clean, self.note_cut))

    def kept(self, text: str, limit: int | None = None) -> str:
        """Return ``text`` cut to ``limit`` bytes; to the limit of an attribute if it is absent."""
        kept = truncate(text, self._content.limit if limit is None else limit)
        if kept is not text and is_cut(kept, text):
            self.cut = True
        return kept

    def note_cut(self) -> None:
        """Note that a text is not whole."""
        self.cut = True

    def marks(self, attribute: str) -> dict[str, Any]:
        """Return the attributes that name ``attribute`` as altered; none if it is not."""
        if not (self.redacted or self.cut):
            return {}
        altered = zip(_MARKS, (self.redacted, self.cut), strict=True)
        return {mark: [attribute] for mark, is_altered in altered if is_altered}


def with_earlier_marks(
    attributes: dict[str, Any], span: Span, waiting: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return ``attributes`` with the names of altered attributes that a span has already.

    Args:
        attributes: about to be written on the span, where they replace attributes of the same names.
        span: an open span.
        waiting: attributes that are written on it later.
    """
    # Every span passes here, and hardly any has a mark.
    if semconv.CONTENT_REDACTED not in attributes and semconv.CONTENT_TRUNCATED not in attributes:
        return attributes
    for mark in _MARKS:
        if mark in attributes:
            earlier = (getattr(span, "attributes", None) or {}, waiting or {})
            before = [name for each in earlier for name in each.get(mark, ())]
            attributes[mark] = list(dict.fromkeys([*before, *attributes[mark]]))
    return attributes
