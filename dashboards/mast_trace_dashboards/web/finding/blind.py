"""Runs of the queue without the judge's word, for as long as a person has not labelled them.

A label that was given beside the verdict repeats it, and says nothing of how often the judge is right.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from mast_trace_dashboards.web.finding.run_costs import RunCosts, Spent
from mast_trace_dashboards.web.loaded_run import LoadedRun

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mast_trace_dashboards.web.visitor import Visitor
    from mast_trace_judge.store.labels import HumanLabel

QUEUE: Final = "queue"
"""The parameter of addresses that are opened from the queue."""
LABELLED: Final = "labelled"
"""The parameter with the run whose label was just saved."""
_HIDDEN: Final[Mapping[str, Any]] = {
    "StateReason": "",
    "Modes": [],
    "ModeProbabilities": [],
    "DecisiveAgent": "",
    "DecisiveStep": None,
    "DecisiveProbability": None,
    "DecisiveReason": "",
    "Confirmation": "",
    "Method": "",
    "JudgeCostUsd": 0.0,
}
"""The columns of a run's row that come from its verdict alone, each with the value of a run without one."""
_RUN_ID: Final = re.compile(r"[0-9a-f]{32}")


def is_blind(asked: Mapping[str, str], visitor: Visitor, labels: Sequence[HumanLabel]) -> bool:
    """Return whether the judge's word is hidden: in the queue, until the visitor has labelled the run.

    Without users' names, as in the queue itself, anybody's label counts as the visitor's.

    Args:
        asked: parameters of the address.
        visitor: who looks at the run.
        labels: of the run.
    """
    own = [label for label in labels if not visitor.user or label.annotator == visitor.user]
    return QUEUE in asked and visitor.labels and not own


class BlindRun(LoadedRun):
    """A run without the judge's word."""

    @cached_property
    def costs(self) -> RunCosts:
        """The cost of its steps and agents, without that after the decisive step."""
        return replace(super().costs, after=Spent())


def blinded(opened: LoadedRun) -> LoadedRun:
    """Return a run without its verdict, and without what replays have shown of it.

    Its row says that it was judged, and not whether the judge could reach a verdict; an outcome is left only where
    one was recorded.
    """
    row = {**opened.row, **_HIDDEN}
    if row["OutcomeSource"] != "recorded":
        row |= {"Outcome": "", "OutcomeSource": ""}
    if row["State"] == "unscored":
        row["State"] = "judged"
    return BlindRun(row, opened.stored, None)


def just_labelled(asked: Mapping[str, str]) -> str:
    """Return the id of the run whose label was just saved; empty if there is none."""
    named = asked.get(LABELLED, "")
    return named if _RUN_ID.fullmatch(named) else ""
