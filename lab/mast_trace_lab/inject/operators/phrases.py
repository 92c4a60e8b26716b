"""Sentences that operators put into an agent's mouth, and what makes a sentence fit for an operator."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mast_trace_lab.inject.operators.vocabulary import (
    APPROVING,
    ASSUMING,
    ENDLESS,
    PROMISING,
    Vocabulary,
)

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
        vocabulary: the words that such a sentence of a model may use.
        needs: a pattern that a sentence has to contain to say so; without it the label would not be certain.
        refuses: a pattern of words that would say the opposite; None for none.
    """

    written: tuple[str, ...]
    says: str
    vocabulary: Vocabulary
    needs: re.Pattern[str]
    refuses: re.Pattern[str] | None = None


_NOT: Final = re.compile(
    r"\b(?:not|never|cannot|unless|but|however|reject\w*)\b|n['\u2019]t\b"
    # A part, a draft, one respect or one moment is approved, and not the work.
    r"|\b(?:in parts?|as (?:an?|the|for)(?! whole)|for (?:an?|now))\b",
    re.IGNORECASE,
)
_APPROVES: Final = Sentences(
    UNCHECKED,
    "approves the work of a colleague after a glance at it",
    APPROVING,
    re.compile(
        r"\b(?:approv(?:e|ed|ing|al)|accept(?:ed|able)?|agreed?|confirm(?:ed)?|endorsed?|sign(?:ed|ing)? off|passes(?! (?:for|by|on))"
        r"|go (?:ahead|out)|good to go|ready (?:to|for)|proceed)\b"
        # A state that the work has: "I have the right answer" approves of nothing.
        r"|(?:\b(?:is|are|looks?|(?:seems?|appears?)(?: to be)?|sounds?|reads?|find (?:it|this|that)|all)|['\u2019](?:s|re))"
        r"(?: (?:to (?:me|us)|all|very|quite|really|perfectly|just|also|so))*"
        r" (?:correct|right(?! (?:here|now))|fine|good|plausible|in (?:good |perfect )?order|sound|reasonable|clear|okay|ok)\b"
        r"|\b(?:fine|good|okay|ok|right|clear) (?:by|with|for|to) (?:me|us)\b",
        re.IGNORECASE,
    ),
    _NOT,
)

SENTENCES: Final[Mapping[str, Sentences]] = {
    "1.5-no-end": Sentences(
        ONCE_MORE,
        "goes on with the conversation, or wants to go through everything again, where it could have ended",
        ENDLESS,
        re.compile(
            r"\b(?:again|once more|further|continu|revisit|keep|go (?:on|over|through|back)|another|repeat"
            r"|start over|re-?examine|re-?examining|re-?visit|re-?view)",
            re.IGNORECASE,
        ),
        re.compile(
            r"\b(?:that(?: is|['\u2019]s) (?:all|everything|it)|all there is"
            r"|(?:to|with) (?:the|our) next"
            # A talk that has its result ends.
            r"|(?:have|has|['\u2019]ve) (?:(?:all|both|each) )*(?:(?:of )?(?:the|an?|our|this|that|its) )?(?:results?|answers?)"
            r"|go(?:ing)? with)\b",
            re.IGNORECASE,
        ),
    ),
    "2.2-assume": Sentences(
        ASSUMED,
        "assumes something that was not stated, and goes on without asking",
        ASSUMING,
        re.compile(
            r"^(?=.*\b(?:assum|suppos|presum|take|choose|choosing|pick|go(?:ing)? with|default|usual|standard|typical|common"
            r"|guess))"
            r"(?=.*\b(?:assum|suppos|presum|guess|tak(?:e|ing)|choose|choosing|pick|us(?:e|ing)|go(?:ing)? (?:on )?with|settle|rely"
            r"|stick|work(?:ing)? with|proceed with|continue with|start with)\w*)",
            re.IGNORECASE,
        ),
    ),
    "3.1-later": Sentences(
        LATER,
        "promises to do the work later, and does none of it now",
        PROMISING,
        re.compile(
            r"\b(?:will|shall|going to|later|soon|shortly|follow|under way|underway|in progress|as soon as)\b"
            r"|['\u2019]ll\b",
            re.IGNORECASE,
        ),
        re.compile(r"\b(?:here (?:is|are)|as follows?|attached|cannot|unable|refuse)\b|can['\u2019]t\b|won['\u2019]t\b", re.IGNORECASE),
    ),
    "3.2-unchecked": _APPROVES,
    "3.3-approve": _APPROVES,
}  # fmt: skip
"""The sentences by the operator's name; operators without any change something else."""
