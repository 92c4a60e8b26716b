"""The votes of each reading of a model, read from the ledger, which tell how far the models of a panel agree.

Agreement of a model with itself, over the runs that it has read several times.

A model that answers the same question differently each time knows less than its words suggest. The
converse does not hold: a model may repeat the same error, so that agreement is no share of right answers.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mast_trace.exceptions import VerdictUnreadable
from mast_trace.taxonomy import FAILURE_MODES
from mast_trace_judge.llm.answers import Reading, parse_answer
from mast_trace_judge.store.ledger import TABLE

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from mast_trace_collector.storage.store import Store

_ANSWERS = f"""
SELECT toString(Model) AS Model, Project, TraceId, Sample, Answer
FROM {TABLE} FINAL
WHERE JudgeVersion = {{version:String}} AND Status = 'ok' AND Stage = 'read'
ORDER BY StartedAt
"""  # noqa: S608  # made of constants

_STEPS = """
SELECT toString(Model) AS Name, sum(Agreeing) / sum(Readings) AS Share
FROM mast_verdicts FINAL
WHERE JudgeVersion = {version:String} AND Status = 'ok' AND Readings > 1
  AND isNotNull(ModelStep)
GROUP BY Model
"""


@dataclass(frozen=True)
class ReadingVote:
    """The answers of one reading of a run.

    Attributes:
        outcome: the outcome that the model sees; empty where its answer is unreadable.
        modes: codes of the failure modes that it reports.
    """

    outcome: str
    modes: frozenset[str] = frozenset()


ReadingVotes = dict[str, dict[str, dict[int, ReadingVote]]]
"""The votes by model, by run (``project/trace id``), and by the number of the reading."""


def reading_votes(store: Store, judge_version: str) -> ReadingVotes:
    """Return the vote of every reading by this version of the judge.

    Raises:
        StorageError: the database does not answer.
    """
    votes: ReadingVotes = defaultdict(lambda: defaultdict(dict))
    for row in store.query(_ANSWERS, {"version": judge_version}):
        of_run = votes[row["Model"]][f"{row['Project']}/{row['TraceId']}"]
        of_run[row["Sample"]] = _vote(row["Answer"])
    return votes


def panel_votes(store: Store, judge_version: str) -> dict[str, dict[str, dict[str, bool]]]:
    """Return the answer of each model to each failure mode, by model, run and code.

    A run that a model has read without naming an error has none of them. If a model has read a run
    several times, at least half of its readings have to report a mode, as in verdicts.

    Raises:
        StorageError: the database does not answer.
    """
    return {
        model: {run: _shared_modes(list(votes.values())) for run, votes in runs.items()}
        for model, runs in reading_votes(store, judge_version).items()
    }


def _shared_modes(votes: list[ReadingVote]) -> dict[str, bool]:
    return {
        code: 0 < sum(code in vote.modes for vote in votes) * 2 >= len(votes)
        for code in FAILURE_MODES
    }


def _vote(answer: str) -> ReadingVote:
    try:
        reading = parse_answer(answer, Reading)
    except VerdictUnreadable:  # written for another version's question
        return ReadingVote("")
    codes = frozenset(mode.code for mode in reading.modes if not mode.harmless)
    return ReadingVote(reading.outcome, codes)


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
        step: share of the readings that suggest first what all together do. None where they never name a step, and in a panel of several models, whose verdicts are not one model's.
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
                    modes=krippendorff_alpha(
                        [
                            [code in vote.modes for vote in votes]
                            for votes in several
                            for code in FAILURE_MODES
                        ]
                    ),
                    step=steps.get(model),
                )
            )
    return found


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
