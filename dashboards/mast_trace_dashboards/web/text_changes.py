"""The difference of two texts, word by word, and hidden characters made visible."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import takewhile
from typing import Any, Final, Literal

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


MOST_SHOWN: Final = 20_000
"""Characters of a text that a page shows, where it does not say otherwise: senders choose how long texts are."""
LONGEST_NAME: Final = 120
"""Characters of a name that a page shows."""


def visible(value: Any, most: int = MOST_SHOWN) -> str:
    """Return a value as text in which every character shows, at most so many of them."""
    text = str(value)
    return (text if len(text) <= most else f"{text[:most]}…").translate(_HIDDEN)


def named(value: Any) -> str:
    """Return a name as a page shows it: of an agent, a tool, a framework or whatever else senders call something."""
    return visible(value, LONGEST_NAME)


MOST_WORDS: Final = 400
"""Words of a changed passage that are compared; a longer one counts as replaced as a whole."""
_WORD = re.compile(r"\s+|\d+(?:[.,]\d+)*|\w+|[^\w\s]")


@dataclass(frozen=True)
class TextChange:
    """A passage that both texts have, or only one of them.

    Attributes:
        text: of the passage.
        kind: ``same``, ``removed`` (only in the old text) or ``added`` (only in the new one).
    """

    text: str
    kind: Literal["same", "removed", "added"]


def changes(old: str, new: str) -> list[TextChange]:
    """Return the passages of two texts in order; removed and same ones make up the old text.

    The effort is limited by `MOST_WORDS`, whatever the texts.
    """
    left, right = _WORD.findall(old), _WORD.findall(new)
    begin = common(left, right)
    end = common(left[begin:][::-1], right[begin:][::-1])
    middle = _between(left[begin : len(left) - end], right[begin : len(right) - end])
    found = [TextChange("".join(left[:begin]), "same"), *middle]
    found.append(TextChange("".join(left[len(left) - end :]), "same"))
    return [change for change in found if change.text]


def common(left: Sequence[Hashable], right: Sequence[Hashable]) -> int:
    """Return the number of items with which both begin."""
    return sum(
        1 for _ in takewhile(lambda both: both[0] == both[1], zip(left, right, strict=False))
    )


def _between(left: Sequence[str], right: Sequence[str]) -> Iterator[TextChange]:
    if max(len(left), len(right)) > MOST_WORDS:
        yield TextChange("".join(left), "removed")
        yield TextChange("".join(right), "added")
        return
    matcher = SequenceMatcher(None, left, right, autojunk=False)
    for kind, one, two, three, four in matcher.get_opcodes():
        if kind == "equal":
            yield TextChange("".join(left[one:two]), "same")
            continue
        yield TextChange("".join(left[one:two]), "removed")
        yield TextChange("".join(right[three:four]), "added")
