"""The profile of a system: all measures of its runs.

Provenance: which agents were the first to say the words of the answer.

Verification: whether reviews change anything, and whether they stop what is wrong.

Presence: the success of runs in which an agent acted, against runs in which it did not.

It is a hint only: an agent is often called because a run is hard. Leaving the agent out on purpose, in an
experiment with variants, tells its effect (leave-one-out; arXiv 2605.27621).
"""

from __future__ import annotations

import dataclasses
import random
from collections import Counter
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from mast_trace.exceptions import StorageError
from mast_trace.trajectory import SpanRecord, Step, read_trajectory
from mast_trace_collector.storage.run_spans import RunSpans
from mast_trace_collector.storage.runs import spans_of
from mast_trace_judge.intervals import newcombe
from mast_trace_judge.local.acts import checks
from mast_trace_judge.local.long_runs import is_long
from mast_trace_judge.local.texts import similarity
from mast_trace_judge.multi_agent.exchange import hand_offs, roles, specific_words, uptake, words_of
from mast_trace_judge.multi_agent.measure import (
    Measure,
    Question,
    TeamRun,
    mean,
    measure,
    ratio,
    team_run,
)
from mast_trace_judge.multi_agent.structure import concurrency, structure, talk

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from mast_trace_collector.storage import Store

YIELD: Final = Question(
    "review_yield",
    "Yield of reviews",
    "share",
    "After which share of the reviews does the author write something else than was reviewed?",
    "messages of other agents in the place of reviews",
    "Another text need not be a better one. Reviewers are known by their names.",
)
STOPPED: Final = Question(
    "reviews_stop_failures",
    "Wrong results that reviews stop",
    "share",
    "Of reviewed runs that failed or in which a review changed the result, which share succeeded?",
    "",
    "A result that a review changed is taken for a wrong one; without the review it might have been right.",
)
_SAME: Final = 0.95


@dataclass(frozen=True)
class _Answers:
    """Counts of answers to another agent: texts that the author changed afterwards, and all."""

    reviews: tuple[int, int]
    others: tuple[int, int]


def verification(runs: Sequence[TeamRun]) -> list[Measure]:
    """Return the yield of reviews, and the share of wrong results that they stop.

    A review is a message of an agent whose name says that it checks, after a message of one that does not.
    """
    parts: list[tuple[float, float]] = []
    others: list[tuple[float, float]] = []
    stopped: list[tuple[float, float]] = []
    reviewers: set[str] = set()
    for run in runs:
        answers = _answers(run)
        others.append(answers.others)
        changed, reviews = answers.reviews
        if not reviews:
            continue
        reviewers.update(step.agent for step in run.said if checks(step.agent))
        parts.append((changed, reviews))
        failed = run.trajectory.outcome == "failure"
        if failed or (changed and run.trajectory.outcome == "success"):
            stopped.append((0.0 if failed else 1.0, 1.0))
    detail = ["reviewers: " + ", ".join(sorted(reviewers)[:5])] if reviewers else []
    lacking = "with a review"
    return [
        measure(YIELD, parts, ratio, null=ratio(others), detail=detail, lacking=lacking),
        measure(STOPPED, stopped, ratio, lacking="with a review and a known outcome"),
    ]


def _answers(run: TeamRun) -> _Answers:
    """Count the messages after which the author before them wrote something else."""
    said = run.said
    counts = {True: [0, 0], False: [0, 0]}
    for place in range(1, len(said)):
        author, other = said[place - 1], said[place]
        if author.agent == other.agent or checks(author.agent):
            continue
        again = next((step for step in said[place + 1 :] if step.agent == author.agent), None)
        count = counts[checks(other.agent)]
        count[0] += again is not None and similarity(author.text, again.text) < _SAME
        count[1] += 1
    return _Answers((counts[True][0], counts[True][1]), (counts[False][0], counts[False][1]))


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


_LEAST: Final = 5


@dataclass(frozen=True)
class Presence:
    """Runs with known outcome, with and without an action of an agent.

    Attributes:
        agent: its name.
        with_it: successes and runs in which it acted.
        without: successes and runs in which it did not.
        low: lower end of the 95 % interval of the difference, with minus without (Newcombe 1998).
        high: its upper end.
    """

    agent: str
    with_it: tuple[int, int]
    without: tuple[int, int]
    low: float
    high: float


def presence(runs: Sequence[TeamRun]) -> list[Presence]:
    """Return the agents that act in some runs and not in others, at least five of each."""
    known = [run for run in runs if run.trajectory.outcome in {"success", "failure"}]
    found: list[Presence] = []
    for agent in sorted({agent for run in known for agent in run.agents}):
        sides: dict[bool, list[bool]] = {True: [], False: []}
        for run in known:
            sides[agent in run.agents].append(run.trajectory.outcome == "success")
        counts = [(sum(sides[acted]), len(sides[acted])) for acted in (True, False)]
        if min(count[1] for count in counts) >= _LEAST:
            low, high = newcombe(*counts)
            found.append(Presence(agent, counts[0], counts[1], low, high))
    return found


_AT_ONCE: Final = 16
MOST_SPANS: Final = 5_000
"""Spans of the longest run that is read."""


def read_team_runs(
    store: Store, rows: Iterable[Mapping[str, Any]]
) -> Iterator[tuple[TeamRun | None, int]]:
    """Yield each run, or None where it is too long, with the number of runs that are done.

    Args:
        store: the database.
        rows: of the query ``team_runs``. Recorded outcomes count alone: the judge's would measure the judge.

    Raises:
        StorageError: the database does not answer.
    """
    done = 0
    left = iter(rows)
    while some := list(islice(left, _AT_ONCE)):
        short = [row for row in some if row["Spans"] <= MOST_SPANS]
        found = _read(store, short)
        for row in some:
            done += 1
            yield found.get((row["Project"], row["TraceId"])), done


def _read(store: Store, rows: list[Mapping[str, Any]]) -> dict[tuple[str, str], TeamRun]:
    """Return runs by project and trace id; one by one if they are too large together."""
    try:
        spans = spans_of(store, [row["TraceId"] for row in rows])
    except StorageError:
        spans = _one_by_one(store, rows)
    found: dict[tuple[str, str], TeamRun] = {}
    for row in rows:
        key = (row["Project"], row["TraceId"])
        if key not in spans:
            continue
        trajectory = dataclasses.replace(read_trajectory(spans[key]), outcome=row["Outcome"])
        found[key] = team_run(spans[key], trajectory)
    return found


def _one_by_one(
    store: Store, rows: Iterable[Mapping[str, Any]]
) -> dict[tuple[str, str], list[SpanRecord]]:
    """Return the spans of those runs that can be read whole."""
    found: dict[tuple[str, str], list[SpanRecord]] = {}
    for row in rows:
        pages = RunSpans(store, row["TraceId"], project=row["Project"])
        if not is_long(pages):
            found[row["Project"], row["TraceId"]] = [span for page in pages.read() for span in page]
    return found


@dataclass(frozen=True)
class TeamProfile:
    """The measures of one system, none of which is a score.

    Attributes:
        runs: number of runs that were read.
        teams: of these, the runs in which several agents act.
        without_content: runs whose texts were not recorded; measures of words do not see them.
        measures: in the order of the documentation.
        presences: success with and without each agent: hints, not effects.
    """

    runs: int
    teams: int
    without_content: int
    measures: tuple[Measure, ...]
    presences: tuple[Presence, ...]


def measured(runs: Sequence[TeamRun]) -> TeamProfile:
    """Return the profile of a system from its runs, all of one variant."""
    return TeamProfile(
        runs=len(runs),
        teams=sum(len(run.agents) > 1 for run in runs),
        without_content=sum(not any(step.text for step in run.actions) for run in runs),
        measures=(
            uptake(runs),
            provenance(runs),
            roles(runs),
            *talk(runs),
            concurrency(runs),
            *verification(runs),
            *hand_offs(runs),
            *structure(runs),
        ),
        presences=tuple(presence(runs)),
    )
