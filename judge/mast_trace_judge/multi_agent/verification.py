"""Verification: whether reviews change anything, and whether they stop what is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mast_trace_judge.local.rules._evidence import checks
from mast_trace_judge.local.texts import similarity
from mast_trace_judge.multi_agent.measure import Measure, Question, measure, ratio

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mast_trace_judge.multi_agent.team_run import TeamRun

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
