"""Sanitises a run's texts before a model reads them.

A run may contain text that was written to steer its reader. Three measures keep it evidence:
invisible characters are removed, the first characters of every line mark it as part of the record,
and passages that plainly address the judge are withheld.
"""

from __future__ import annotations

import hashlib

from mast_trace_judge.local.addressing.phrases import without_phrases
from mast_trace_judge.local.addressing.recognition import addresses_reader

WITHHELD = "[a passage that addresses the reader of this record was withheld]"


def withhold(text: str) -> str:
    """Replace every line of a cleaned text that addresses the judge of the run."""
    if not addresses_reader(text):
        return text
    lines = [WITHHELD if addresses_reader(line) else line for line in text.split("\n")]
    joined = "\n".join(lines)
    # A passage over several lines is found in the whole text only; the end of a disguised one is
    # unknown.
    joined = without_phrases(joined, WITHHELD)
    return WITHHELD if addresses_reader(joined) else joined


def nonce(*parts: str) -> str:
    """Return the mark of one run's fences.

    The mark is derived, not random: the same run gets the same prompt again, so that caches of
    prompt prefixes hit and a paid answer is found again.
    """
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:12]
