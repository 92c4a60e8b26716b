"""Sentences of a model in place of the rules': which were accepted, and their use at a site."""

from __future__ import annotations

import dataclasses
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from mast_trace_lab.inject.operators.phrases import SENTENCES
from mast_trace_lab.inject.phrase_check import fault_at_site, fault_of_sentence

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from random import Random

    from mast_trace_lab.inject.changes import Change
    from mast_trace_lab.inject.sites import Answer

ASKED: Final = 8
"""Sentences that a model is asked for, for each operator; more of them are not read."""


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

    def applied(self, change: Change, operator: str, site: Answer, rng: Random) -> Change:
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
        answers = (site.run.final_answer, site.run.outcome_reason)
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
