"""The queue of runs to label, and agreement with the judge as labels come in.

The queue is blind: nothing that it says of a run follows from the verdict, so neither how much its label would teach
nor why. A recorded success has no doubtful step, for example, so that doubt about it would say "failure".

Runs of the queue without the judge's word, for as long as a person has not labelled them.

A label that was given beside the verdict repeats it, and says nothing of how often the judge is right.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from mast_trace_dashboards.queries import QUERIES
from mast_trace_dashboards.web.finding.run_costs import CallCosts, RunCosts
from mast_trace_dashboards.web.loaded_run import LoadedRun
from mast_trace_judge.study.agreement import wilson

if TYPE_CHECKING:
    from mast_trace_collector.storage import Store
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
    "LookAgent": "",
    "LookStep": None,
    "LookBasis": "",
    "LookWhy": "",
    "Confirmation": "",
    "Method": "",
    "JudgeCostUsd": 0.0,
}
"""The columns of a run's row that come from its verdict alone, each with the value of a run without one."""
_KEY: Final = secrets.token_bytes(32)
_RUN_ID: Final = re.compile(r"[0-9a-f]{32}")

MOST_QUEUED: Final = 20
"""Most runs of the queue; few, because they are not ordered by what their labels would teach."""
_MOST_POINTS: Final = 8


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


def seal_of(visitor: Visitor, opened: LoadedRun) -> str:
    """Return the word in the form of a visitor's blind page of a run; a form without it is no blind one.

    It holds as long as this process.
    """
    seen = "\0".join([visitor.user, str(opened.row["Project"]), str(opened.row["TraceId"])])
    return hmac.new(_KEY, seen.encode("utf-8", "replace"), hashlib.sha256).hexdigest()


class BlindRun(LoadedRun):
    """A run without the judge's word."""

    @cached_property
    def costs(self) -> RunCosts:
        """The cost of its steps and agents, without that after the decisive step."""
        return replace(super().costs, after=CallCosts())


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


@dataclass(frozen=True)
class Agreed:
    """The agreement after some labels.

    Attributes:
        labels: number of labels up to then, of runs in which the judge names a step.
        words: share of the labels that hold the judge's step, with its interval.
    """

    labels: int
    words: str


def queue(store: Store, annotator: str) -> list[Mapping[str, Any]]:
    """Return the runs whose labels would teach most, as rows of the query `label_queue`.

    Services with few labels come first, then runs by id: the order by what a label would teach would tell what the
    judge says.

    Args:
        store: the database, of the visitor's project.
        annotator: leave out the runs that this person labelled; empty: all labelled runs.

    Raises:
        StorageError: the database does not answer.
    """
    rows = QUERIES["label_queue"].run(store, annotator=annotator, limit=MOST_QUEUED)
    return sorted(rows, key=lambda row: (-row["NewService"], row["TraceId"], row["Project"]))


def agreement_as_it_grows(store: Store) -> Sequence[Agreed]:
    """Return the agreement of judge and people on the decisive step, after ever more labels.

    Raises:
        StorageError: the database does not answer.
    """
    given = [row["Agrees"] for row in QUERIES["labels_over_time"].run(store)][::-1]
    points: list[int] = []
    count = len(given)
    while count >= 1 and len(points) < _MOST_POINTS:
        points.append(count)
        count //= 2
    return [Agreed(n, _words(sum(given[:n]), n)) for n in reversed(points)]


def _words(agree: int, labels: int) -> str:
    span = wilson(agree, labels)
    return (
        f"{agree:,} ({100 * agree / labels:.0f} %, {100 * span.low:.0f} to {100 * span.high:.0f} %)"
    )
