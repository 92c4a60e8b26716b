"""Seats: the engine's users, assigned to projects for a time."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING

from mast_trace_collector.storage.readers import DATABASE, SEATS, seat
from mast_trace_collector.storage.span_sql import literal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mast_trace_collector.clickhouse_http.engine import Handles


class Seats:
    """Lends users to projects; a project keeps its user until another project needs a seat.

    Args:
        handles: connections that may do anything.
        number: of seats.
    """

    def __init__(self, handles: Handles, number: int = SEATS) -> None:
        self._handles = handles
        # Ordered from the least to the most recently used.
        self._places: dict[str, str | None] = {seat(each): None for each in range(number)}
        self._busy: dict[str, int] = dict.fromkeys(self._places, 0)
        self._changed = threading.Condition()

    @contextlib.contextmanager
    def take(self, project: str) -> Iterator[str]:
        """Lend the user that sees this project's rows; wait while others use all seats."""
        with self._changed:
            name = self._changed.wait_for(lambda: self._find(project))
            if self._places[name] != project:
                self._seat(name, project)
            self._places[name] = self._places.pop(name)
            self._busy[name] += 1
        try:
            yield name
        finally:
            with self._changed:
                self._busy[name] -= 1
                self._changed.notify_all()

    def _find(self, project: str) -> str:
        """Return the project's seat, else a free one; empty if there is none."""
        own = next((name for name, owner in self._places.items() if owner == project), "")
        return own or next((name for name in self._places if not self._busy[name]), "")

    def _seat(self, name: str, project: str) -> None:
        # The seat belongs to no project while it is reassigned: with no row, or two, the engine
        # shows no rows at all.
        self._places[name] = None
        with self._handles.borrow() as handle:
            table = f"{DATABASE}.{name}"
            handle.do(f"CREATE TABLE IF NOT EXISTS {table} (Project String) ENGINE = Memory")
            handle.do(f"TRUNCATE TABLE {table}")
            handle.do(f"INSERT INTO {table} VALUES ({literal(project)})")
        self._places[name] = project
