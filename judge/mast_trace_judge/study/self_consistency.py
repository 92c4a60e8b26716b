"""Agreement of a model with itself, over the runs that it has read several times.

A model that answers the same question differently each time knows less than its words suggest. The
converse does not hold: a model may repeat the same error, so that agreement is no share of right answers.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mast_trace.taxonomy import FAILURE_MODES
from mast_trace_judge.study.panel_votes import reading_votes

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from mast_trace_collector.storage.store import Store
    from mast_trace_judge.study.panel_votes import ReadingVote

_STEPS = """
SELECT toString(Model) AS Name, sum(Agreeing) / sum(Readings) AS Share
FROM mast_verdicts FINAL
WHERE JudgeVersion = {version:String} AND Status = 'ok' AND Readings > 1
  AND (isNotNull(DecisiveStep) OR notEmpty(`Candidates.Step`))
GROUP BY Model
"""


@dataclass(frozen=True)
class SelfConsistency:
    """The agreement of one model's readings of the same runs.

    Attributes:
        model: its name.
        runs: number of runs that it has read more than once.
        readings: number of readings of these runs.
        outcome: share of equal outcomes among all pairs of readings of one run.
        modes: Krippendorff's alpha of the answers to "does the run show this mode?", over runs and
            modes: 1 is full agreement, 0 that of chance. None where all answers are equal, because
            chance then explains them.
        step: share of the readings whose likeliest step is the verdict's. None where no verdict
            names one, and in a panel of several models, whose verdicts are not one model's.
    """

    model: str
    runs: int
    readings: int
    outcome: float
    modes: float | None
    step: float | None


def self_consistency(store: Store, judge_version: str) -> list[SelfConsistency]:
    """Return the agreement of each model with itself; empty where every run was read once.

    Raises:
        StorageError: the database does not answer.
    """
    rows = store.query(_STEPS, {"version": judge_version})
    steps = {row["Name"]: float(row["Share"]) for row in rows}
    found = []
    for model, runs in sorted(reading_votes(store, judge_version).items()):
        several = [list(votes.values()) for votes in runs.values() if len(votes) > 1]
        if several:
            found.append(
                SelfConsistency(
                    model=model,
                    runs=len(several),
                    readings=sum(map(len, several)),
                    outcome=equal_pairs([[vote.outcome for vote in votes] for votes in several]),
                    modes=krippendorff_alpha(_mode_answers(several)),
                    step=steps.get(model),
                )
            )
    return found


def _mode_answers(several: Iterable[Sequence[ReadingVote]]) -> list[list[bool]]:
    return [[code in vote.modes for vote in votes] for votes in several for code in FAILURE_MODES]


def equal_pairs(units: Sequence[Sequence[Hashable]]) -> float:
    """Return the share of equal answers among the pairs within each unit, each unit counting alike.

    Args:
        units: the answers to each question, two or more of each.
    """
    shares = [_equal_pairs(answers) for answers in units]
    return sum(shares) / len(shares)


def krippendorff_alpha(units: Sequence[Sequence[Hashable]]) -> float | None:
    """Return Krippendorff's alpha for nominal answers; None where all answers are equal.

    ``1 - Do / De``, where Do is the disagreement within units, weighted by their answers, and De
    that of all answers paired at random (Krippendorff, Content Analysis, 2004, chapter 11).

    Args:
        units: the answers to each question, two or more of each; their number may differ.
    """
    given = Counter(answer for answers in units for answer in answers)
    total = sum(given.values())
    by_chance = 1 - sum(n * (n - 1) for n in given.values()) / (total * (total - 1))
    if not by_chance:
        return None
    within = sum(len(answers) * (1 - _equal_pairs(answers)) for answers in units) / total
    return 1 - within / by_chance


def _equal_pairs(answers: Sequence[Hashable]) -> float:
    count = len(answers)
    return sum(n * (n - 1) for n in Counter(answers).values()) / (count * (count - 1))
