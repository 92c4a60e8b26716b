"""Agreement between annotators of the same runs, people or judges, corrected for chance.

Cohen's kappa (1960) corrects for chance by each annotator's own shares; where a mode is rare it falls
although the annotators agree on nearly every run. Gwet's AC1 (2008) does not, so both are given, with
the prevalence, and no kappa at all where either annotator named too few runs.

The votes of each reading of a model, read from the ledger, tell how far the models of a panel agree, and a model with
itself. A model that answers the same question differently each time knows less than its words suggest. The
converse does not hold: a model may repeat the same error, so that agreement is no share of right answers.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from operator import eq
from typing import TYPE_CHECKING

from mast_trace.exceptions import VerdictUnreadable
from mast_trace.taxonomy import FAILURE_MODES, Category
from mast_trace_judge import intervals
from mast_trace_judge.llm.answers import Reading, parse_answer
from mast_trace_judge.store.ledger import TABLE
from mast_trace_judge.study.numeric import numpy_module

if TYPE_CHECKING:
    from mast_trace_collector.storage.store import Store

FEWEST_POSITIVES = 5
"""Number of positives of either annotator below which a kappa is meaningless and not given."""
_RESAMPLES = 1000
_CONFIDENCE = 0.95


@dataclass(frozen=True)
class Interval:
    """Normal quantile of a two-sided interval at 95 %."""

    low: float
    high: float


@dataclass(frozen=True)
class Agreement:
    """The agreement of two annotators on one question.

    Attributes:
        subject: a mode's code, a category's title, or another name.
        annotators: those whose answers are compared.
        items: the number of questions that both answered: one per run, or over all modes one per
            run and mode.
        positives: the number of yes answers of each annotator.
        both: the number of questions that both answered with yes.
        observed: the share of equal answers.
        kappa: None where an annotator has fewer than `FEWEST_POSITIVES`, or chance leaves no room.
        kappa_interval: by bootstrap over runs; None with kappa.
        ac1: None where nothing was rated.
    """

    subject: str
    annotators: tuple[str, str]
    items: int
    positives: tuple[int, int]
    both: int
    observed: float
    kappa: float | None
    kappa_interval: Interval | None
    ac1: float | None

    @property
    def prevalence(self) -> float:
        """The mean share of yes among the two annotators' answers."""
        return sum(self.positives) / (2 * self.items) if self.items else 0.0


def cohen_kappa(one: Sequence[Hashable], other: Sequence[Hashable]) -> float | None:
    """Return Cohen's kappa of two annotators' answers; None where chance alone explains everything."""
    if not one:
        return None
    observed = _equal(one, other)
    ours, theirs = Counter(one), Counter(other)
    expected = sum(ours[value] * theirs[value] for value in ours) / len(one) ** 2
    return None if math.isclose(expected, 1.0) else (observed - expected) / (1 - expected)


def gwet_ac1(one: Sequence[Hashable], other: Sequence[Hashable]) -> float | None:
    """Return Gwet's AC1 of two annotators' answers; None where there are none."""
    if not one:
        return None
    observed = _equal(one, other)
    given = Counter(one) + Counter(other)
    if len(given) == 1:
        return 1.0
    shares = [times / (2 * len(one)) for times in given.values()]
    expected = sum(share * (1 - share) for share in shares) / (len(shares) - 1)
    return (observed - expected) / (1 - expected)


def compare(
    subject: str,
    annotators: tuple[str, str],
    one: Sequence[bool],
    other: Sequence[bool],
    runs: Sequence[Hashable] | None = None,
) -> Agreement:
    """Compare two annotators' answers, one by one.

    Args:
        subject: of the comparison.
        annotators: their names.
        one: the answers of the first.
        other: those of the second.
        runs: the run that each answer is about; every answer is about another one if absent.

    Raises:
        ConfigurationError: an interval is wanted, and numpy is missing.
    """
    positives = (sum(one), sum(other))
    enough = min(positives) >= FEWEST_POSITIVES
    kappa = cohen_kappa(one, other) if enough else None
    return Agreement(
        subject=subject,
        annotators=annotators,
        items=len(one),
        positives=positives,
        both=sum(a and b for a, b in zip(one, other, strict=True)),
        observed=_equal(one, other),
        kappa=kappa,
        kappa_interval=None if kappa is None else _bootstrap(one, other, runs or range(len(one))),
        ac1=gwet_ac1(one, other),
    )


def agreement(ratings: Mapping[str, Mapping[str, Mapping[str, bool]]]) -> list[Agreement]:
    """Compare every pair of annotators, mode by mode, category by category, and over all modes.

    Only runs and modes that both rated count. A category is yes where any of its modes is; over all
    modes, every pair of run and mode is one answer.

    Args:
        ratings: by annotator, by run, whether the run shows a mode, by code.
    """
    found: list[Agreement] = []
    for pair in combinations(sorted(ratings), 2):
        one, other = ratings[pair[0]], ratings[pair[1]]
        runs = sorted(one.keys() & other.keys())
        shared = {run: one[run].keys() & other[run].keys() for run in runs}
        for code in FAILURE_MODES:
            rated = [run for run in runs if code in shared[run]]
            if rated:
                answers = ([who[run][code] for run in rated] for who in (one, other))
                found.append(compare(code, pair, *answers))
        for category in Category:
            codes = [c for c, mode in FAILURE_MODES.items() if mode.category is category]
            rated = [run for run in runs if shared[run] & set(codes)]
            if rated:
                answers = (
                    [any(who[run][c] for c in codes if c in shared[run]) for run in rated]
                    for who in (one, other)
                )
                found.append(compare(category.title, pair, *answers))
        every = [(run, code) for run in runs for code in FAILURE_MODES if code in shared[run]]
        if every:
            ours, theirs = ([who[run][code] for run, code in every] for who in (one, other))
            found.append(compare(ALL_MODES, pair, ours, theirs, [run for run, _ in every]))
    return found


ALL_MODES = "all modes"
"""The subject under which `agreement` compares all answers of two annotators together."""


@dataclass(frozen=True)
class StepAgreement:
    """The agreement of two annotators on the decisive step and agent, as shares of the runs.

    Where an annotator calls several steps decisive, the nearest two of both annotators count.
    """

    runs: int
    exact: float
    within_one: float
    within_three: float
    agent: float
    agent_kappa: float | None


def step_agreement(
    one: Sequence[tuple[int | Sequence[int], str]], other: Sequence[tuple[int | Sequence[int], str]]
) -> StepAgreement:
    """Compare two annotators' decisive steps and agents, run by run.

    Args:
        one: for each run, the step or the steps that the first one calls decisive, and the agent.
        other: those of the second, of the same runs.
    """
    count = max(1, len(one))
    distances = [
        min(abs(mine - theirs) for mine in _steps(a[0]) for theirs in _steps(b[0]))
        for a, b in zip(one, other, strict=True)
    ]
    agents = [a[1].lower() for a in one], [b[1].lower() for b in other]
    return StepAgreement(
        runs=len(one),
        exact=sum(distance == 0 for distance in distances) / count,
        within_one=sum(distance <= 1 for distance in distances) / count,
        within_three=sum(distance <= 3 for distance in distances) / count,
        agent=_equal(*agents),
        agent_kappa=cohen_kappa(*agents),
    )


def _steps(named: int | Sequence[int]) -> Sequence[int]:
    return (named,) if isinstance(named, int) else named


def wilson(successes: int, trials: int) -> Interval:
    """Return Wilson's interval for a share; from 0 to 1 where nothing was tried."""
    return Interval(*intervals.wilson(successes, trials))


def _equal(one: Sequence[Hashable], other: Sequence[Hashable]) -> float:
    if len(one) != len(other):
        raise ValueError(f"{len(one)} answers of one annotator, {len(other)} of the other")
    return sum(map(eq, one, other)) / len(one) if one else 0.0


def _bootstrap(
    one: Sequence[bool], other: Sequence[bool], runs: Sequence[Hashable]
) -> Interval | None:
    """Return the percentile interval of kappa over runs drawn with replacement.

    Kappa depends only on the counts of each pair of answers, and many runs have the same pairs: the
    number of drawn runs of each kind is one multinomial draw. The generator is the one whose
    numbers numpy guarantees never to change, so that the same answers give the same interval
    everywhere. A draw in which kappa does not exist is left out.
    """
    np = numpy_module()
    pairs: dict[Hashable, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for a, b, run in zip(one, other, runs, strict=True):
        pairs[run][2 * a + b] += 1
    kinds = sorted(Counter(map(tuple, pairs.values())).items())
    shares = np.array([times for _, times in kinds]) / len(pairs)
    times = np.random.RandomState(0).multinomial(len(pairs), shares, size=_RESAMPLES)
    neither, theirs, ours, both = (times @ np.array([kind for kind, _ in kinds])).T
    count = neither + theirs + ours + both
    yes_yes, no_no = (ours + both) * (theirs + both), (theirs + neither) * (ours + neither)
    expected = (yes_yes + no_no) / count**2
    possible = yes_yes + no_no < count**2
    observed = (both + neither) / count
    drawn = np.sort(((observed - expected)[possible]) / (1 - expected[possible]))
    if not len(drawn):
        return None
    cut = (1 - _CONFIDENCE) / 2
    last = len(drawn) - 1
    return Interval(float(drawn[round(cut * last)]), float(drawn[round((1 - cut) * last)]))


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
