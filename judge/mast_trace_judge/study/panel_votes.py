"""The votes of each model of a panel, read from the ledger, and their agreement."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from mast_trace.exceptions import VerdictUnreadable
from mast_trace.taxonomy import FAILURE_MODES
from mast_trace_judge.llm.answers import Mapping as MappedModes
from mast_trace_judge.llm.parsing import parse_answer
from mast_trace_judge.store.ledger import TABLE
from mast_trace_judge.study.agreement import Agreement, agreement

if TYPE_CHECKING:
    from mast_trace_collector.storage.store import Store

_ANSWERS = f"""
SELECT toString(Model) AS Model, TraceId, toString(Stage) AS Stage, Answer FROM {TABLE} FINAL
WHERE JudgeVersion = {{version:String}} AND Status = 'ok' AND Stage IN ('read', 'map')
ORDER BY StartedAt, toString(Stage) = 'map'
"""  # noqa: S608  # made of constants


def panel_votes(store: Store, judge_version: str) -> dict[str, dict[str, dict[str, bool]]]:
    """Return, by model and run, whether it reported each failure mode.

    A run that a model has read without naming an error has none of them.

    Raises:
        StorageError: the database does not answer.
    """
    votes: dict[str, dict[str, dict[str, bool]]] = defaultdict(dict)
    for row in store.query(_ANSWERS, {"version": judge_version}):
        reported = _codes(row["Answer"]) if row["Stage"] == "map" else set()
        votes[row["Model"]][row["TraceId"]] = {code: code in reported for code in FAILURE_MODES}
    return dict(votes)


def panel_agreement(store: Store, judge_version: str) -> list[Agreement]:
    """Compare the models of a panel pairwise, mode by mode and over all modes; see `agreement`.

    Raises:
        StorageError: the database does not answer.
    """
    return agreement(panel_votes(store, judge_version))


def _codes(answer: str) -> set[str]:
    try:
        return {mode.code for mode in parse_answer(answer, MappedModes).modes}
    except VerdictUnreadable:  # written for another version's question
        return set()
