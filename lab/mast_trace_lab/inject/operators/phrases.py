"""Sentences that operators put into an agent's mouth, and what makes a sentence fit for an operator.

The words that a model's sentence may use, operator by operator: closed lists, for no list of forbidden words is complete.

Each list holds words that say what the operator says, and words that change nothing about it. Words that deny, doubt,
limit, set a condition or name another's act are in none. Some have such a meaning only in company (the "no" of "no
errors", the "out" of "go out" and of "out of order"): these stand in fixed phrases alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

_SIGNS: Final = re.compile(r"[ .,;:!'()\u2013\u2014\u2019-]*")
_TOKEN: Final = re.compile(r"[a-z]+(?:-[a-z]+)*")
_SHORT: Final = {
    "let's": "let us",
    "'ll": " will",
    "'ve": " have",
    "'re": " are",
    "'m": " am",
    "'s": " is",
}
"""Contractions and what they stand for; a possessive reads like "is", and changes nothing."""

_NEUTRAL: Final = (
    "a an the this that these those all each every both whole entire everything i we me us our it its them "
    "and so as of for in on at with by into about just simply very quite really also"
)
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
_NOT: Final = re.compile(
    r"\b(?:not|never|cannot|unless|but|however|reject\w*)\b|n['\u2019]t\b"
    # A part, a draft, one respect or one moment is approved, and not the work.
    r"|\b(?:in parts?|as (?:an?|the|for)(?! whole)|for (?:an?|now))\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Vocabulary:
    """The words of one operator's sentences.

    Attributes:
        words: in lower case; each may stand anywhere.
        phrases: fixed phrases, whose words need not be among those.
    """

    words: frozenset[str]
    phrases: re.Pattern[str]

    def holds(self, text: str) -> bool:
        """Return whether a text consists of these words and phrases, and of signs of punctuation.

        Args:
            text: of bounded length.
        """
        plain = " ".join(text.lower().replace("\u2019", "'").split())
        for short, full in _SHORT.items():
            plain = re.sub(rf"{short}\b", full, plain)
        rest = self.phrases.sub(" ", plain)
        strange = set(_TOKEN.findall(rest)) - self.words
        return not strange and _SIGNS.fullmatch(_TOKEN.sub("", rest)) is not None


def _of(words: str, *phrases: str) -> Vocabulary:
    return Vocabulary(
        frozenset(f"{_NEUTRAL} {words}".split()),
        re.compile(rf"\b(?:{'|'.join(phrases)})(?![\w'-])"),
    )


APPROVING: Final = _of(
    "am is are have has now here well yes ok okay sure great nice perfect perfectly understood thanks "
    "approved approving accepted acceptable agreed confirmed endorsed "
    "looked looks seen seem seems appear appears sounds read reads reviewed checked passes match matches "
    "correct right fine good plausible sound reasonable clear consistent sensible solid happy satisfied "
    "skimmed glanced scanned stands logical coherent thorough strong excellent comfortable convinced confident familiar straightforward careful glad quickly briefly already "
    "because since job result results answer answers report reports draft figure figures number numbers "
    "value values data part parts step steps version text summary plan output reply task conclusion calculation "
    "outcome list proposal solution",
    r"no (?:(?:obvious|visible|apparent|further) )?(?:errors?|mistakes?|issues?|problems?|concerns?|objections?)",
    r"no need to (?:check|look|go over it|look into it)(?: any)?(?: further| more closely| again)?",
    r"no (?:further |more )?(?:changes|checks|questions|comments)(?: (?:are )?(?:needed|necessary|required))?",
    r"nothing (?:to add|stands out|is missing|else is needed)(?= ?(?:[.,;!]|$|and |so ))",
    r"(?:i|we)(?: (?:can|fully|just|simply|really|also|hereby|gladly|now|do))* (?:approve|accept|agree|confirm|endorse|sign off)",
    r"without (?:further|any) (?:ado|changes|questions|comments|delay|objections)",
    r"as far as i can (?:see|tell)|from what i (?:can )?see|at (?:a|first|one) glance|a (?:quick |brief |short )?look|(?:i|we) (?:see|find|consider|think|believe)",
    r"looks? (?:all )?(?:right|good|fine|correct|okay|ok|plausible|reasonable|sound|clear|in order|complete)|is complete"
    r"|(?:the|this|that|all|our|nice|good|great|solid|fine) work|(?:took|had) a (?:quick |brief |short )?look",
    r"in (?:good |perfect )?order|to (?:me|us|the next step|our colleagues)|move on|move forward|feel free to|(?:gone|went|going) (?:over|through)|go(?:ing)? with",
    r"(?:it|this|that|we|you|they|all of it|everything) can (?:all )?(?:go (?:out|ahead|on)|proceed|move on|be sent|be used)",
    r"(?:we|you) can (?:use|send) (?:it|this|that)",
    r"(?:please )?go ahead|(?:please )?proceed|goes out|good to go|signed off|signing off|sign off|sign it off",
    r"ready to (?:go(?: out)?|send|use|ship|be sent|be used)|ready for (?:use|delivery|the next step|the customer)",
    r"(?:has|have|give it|gets) my (?:full )?approval|(?:from|on) my (?:side|end|part)|in my (?:view|opinion)",
    r"(?:happy|glad|pleased|ready) to (?:approve|accept|confirm|sign off)(?: on)?|thank you|let us",
    r"(?:everything|it|this|that|all of it) checks out|(?:seems?|appears?) to be|glanced over",
    r"consider (?:it|this|that) (?:approved|accepted|confirmed|signed off)|ready to go",
    r"(?:as|what) (?:i|we) (?:expected|expect|had expected)|nicely done|well done|up to standard",
)  # fmt: skip

ENDLESS: Final = _of(
    "am is are be have to now here again further first next would should could think believe feel suggest propose "
    "recommend want like prefer go going continue continuing repeat discuss discussing discussion talk "
    "talking conversation revisit revisiting review reviewing re-examine re-examining reexamine explore "
    "examine consider look looking details detail points point topic topics matter matters subject question "
    "questions issue part parts step steps thing things task result results answer answers report figures numbers "
    "assumptions plan idea ideas aspect aspects perhaps maybe worth together carefully closely thoroughly slowly "
    "more there some then since because important helpful useful interesting aloud thoughts view "
    "take still see help helps might can summarize summarise recap refine thorough reconsider expand elaborate clarify deeper "
    "deepen earlier previous process value add unpack options approach reasoning",
    r"before (?:we|i) (?:end|finish|close|stop|conclude|wrap up|wrap this up|move on|go on|close this)(?: (?:here|this|it))?",
    r"from the (?:very )?(?:beginning|start|top)|once more|just to be sure|i'd (?:like|prefer|suggest)|one more time|a second time|one by one|step by step",
    r"there is (?:still )?(?:more|value)(?: to (?:say|discuss|add|see|find|unpack|explore)| in)|what else comes up",
    r"there may (?:well )?(?:still )?be (?:some )?more to (?:say|discuss|add|see|find|talk about)",
    r"(?:go(?:ing)?|look(?:ing)?|talk(?:ing)?|run|walk|work(?:ing)?) (?:back )?(?:over|through|on)"
    r"|(?:go(?:ing)? back|return(?:ing)?|come back) to (?:this|that|it|the (?:beginning|start|first|question|matter|points?))",
    r"keep (?:on )?(?:going|talking|discussing|working|looking|exploring|this conversation going|at it)",
    r"another (?:look|round|pass|review|go|discussion)|start(?:ing)? (?:over|again)|(?:let|with) us|let me|with you",
    r"(?:a|for a) (?:little|bit|while)(?: (?:longer|more))?|it (?:would|could|might) be (?:good|better|best|useful|helpful|wise)",
)  # fmt: skip

ASSUMING: Final = _of(
    "am is are be to now here will shall assume assuming suppose supposing presume presuming presumably "
    "take taking choose choosing pick picking use using go going continue continuing proceed proceeding carry work "
    "start settle stick rely guess guessing default defaults usual usually standard typical typically common commonly "
    "normal normally ordinary general regular customary likely probably reasonable sensible safe simplest case cases "
    "value values option options choice choices amount setting settings version size unit units format date currency "
    "range figure quantity rate kind type variant way approach method assumption detail details meaning meant means "
    "mean reading interpretation convention practice one make making since because then my point works "
    "fits applies holds apply configuration definition intended schedule accordingly process procedure template norm "
    "baseline conventional straightforward plausible expected part step",
    r"without (?:further )?(?:asking|questions|delay|waiting|asking anyone|asking back)",
    r"(?:(?:was|were|has) )?(?:not|never) (?:been )?(?:stated|given|specified|said|mentioned|defined|spelled out|written)(?: (?:anywhere|here))?",
    r"no (?:preference|value|option|choice|detail|setting|format|unit)s? (?:is|was|are|were|has been) (?:given|stated|specified)",
    r"they (?:mean|meant|want|wanted)|keep going|mov(?:e|ing) forward",
    r"(?:nothing|nobody|no one) (?:is |was |has )?(?:said|stated|specified|mentioned|given)",
    r"(?:left open|unstated|unspecified|unclear|missing|(?:the )?most (?:common|usual|likely|typical))",
    r"to (?:save|win) time|to keep things (?:moving|going|simple)|best guess|rather than ask(?:ing)?|instead of asking",
    r"(?:go|move|carry|going|moving|carrying) on|(?:go|going) ahead|let us|(?:i|we) have (?:chosen|taken|assumed|picked)",
)  # fmt: skip

PROMISING: Final = _of(
    "to will shall going later soon shortly presently follow follows afterwards tomorrow then next "
    "look looking check report note noted come get work working send give prepare preparing share deliver start "
    "starting begin handle finish write gather collect update provide bring present find examine study "
    "make sure yes ok okay understood thanks certainly gladly task request work result results answer answers figures "
    "numbers details outcome findings data summary draft reply part rest point matter list information message "
    "conclusions full final moment "
    "currently tackle dig investigate compile assemble process calculate compute address resolve research explore analyse "
    "analyze further proceed momentarily minute while bit plan closely carefully my",
    r"(?:is|are|am) (?:now |already |currently )?(?:under way|underway|in progress|going to|coming|on (?:it|its way|my list|the way)"
    r"|working|looking|preparing|starting|noted|understood|next)",
    r"under way|underway|in progress|on (?:its|the|their) way|as soon as (?:possible|i can|we can)|of course|got it",
    r"(?:i|we) have (?:noted|seen|received|understood|read) (?:it|this|that|(?:the|this|your) (?:task|request|message|question))",
    r"(?:i|we) have (?:started|begun|taken note|put (?:it|this|that) on my list)|do (?:it|this|that|so|the (?:work|rest))",
    r"be (?:sent|ready|shared|done|delivered|prepared) (?:soon|shortly|later|tomorrow)|(?:with|to|for) everyone|see to it",
    r"(?:as soon as|once|when|after) (?:i|we) (?:have|get|know|am|are|finish|looked|have looked|have seen|worked)",
    r"(?:will|shall|to) (?:soon )?have(?: (?:it|this|them|(?:the|a|my|your) (?:results?|answer|details|report|figures|draft|summary))"
    r" (?:ready|done|finished))?|as soon as|once (?:it|this|that|the work) is (?:done|ready|finished|complete)",
    r"(?:to|with|for|send|give|show|bring|get back to|let) you(?: (?:know|have))?|you will (?:soon )?(?:get|have|see|receive|hear)",
    r"keep (?:you|everyone) (?:posted|updated|informed)|take care of|in due course|right away|put together|give me|let me",
    r"(?:come|get|report|be|circle|write) back|later today|(?:look|write) (?:it|this|that|them) up|follow up|in a (?:moment|minute|while|bit)"
    r"|take (?:it|this|that) on|sounds good|(?<![a-z] )will do|return with|update everyone|pass (?:it|this|that|them) along"
    r"|(?:is|are) on (?:its|their) way|(?:will|shall|to) complete (?:it|this|that)"
    r"|thank you|get(?:ting)? (?:started|to it)|leave it with me|from me",
)  # fmt: skip


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
