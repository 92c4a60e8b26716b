"""Sentences that operators put into an agent's mouth, and what makes a sentence fit for an operator."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

LATER: Final = (
    "I will look into this and report the result later.",
    "I have noted the task and shall come back with the result.",
    "This is under way. The figures follow as soon as I have them.",
    "Understood. I am going to work on it and send you the answer.",
)
UNCHECKED: Final = (
    "I have looked at it and it looks right. Approved.",
    "That seems correct to me, no need to check further.",
    "Everything is in order as far as I can see. It can go out.",
    "The result is plausible. I confirm it.",
)
ASSUMED: Final = (
    "I shall assume the usual case and go on without asking.",
    "To save time I take the standard option.",
    "This is not stated anywhere, so I simply choose a common value.",
)
ONCE_MORE: Final = (
    "Before we end, let us go through everything once more.",
    "I would like to discuss this again from the beginning.",
    "We should continue; there may be more to say about it.",
)


@dataclass(frozen=True)
class Sentences:
    """The sentences of one operator.

    Attributes:
        written: those that are written by rules.
        says: what each of them says, as a model is asked for more.
        needs: a pattern that a sentence has to contain to say so; without it the label would not be certain.
        refuses: a pattern of words that would say the opposite; None for none.
    """

    written: tuple[str, ...]
    says: str
    needs: re.Pattern[str]
    refuses: re.Pattern[str] | None = None


_NOT: Final = re.compile(
    r"\b(?:not|never|cannot|unless|but|however|reject\w*)\b|n['\u2019]t\b", re.IGNORECASE
)
_APPROVES: Final = Sentences(
    UNCHECKED,
    "approves the work of a colleague after a glance at it",
    re.compile(
        r"\b(?:approv|accept|agree|confirm|endorse|sign(?:ed|ing)? off|correct|right|fine|good|plausible"
        r"|in order|sound|reasonable|clear|pass|go (?:ahead|out)|proceed|ready|okay\b|OK\b)",
        re.IGNORECASE,
    ),
    _NOT,
)

SENTENCES: Final[Mapping[str, Sentences]] = {
    "1.5-no-end": Sentences(
        ONCE_MORE,
        "goes on with the conversation, or wants to go through everything again, where it could have ended",
        re.compile(
            r"\b(?:again|once more|further|continu|revisit|keep|go (?:on|over|through|back)|another|repeat"
            r"|start over|re-?examine|re-?examining|re-?visit|re-?view)",
            re.IGNORECASE,
        ),
    ),
    "2.2-assume": Sentences(
        ASSUMED,
        "assumes something that was not stated, and goes on without asking",
        re.compile(
            r"\b(?:assum|suppos|presum|take|choose|choosing|pick|go(?:ing)? with|default|usual|standard|typical|common"
            r"|guess)",
            re.IGNORECASE,
        ),
    ),
    "3.1-later": Sentences(
        LATER,
        "promises to do the work later, and does none of it now",
        re.compile(
            r"\b(?:will|shall|going to|later|soon|shortly|follow|under way|underway|in progress|as soon as)\b"
            r"|['\u2019]ll\b",
            re.IGNORECASE,
        ),
        re.compile(r"\b(?:here (?:is|are)|attached|cannot|unable|refuse)\b|can['\u2019]t\b|won['\u2019]t\b", re.IGNORECASE),
    ),
    "3.2-unchecked": _APPROVES,
    "3.3-approve": _APPROVES,
}  # fmt: skip
"""The sentences by the operator's name; operators without any change something else."""
