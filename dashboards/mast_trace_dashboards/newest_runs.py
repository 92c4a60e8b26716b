"""The newest runs that match a filter, looked for in growing stretches of time.

A filter on agents, outcomes or modes has to judge every run of the asked time. Most pages are full long before that.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, Final

from mast_trace_dashboards.queries import QUERIES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mast_trace_collector.storage import Store

_STRETCHES: Final = tuple(timedelta(days=days) for days in (1 / 8, 1, 8, 64))
_TIMES: Final = frozenset({"since", "until", "before", "before_run", "idle"})


def newest_runs(store: Store, *, limit: int, **given: Any) -> list[dict[str, Any]]:
    """Return rows of the query `runs`, as many as ``limit`` if there are so many.

    Args:
        store: the database; one project's, if only that may be seen.
        limit: most rows.
        given: further parameters of the query.

    Raises:
        StorageError: the database does not answer.
    """
    narrows = any(value for name, value in given.items() if name not in _TIMES)
    for since in _beginnings(store, given) if narrows else ():
        rows = QUERIES["runs"].run(store, **{**given, "since": since}, limit=limit)
        if len(rows) >= limit:
            return rows
    return QUERIES["runs"].run(store, **given, limit=limit)


def _beginnings(store: Store, given: Mapping[str, Any]) -> list[datetime]:
    """Return the beginnings of stretches that are shorter than what would be read without them."""
    known = QUERIES["first_start"].one(store)
    if known is None:
        return []
    asked = max(known["First"], given.get("since", known["First"]))
    end = min(given.get("until", known["Last"]), known["Last"])
    if "before" in given:
        # A run at the cursor is on the page before, or has a lesser id: both are after the beginning.
        end = min(end, datetime.fromtimestamp(given["before"] / 1e9, timezone.utc))
    return [end - stretch for stretch in _STRETCHES if asked < end - stretch]
