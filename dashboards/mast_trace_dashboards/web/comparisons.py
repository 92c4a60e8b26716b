"""Pages that show two runs side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mast_trace_dashboards.web.comparison import LONGEST, SHOWN, compared
from mast_trace_dashboards.web.run_view import PAGE, parting

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mast_trace.trajectory import Step, Trajectory
    from mast_trace_dashboards.web.loaded_run import LoadedRun
    from mast_trace_dashboards.web.rows import Row


@dataclass(frozen=True)
class Side:
    """One of two compared runs.

    Attributes:
        letter: A or B.
        name: of the run.
        trace_id: of the run.
        row: of the query `run`; None for a run from a file.
        count: the number of its steps.
        steps: the first of them.
        marks: words at single steps, such as "DECISIVE" and codes of failure modes.
    """

    letter: str
    name: str
    trace_id: str
    row: Mapping[str, Any] | None
    count: int
    steps: Sequence[Step]
    marks: Mapping[int, Sequence[str]]


def two_stored(left: LoadedRun, right: LoadedRun) -> dict[str, Any]:
    """Return the values of the page that compares two stored runs.

    Raises:
        StorageError: the database does not answer.
    """
    later = parting(left.page.outline, right.page.outline)
    return _values(_stored("A", left), _stored("B", right), later)


def stored_and_file(stored: LoadedRun, run: Trajectory) -> dict[str, Any]:
    """Return the values of the page that compares a stored run with one from a file.

    Raises:
        StorageError: the database does not answer.
    """
    other = Side("B", run.name, run.trace_id, None, len(run.steps), run.steps[:PAGE], {})
    return _values(_stored("A", stored), other, None)


def _stored(letter: str, run: LoadedRun) -> Side:
    rows = run.page.rows(0, PAGE, clip=LONGEST + 1)
    marks = {row.step.index: _words(row) for row in rows}
    steps = [row.step for row in rows]
    name = str(run.row["Name"])
    return Side(letter, name, run.stored.trace_id, run.row, run.page.count, steps, marks)


def _words(row: Row) -> tuple[str, ...]:
    return (*(["DECISIVE"] if row.decisive else []), *row.marks, *row.modes)


def _values(left: Side, right: Side, later: int | None) -> dict[str, Any]:
    """Return the values; ``later`` is the first difference by hashes, of steps that are not shown too."""
    beyond = later is not None and later >= min(len(left.steps), len(right.steps))
    return {
        "sides": (left, right),
        "found": compared(left.steps, right.steps),
        "later": later if beyond else None,
        "longest_shown": SHOWN,
    }
