"""The queue of runs to label, and agreement with the judge as labels come in.

The queue is blind: nothing that it says of a run follows from the verdict, so neither how much its label would teach
nor why. A recorded success has no doubtful step, for example, so that doubt about it would say "failure".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from mast_trace_dashboards.queries import QUERIES
from mast_trace_judge.study.agreement import wilson

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mast_trace_collector.storage import Store

MOST_QUEUED: Final = 20
"""Most runs of the queue; few, because they are not ordered by what their labels would teach."""
_MOST_POINTS: Final = 8


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
