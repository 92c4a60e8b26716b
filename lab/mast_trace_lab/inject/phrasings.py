"""Sentences of a model in place of the rules': which were accepted, and their use at a site.

Checks of a sentence that a model has written for an operator: it has to be what a rule would have written.

A sentence that tells of the fault, or that holds something of the run, would make a label that says more about the
model than about the fault. The checks are strict, because a refused sentence costs nothing: a rule's takes its
place.
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from mast_trace_judge.local.addressing.recognition import addresses_reader, clean
from mast_trace_lab.confirm.leaks import leaked
from mast_trace_lab.inject.operators.phrases import SENTENCES, Sentences

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from random import Random

    from mast_trace_lab.inject.sites import Change, RecordedAnswer

LONGEST: Final = 200
"""Characters of a sentence at most; those of the rules have up to 65."""
_FEWEST_WORDS: Final = 3
_PLAIN: Final = re.compile(r"[^\W\d_][^\x00-\x1f<>{}\[\]`|\\*#~«»]*", re.UNICODE)
_FOREIGN: Final = re.compile(r"[^\x00-\x7f\u2013\u2014\u2019]")
"""A character that is neither ASCII nor a dash or an apostrophe of print: sentences are English."""
_WORD: Final = re.compile(r"[^\W_]+")
_FIGURE: Final = re.compile(
    r"\d|%|\b(?:zero|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen|twenty|thirty|forty|fifty"
    r"|sixty|seventy|eighty|ninety|hundred|thousand|million|billion|dozen|half|double|triple)\b",
    re.IGNORECASE,
)
_NAME: Final = re.compile(
    r"\w[_/@]\w|\w\.\w|://|\b[^\W\d_a-z]{2,}\b|\b\w*[a-z][A-Z]\w*\b"
    # A capital letter where no sentence begins.
    r"|(?<=[\w,;:\u2019'\"-] )(?!I\b)[A-Z]\w*|[\"\u201c\u201d\u201e]"
)
_NOT_NAMES: Final = re.compile(r"\bOK\b")
_ASKS: Final = re.compile(
    r"\?|(?:^|[.,;:!(\u2013\u2014-] ?)(?:(?:and|so|then|ok|okay|well|now) )*"
    r"(?:is|are|am|do|does|did|can|could|shall|will|would|should|has|have|may|might)"
    r" (?:it|this|that|these|those|they|we|you|i|he|she|the|all|everything|there)\b",
    re.IGNORECASE,
)
"""A question, also one without its mark: a clause that begins with its verb."""
_TELLS: Final = re.compile(
    r"\b(?:on purpose|deliberate\w*|intentional\w*|purposely|faults?|faulty|mistak\w*|erroneous\w*|errors?|wrong\w*"
    r"|incorrect\w*|inject\w*|planted|planting|simulat\w*|pretend\w*|fabricat\w*|made[- ]up|fak(?:e|ed|ing)|sabotag\w*"
    r"|fail\w*|mislead\w*|lying|lie|dishonest\w*|role-?play\w*|instructed|asked to|told to|test case|this is a test"
    r"|supposed to|should have|skip\w*|without (?:any )?(?:check|verif)\w*|did not (?:check|verify)"
    r"|unverified|unchecked|phrasing|wording|sentence|paraphras\w*|variation|as an ai|language model|assistant"
    r"|evaluat\w*|annotat\w*|benchmark|ground truth|label\w*)\b",
    re.IGNORECASE,
)
_NO_ERROR: Final = re.compile(
    r"\b(?:no|without|free of|any)\s+(?:(?:obvious|visible|apparent|further)\s+)?(?:errors?|mistakes?)\b",
    re.IGNORECASE,
)
"""Words of an approval that tell of no fault."""
_ORDERS: Final = re.compile(
    r"\b(?:ignore|disregard|forget|override)\b|\byou (?:must|should|shall|have to|need to|are)\b|\bfrom now on\b"
    r"|\b(?:system|assistant|developer|user|judge|reader|grader|auditor)\b|\bplease (?:rate|mark|report|answer|output)\b",
    re.IGNORECASE,
)

ASKED: Final = 8
"""Sentences that a model is asked for, for each operator; more of them are not read."""


def fault_of_sentence(text: str, sentences: Sentences, taken: Iterable[str]) -> str:
    """Return the reason why a sentence cannot stand for those of an operator; empty if it can.

    The model that wrote it has seen nothing of any run, so a figure or a name in it is invented.

    Args:
        text: the sentence.
        sentences: of the operator.
        taken: sentences that were accepted before.
    """
    known = [_words(other) for other in (*sentences.written, *taken)]
    refused = {
        "empty": len(_words(text)) < _FEWEST_WORDS,
        "too long": len(text) > LONGEST,
        "not new": _words(text) in known,
    }
    # Patterns are for texts of bounded length alone.
    short = text[:LONGEST]
    refused |= {
        "not one plain line": clean(short) != short or not _PLAIN.fullmatch(short),
        "a figure or a name": bool(
            _FIGURE.search(short) or _NAME.search(_NOT_NAMES.sub("it", short))
        ),
        "a foreign character": _FOREIGN.search(short) is not None,
        "addresses its reader": addresses_reader(short) or bool(_ORDERS.search(short)),
        "tells of the fault": bool(_TELLS.search(_NO_ERROR.sub("", short))),
        "asks": _ASKS.search(short) is not None,
        "says the opposite": bool(sentences.refuses and sentences.refuses.search(short)),
        "does not say it": not sentences.needs.search(short),
        # Words that deny, doubt or confess are too many to be listed, so the others are.
        "a word outside the list": not sentences.vocabulary.holds(short),
    }
    return next((reason for reason, is_so in refused.items() if is_so), "")


def fault_at_site(text: str, recorded: str, answers: Iterable[str]) -> str:
    """Return the reason why an accepted sentence cannot replace a recorded answer; empty if it can.

    Args:
        text: the sentence.
        recorded: text of the recorded answer.
        answers: right answers of the run, as far as known.
    """
    if _words(text) == _words(recorded):
        return "the recorded text"
    said = f" {' '.join(_words(text))} "
    told = [each for each in answers if each.strip()]
    if any(f" {' '.join(_words(each))} " in said for each in told) or leaked(text, told, ()):
        return "the right answer"
    return ""


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


@dataclass(frozen=True)
class Checked:
    """The sentences of a model for one operator, after their checks.

    Attributes:
        accepted: those that can stand for the rules', in the model's order.
        refused: number of the others by reason.
    """

    accepted: tuple[str, ...]
    refused: Mapping[str, int]


@dataclass(frozen=True)
class Phrasings:
    """The sentences of a model by operator.

    Attributes:
        model: its name.
        checked: by name of the operator; an operator that is missing uses the rules' sentences.
    """

    model: str
    checked: Mapping[str, Checked] = field(default_factory=dict)

    def applied(self, change: Change, operator: str, site: RecordedAnswer, rng: Random) -> Change:
        """Return a change with a sentence of the model in place of the rule's.

        It is the same change where the operator says nothing, or where no sentence can stand at this site.

        Args:
            change: by the rules.
            operator: name of the operator.
            site: the recorded answer that is replaced.
            rng: chooses the sentence.
        """
        own = self.checked.get(operator)
        if own is None:
            return change
        written = SENTENCES[operator].written
        answers = (site.run.final_answer, site.run.outcome_reason, site.run.expected)
        fit = [
            (number, text)
            for number, text in enumerate(own.accepted)
            if not fault_at_site(text, site.said.content, answers)
        ]
        if not fit:
            return change
        number, text = rng.choice(fit)
        before = change.text.removesuffix(written[change.phrasing])
        return dataclasses.replace(
            change,
            text=before + text,
            phrasing=len(written) + number,
            phrased_by=self.model,
        )


def checked(operator: str, texts: Iterable[str]) -> Checked:
    """Check the sentences of a model for an operator.

    Args:
        operator: name of an operator of `SENTENCES`.
        texts: the sentences; those after `ASKED` are not read.
    """
    sentences = SENTENCES[operator]
    accepted: list[str] = []
    refused: Counter[str] = Counter()
    for text in list(texts)[:ASKED]:
        sentence = text.strip()
        if fault := fault_of_sentence(sentence, sentences, accepted):
            refused[fault] += 1
        else:
            accepted.append(sentence)
    return Checked(tuple(accepted), dict(refused))
