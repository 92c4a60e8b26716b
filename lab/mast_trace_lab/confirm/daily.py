"""The daily budget of `mast-trace confirm work`, in a file that survives restarts.

Calls and dollars are reserved before a replay starts and settled when it has ended. The reservation of
a killed process stays: its calls may have been made. SQLite's transactions keep several workers of one
machine from reserving the same calls.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import date, datetime, timezone
from typing import TYPE_CHECKING

from mast_trace.exceptions import BudgetExhausted, StorageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_WAIT_SECONDS = 30.0
_TABLE = """
CREATE TABLE IF NOT EXISTS reservations
(id INTEGER PRIMARY KEY, day TEXT NOT NULL, calls INTEGER NOT NULL, cost REAL NOT NULL, replays INTEGER NOT NULL)
"""


def _today() -> date:
    return datetime.now(timezone.utc).date()


@dataclass(frozen=True)
class Spent:
    """Calls and dollars of a day, reservations included."""

    calls: int = 0
    cost_usd: float = 0.0


class DailyBudget:
    """Live calls and dollars that the replays of a UTC day may take.

    Args:
        path: the file; its folder is made if it is missing.
        max_calls: live model calls of a day.
        max_cost_usd: US dollars of a day; None for any.
        today: returns the day in UTC.
    """

    def __init__(
        self,
        path: Path,
        max_calls: int,
        max_cost_usd: float | None = None,
        today: Callable[[], date] = _today,
    ) -> None:
        self._path = path
        self._max_calls = max_calls
        self._max_cost = max_cost_usd
        self._today = today
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with self._transaction() as connection:
            connection.execute(_TABLE)

    @property
    def limits_cost(self) -> bool:
        """True if dollars are limited."""
        return self._max_cost is not None

    def spent(self) -> Spent:
        """Return what the day has taken so far, reservations included.

        Raises:
            StorageError: the file cannot be read.
        """
        with self._transaction() as connection:
            return self._spent(connection)

    def reserve(self, calls: int, cost_usd: float = 0.0) -> int:
        """Reserve live calls and dollars for one replay; return the number of the reservation.

        Raises:
            BudgetExhausted: the day has not so much left; nothing was reserved.
            StorageError: the file cannot be written.
        """
        with self._transaction() as connection:
            spent = self._spent(connection)
            if spent.calls + calls > self._max_calls:
                raise BudgetExhausted(
                    f"the next replay may take {calls} calls, and {spent.calls} of the day's "
                    f"{self._max_calls} are used or reserved; replays go on at midnight UTC"
                )
            if self._max_cost is not None and spent.cost_usd + cost_usd > self._max_cost:
                raise BudgetExhausted(
                    f"the next replay may cost {cost_usd:.2f} USD, and {spent.cost_usd:.2f} of the "
                    f"day's {self._max_cost:.2f} are used or reserved; replays go on at midnight UTC"
                )
            made = connection.execute(
                "INSERT INTO reservations (day, calls, cost, replays) VALUES (?, ?, ?, 1)",
                (self._today().isoformat(), calls, cost_usd),
            )
            return int(made.lastrowid or 0)

    def settle(self, number: int, calls: int, cost_usd: float | None) -> None:
        """Replace a reservation by what the replay has taken.

        Args:
            number: of the reservation.
            calls: live calls that were made.
            cost_usd: dollars; None, where a price is unknown, keeps those that were reserved.

        Raises:
            StorageError: the file cannot be written.
        """
        with self._transaction() as connection:
            connection.execute(
                "UPDATE reservations SET calls = ?, cost = coalesce(?, cost) WHERE id = ?",
                (calls, cost_usd, number),
            )

    def _spent(self, connection: sqlite3.Connection) -> Spent:
        row = connection.execute(
            "SELECT coalesce(sum(calls), 0), coalesce(sum(cost), 0) FROM reservations WHERE day = ?",
            (self._today().isoformat(),),
        ).fetchone()
        return Spent(int(row[0]), float(row[1]))

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(sqlite3.connect(self._path, timeout=_WAIT_SECONDS)) as connection:
                connection.isolation_level = None
                connection.execute("PRAGMA synchronous = FULL")
                connection.execute("BEGIN IMMEDIATE")
                try:
                    yield connection
                except BaseException:
                    connection.execute("ROLLBACK")
                    raise
                connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise StorageError(f"{self._path}: {error}") from error
