"""What stands between a run's texts and the model that reads them.

A run may hold text that was written to steer its reader. Three things keep it evidence: invisible
characters are removed, every line of it is marked as the record's by its first characters, and
passages that plainly address the judge are withheld.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata

_INVISIBLE = {"Cc", "Cf", "Co", "Cs", "Cn"}
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_VARIATION = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]")
WITHHELD = "[a passage that addresses the reader of this record was withheld]"

# Narrow on purpose: agents that instruct, review or grade each other are ordinary.
_ADDRESSED = re.compile(
    r"""
    (?:ignore|disregard|forget|override)\s+(?:(?:all|any|every|the|your|these|those|of)\s+)*
        (?:previous|prior|above|earlier|preceding|system|other|foregoing)\s+
        (?:\w+\s+)?(?:instruction|rule|prompt|direction|guideline)s?
    | (?:note|attention|message|instructions?|hint|reminder)\s*(?:to|for|,|:)\s*(?:the\s+|any\s+)?
        (?:\w+\s+)?(?:auditor|judge|evaluator|grader|assessor)\b
    | \b(?:auditor|judge|evaluator|grader|assessor)s?\s*[,:]\s*(?:please\s+)?
        (?:you\s+must|report|mark|rate|score|answer|output|say|declare|conclude|set|ignore|return)\b
    | (?:mark|rate|score|classify|report|declare|judge)\s+(?:this|the)\s+
        (?:whole\s+|entire\s+)?(?:run|trace|record|trajectory|transcript|execution)\s+
        (?:as|to\s+be|a|is)\b
    | ["']?(?:failure_probability|flip_probability|uses_only_earlier_information)["']?\s*[:=]
    """,
    re.IGNORECASE | re.VERBOSE,
)


def clean(text: str) -> str:
    """Return the text as it looks: NFKC, without control, zero-width and other unseen characters."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if text.isascii():
        return _CONTROL.sub("", text)
    folded = _VARIATION.sub("", unicodedata.normalize("NFKC", text))
    if folded.isprintable():
        return folded
    return "".join(
        char for char in folded if char in "\n\t" or unicodedata.category(char) not in _INVISIBLE
    )


def addresses_reader(text: str) -> bool:
    """Whether a passage of the text speaks to whoever judges the run."""
    return _ADDRESSED.search(text) is not None


def withhold(text: str) -> str:
    """Replace every line of a cleaned text that speaks to whoever judges the run."""
    if not addresses_reader(text):
        return text
    lines = [WITHHELD if addresses_reader(line) else line for line in text.split("\n")]
    joined = "\n".join(lines)
    # A passage over several lines is found in the whole text only.
    return _ADDRESSED.sub(WITHHELD, joined)


def nonce(*parts: str) -> str:
    """Return the mark of one run's fences.

    Derived, not drawn: the same run gets the same prompt again, so that caches of prompt prefixes
    hold and an answer that was paid for is found again.
    """
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:12]
