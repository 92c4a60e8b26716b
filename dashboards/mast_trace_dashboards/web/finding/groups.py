"""Runs in groups: of each user, each session, each version of a service."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from mast_trace_dashboards.queries import QUERIES
from mast_trace_judge.study.agreement import wilson

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from mast_trace_collector.storage import Store
    from mast_trace_dashboards.web.filters import Filters

PER_PAGE: Final = 50
"""Number of groups on a page."""


@dataclass(frozen=True)
class Group:
    """The runs of one user, session or version.

    Attributes:
        value: the user, the session or the version.
        service: of the runs; one of them, if there are several.
        runs: their number.
        words: the share of failures among the runs with an outcome, with its interval.
        tokens: of the judged runs.
        first: start of the first run.
        last: start of the last run.
        address: the query string of the list of its runs.
    """

    value: str
    service: str
    runs: int
    words: str
    tokens: int
    first: datetime
    last: datetime
    address: str


def groups(store: Store, by: str, filters: Filters) -> tuple[Sequence[Group], bool]:
    """Return a page of groups, the latest first, and whether there are more.

    Args:
        store: the database, of the visitor's project.
        by: one of `mast_trace_dashboards.queries.groups.GROUPS`.
        filters: the time, and the service.

    Raises:
        StorageError: the database does not answer.
    """
    rows = QUERIES[f"runs_by_{by}"].run(
        store, **_given(filters), limit=PER_PAGE + 1, offset=filters.number * PER_PAGE
    )
    found = [
        Group(
            value=row["Value"],
            service=row["ServiceName"],
            runs=row["Runs"],
            words=rate_words(row["Failures"], row["Known"]),
            tokens=row["Tokens"],
            first=row["First"],
            last=row["Last"],
            address=filters.with_value(by, row["Value"]),
        )
        for row in rows[:PER_PAGE]
    ]
    return found, len(rows) > PER_PAGE


def without_groups(store: Store, by: str, filters: Filters) -> int:
    """Return the number of runs of the time whose user or session is lost; 0 for versions, which all runs keep.

    Raises:
        StorageError: the database does not answer.
    """
    if by == "version":
        return 0
    row = QUERIES["runs_without_groups"].one(store, **_given(filters))
    return int(row["Runs"]) if row else 0


def _given(filters: Filters) -> dict[str, Any]:
    given = filters.parameters()
    return {name: given[name] for name in ("since", "until", "services") if name in given}


def rate_words(failures: int, known: int) -> str:
    """Return a share of failures with its interval; words where no outcome is known."""
    if not known:
        return "no outcome is known"
    span = wilson(failures, known)
    share = f"{100 * failures / known:.0f} %"
    return f"{failures:,} of {known:,} ({share}, {100 * span.low:.0f} to {100 * span.high:.0f} %)"
