"""The queue of runs to label: what each label would teach, and agreement with the judge as labels come in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from mast_trace_dashboards.queries import QUERIES
from mast_trace_judge.study.agreement import wilson

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mast_trace_collector.storage import Store

MOST_QUEUED: Final = 50
"""Most runs of the queue that are shown."""
_MOST_POINTS: Final = 8
_NOTABLE: Final = 0.5


@dataclass(frozen=True)
class Queued:
    """A run of the queue: a row of the query `label_queue`, and the reasons for its place."""

    row: Mapping[str, Any]
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class Agreed:
    """The agreement after some labels.

    Attributes:
        labels: number of labels up to then, of runs in which the judge names a step.
        words: share of the labels that hold the judge's step, with its interval.
    """

    labels: int
    words: str


def queue(store: Store, annotator: str) -> list[Queued]:
    """Return the runs to label, first the one that teaches most.

    Args:
        store: the database, of the visitor's project.
        annotator: leave out the runs that this person labelled; empty: all labelled runs.

    Raises:
        StorageError: the database does not answer.
    """
    rows = QUERIES["label_queue"].run(store, annotator=annotator, limit=MOST_QUEUED)
    return [Queued(row, tuple(_reasons(row))) for row in rows]


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


def _reasons(row: Mapping[str, Any]) -> list[str]:
    """Return what a label would teach, in words that do not tell what the judge says of the run."""
    found = []
    if max(row["Unsure"], row["Disagreement"]) >= _NOTABLE:
        found.append("the judge is unsure, or contradicted")
    if max(row["NewMode"], row["NewService"]) >= _NOTABLE:
        found.append("few labels of runs like it")
    return found or ["little: similar runs are labelled"]
