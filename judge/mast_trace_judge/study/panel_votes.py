"""The votes of each reading of a model, read from the ledger, and the agreement of a panel's models."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mast_trace.exceptions import VerdictUnreadable
from mast_trace.taxonomy import FAILURE_MODES
from mast_trace_judge.llm.answers import Mapping as MappedModes
from mast_trace_judge.llm.answers import Reading
from mast_trace_judge.llm.parsing import parse_answer
from mast_trace_judge.store.ledger import TABLE
from mast_trace_judge.study.agreement import Agreement, agreement

if TYPE_CHECKING:
    from mast_trace_collector.storage.store import Store

_ANSWERS = f"""
SELECT toString(Model) AS Model, Project, TraceId, Sample, toString(Stage) AS Stage, Answer
FROM {TABLE} FINAL
WHERE JudgeVersion = {{version:String}} AND Status = 'ok' AND Stage IN ('read', 'map')
ORDER BY StartedAt, toString(Stage) = 'map'
"""  # noqa: S608  # made of constants


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
        if row["Stage"] == "read":
            of_run[row["Sample"]] = ReadingVote(_outcome(row["Answer"]))
        elif row["Sample"] in of_run:
            outcome = of_run[row["Sample"]].outcome
            of_run[row["Sample"]] = ReadingVote(outcome, _codes(row["Answer"]))
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


def panel_agreement(store: Store, judge_version: str) -> list[Agreement]:
    """Compare the models of a panel pairwise, mode by mode and over all modes; see `agreement`.

    Raises:
        StorageError: the database does not answer.
    """
    return agreement(panel_votes(store, judge_version))


def _shared_modes(votes: list[ReadingVote]) -> dict[str, bool]:
    return {
        code: 0 < sum(code in vote.modes for vote in votes) * 2 >= len(votes)
        for code in FAILURE_MODES
    }


def _codes(answer: str) -> frozenset[str]:
    try:
        return frozenset(mode.code for mode in parse_answer(answer, MappedModes).modes)
    except VerdictUnreadable:  # written for another version's question
        return frozenset()


def _outcome(answer: str) -> str:
    try:
        return parse_answer(answer, Reading).outcome
    except VerdictUnreadable:  # written for another version's question
        return ""
