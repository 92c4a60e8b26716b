"""Templates of texts: masks ids, numbers and addresses, and finds texts of one form.

The miner is drain3's Drain (He et al., "Drain: An Online Log Parsing Approach with Fixed Depth Tree",
ICWS 2017). Its state is never stored: it is rebuilt from the masked texts of the runs that are kept, so
that nothing of an erased run is left.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from drain3.drain import Drain
    from drain3.masking import LogMasker

PARAMETER: Final = "<*>"
"""Stands for a word that differs between the texts of a template."""
WORDS: Final = 40
"""Number of words of a text that its template is made of."""
_READ: Final = 2000
"""Characters of a text that are masked at all."""
_LONGEST_WORD: Final = 80
_SIMILAR: Final = 0.5
"""Share of equal words from which two texts of one length have one template."""
_TEMPLATES: Final = 200
"""Most templates of one place; the one that was met longest ago makes room."""
_PLACES: Final = 5000
"""Most places whose templates are kept in memory."""
_MASKS: Final = (
    (r"https?://[^\s\"'<>)\]}]+", "url"),
    (r"\b[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+\b", "email"),
    (r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b", "id"),
    (r"\b(?=[0-9a-fA-F]*[0-9])[0-9a-fA-F]{8,}\b", "id"),
    (r"\b(?=\w*\d)(?=\w*[A-Za-z])[A-Za-z]{1,12}[_-][A-Za-z0-9]{6,}\b", "id"),
    (r"(?<![\w/])(?:~|\.{1,2})?(?:/[\w.@%+-]+){2,}/?", "path"),
    (r"\"[^\"\n]{1,200}\"|'[^'\n]{3,200}'(?!\w)", "text"),
    (r"(?<!\w)[+-]?\d[\d.,:]*(?:[eE][+-]?\d+)?(?:%|\w{0,3})?(?!\w)", "number"),
)


@cache
def _masker() -> LogMasker:
    from drain3.masking import LogMasker, MaskingInstruction  # a collector lacks the extra `judge`

    return LogMasker([MaskingInstruction(form, name) for form, name in _MASKS], "<", ">")


def _drain() -> Drain:
    from drain3.drain import Drain

    return Drain(depth=4, sim_th=_SIMILAR, max_clusters=_TEMPLATES, param_str=PARAMETER)


def masked(text: str) -> str:
    """Return the first `WORDS` words of a text, with what differs between runs replaced by its kind."""
    shown = _masker().mask(text[:_READ])
    return " ".join(word[:_LONGEST_WORD] for word in shown.split()[:WORDS])


@dataclass
class _Place:
    """The templates of one place, and the number of each cluster."""

    drain: Drain = field(default_factory=_drain)
    numbers: dict[int, int] = field(default_factory=dict)


class TextMiner:
    """Gives texts of one form at one place the same number.

    A place is any tuple of names, such as a failure mode with its agent; texts of different places
    have different numbers. A number is that of the first text of its template, so that processes that
    have read the same texts in the same order agree.
    """

    def __init__(self) -> None:
        self._places: OrderedDict[tuple[str, ...], _Place] = OrderedDict()

    def number(self, place: tuple[str, ...], text: str) -> int:
        """Return the number of a masked text's template, above 0; 0 for an empty text."""
        return self._number(place, text, 0)

    def learn(self, known: Iterable[tuple[tuple[str, ...], int, str]]) -> None:
        """Take over texts with their numbers, oldest first."""
        for place, number, text in known:
            self._number(place, text, number)

    def _number(self, place: tuple[str, ...], text: str, known: int) -> int:
        if not text:
            return 0
        here = self._places.pop(place, None) or _Place()
        self._places[place] = here
        if len(self._places) > _PLACES:
            self._places.popitem(last=False)
        cluster, _ = here.drain.add_log_message(text)
        if cluster.cluster_id not in here.numbers:
            here.numbers[cluster.cluster_id] = known or _hash(place, text)
            if len(here.numbers) > 2 * _TEMPLATES:
                kept = here.drain.id_to_cluster
                here.numbers = {one: number for one, number in here.numbers.items() if one in kept}
        return here.numbers[cluster.cluster_id]


def _hash(place: tuple[str, ...], text: str) -> int:
    digest = hashlib.sha256("\0".join((*place, text)).encode("utf-8", "replace")).digest()
    return int.from_bytes(digest[:8], "big") or 1
