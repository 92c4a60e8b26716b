"""Provenance: which agents were the first to say the words of the answer."""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING, Final

from mast_trace_judge.multi_agent.measure import Measure, Question, mean, measure
from mast_trace_judge.multi_agent.uptake import specific_words, words_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet

    from mast_trace.trajectory import Step
    from mast_trace_judge.multi_agent.team_run import TeamRun

PROVENANCE: Final = Question(
    "provenance",
    "Largest part of the answer from one agent",
    "share",
    "Of the answer's words and numbers that are specific to the run, which share did one agent say first?",
    "the same messages with their authors shuffled within the run",
    "Who said a word first need not have found it out: a tool or the task may have told it to several.",
)
_LEAST_WORDS: Final = 3
_SHUFFLES: Final = 20
_SEED: Final = 12
_CONTRIBUTES: Final = 0.1


def provenance(runs: Sequence[TeamRun]) -> Measure:
    """Return the mean share of the answer's specific words that the first agent among all said first.

    A run counts if several agents speak and its answer has at least three such words, words of the task
    left out.
    """
    rare = specific_words(runs)
    draw = random.Random(_SEED)  # noqa: S311  # reproducible, not secret
    tops: list[float] = []
    contributors: list[float] = []
    chance: list[float] = []
    for run in runs:
        said = run.said
        authors = [step.agent for step in said]
        wanted = (words_of(said[-1].text) & rare) - words_of(run.trajectory.task) if said else set()
        if len(set(authors)) < 2 or len(wanted) < _LEAST_WORDS:
            continue
        shares = _shares(said, authors, wanted)
        tops.append(max(shares.values()))
        contributors.append(sum(share >= _CONTRIBUTES for share in shares.values()))
        for _ in range(_SHUFFLES):
            draw.shuffle(authors)
            chance.append(max(_shares(said, authors, wanted).values()))
    several = mean(contributors)
    detail = [] if several is None else [f"{several:.1f} agents with at least a tenth, on average"]
    lacking = "with several speaking agents and an answer of three such words"
    return measure(PROVENANCE, tops, mean, null=mean(chance), detail=detail, lacking=lacking)


def _shares(
    said: Sequence[Step], authors: Sequence[str], wanted: AbstractSet[str]
) -> dict[str, float]:
    """Return each author's share of the words that it said first."""
    first: dict[str, str] = {}
    for step, author in zip(said, authors, strict=True):
        for word in words_of(step.text) & wanted:
            first.setdefault(word, author)
    counts = Counter(first.values())
    return {author: count / len(wanted) for author, count in counts.items()}
