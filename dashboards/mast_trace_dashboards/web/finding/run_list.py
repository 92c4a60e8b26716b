"""A page of the run list: filtered, in some order, with the cost of each run; and the selected runs as a file."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from mast_trace_collector.storage.search_index import narrowed
from mast_trace_dashboards.cost_words import ListedCost, listed_costs
from mast_trace_dashboards.printable import json_text
from mast_trace_dashboards.queries import QUERIES
from mast_trace_dashboards.queries.runs import run_key
from mast_trace_dashboards.run_names import newest_runs
from mast_trace_dashboards.stored_run import tasks_of
from mast_trace_dashboards.web.filters import COST, NEWEST, Filters

if TYPE_CHECKING:
    from mast_trace_collector.storage import Store

MOST_EXPORTED: Final = 10_000
"""Most runs of a file."""
KINDS: Final = {"csv": "text/csv; charset=utf-8", "jsonl": "application/x-ndjson"}
"""Kinds of files, with their media types."""
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")

PER_PAGE: Final = 50
"""Number of runs on a page."""
_LINE: Final = 300
"""Characters of a task's first line."""
MOST_CHOSEN: Final = 10_000
"""Most runs with a text, or of a user, a session or a version, that are listed: the latest."""


def csv_of(listed: Listed) -> Iterator[str]:
    """Yield runs as CSV, one row each, with a head.

    A text that a spreadsheet would run as a formula is written behind an apostrophe.
    """
    names = [*(listed.rows[0] if listed.rows else ()), "Cost"]
    yield _line(names)
    for row in listed.rows:
        yield _line([*map(_cell, row.values()), listed.costs.get(run_key(row), "")])


def jsonl_of(listed: Listed) -> Iterator[str]:
    """Yield runs as JSON Lines: the columns of the list, and the cost in words."""
    for row in listed.rows:
        yield json_text({**row, "Cost": listed.costs.get(run_key(row))}) + "\n"


def _line(cells: list[Any]) -> str:
    made = io.StringIO()
    csv.writer(made, lineterminator="\n").writerow(cells)
    return made.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, list | tuple):
        value = " ".join(map(str, value))
    if isinstance(value, str) and value.startswith(_FORMULA):
        return f"'{value}"
    return value


@dataclass(frozen=True)
class Listed:
    """A page of runs.

    Attributes:
        rows: of the query `runs`, with the first line of each task as ``Task``, empty where none was recorded.
        costs: the cost of each run in words, by its `run_key`; runs without model calls have none.
        more: the query string of the next page; None on the last one.
        note: a sentence on runs that the list leaves out; empty if there are none.
    """

    rows: Sequence[dict[str, Any]]
    costs: Mapping[str, str]
    more: str | None
    note: str = ""


class RunList:
    """Reads pages of the list.

    Args:
        store: the database, of the visitor's project.
        idle: seconds after which a run without a root counts as finished.
    """

    def __init__(self, store: Store, *, idle: float) -> None:
        self._store = store
        self._idle = idle
        self._tasks: dict[tuple[str, str], str] = {}

    def page(self, filters: Filters, size: int = PER_PAGE) -> Listed:
        """Return a page of runs.

        Raises:
            StorageError: the database does not answer.
        """
        listed = self._page(filters, size)
        self._add_tasks(listed.rows)
        return listed

    def _add_tasks(self, rows: Sequence[dict[str, Any]]) -> None:
        """Add the first line of each run's task. It is kept once it is known, as the list is asked for again and again."""
        if len(self._tasks) > MOST_CHOSEN:
            self._tasks.clear()
        unread = [row for row in rows if (row["Project"], row["TraceId"]) not in self._tasks]
        for first in range(0, len(unread), PER_PAGE):
            some = unread[first : first + PER_PAGE]
            times = [(row["Start"], row["End"]) for row in some]
            found = tasks_of(self._store, [row["TraceId"] for row in some], times)
            for row in some:
                key = row["Project"], row["TraceId"]
                if key in found or row["State"] != "running":
                    lines = map(str.strip, found.get(key, "").splitlines())
                    self._tasks[key] = next(filter(None, lines), "")[:_LINE]
        for row in rows:
            row["Task"] = self._tasks.get((row["Project"], row["TraceId"]), "")

    def _page(self, filters: Filters, size: int) -> Listed:
        given, note = self._given(filters)
        if given is None:
            return Listed([], {}, None, note)
        if filters.sort == COST:
            return self._by_cost(filters, given, size, note)
        sorting = filters.sorting
        if sorting is None:
            rows = newest_runs(self._store, **given, limit=size + 1)
            more = filters.after(rows[size - 1]) if len(rows) > size else None
        else:
            within = {key: value for key, value in given.items() if not key.startswith("before")}
            place = {"limit": size + 1, "offset": filters.number * size}
            keys = QUERIES["runs_sorted"].run(self._store, **within, **sorting, **place)
            # Runs of other projects may have the same ids.
            ids = {"only": [row["TraceId"] for row in keys], "limit": 2 * MOST_CHOSEN}
            found = QUERIES["runs"].run(self._store, **{**within, **ids}) if keys else ()
            by_key = {run_key(row): row for row in found}
            rows = [by_key[run_key(row)] for row in keys if run_key(row) in by_key]
            more = filters.later() if len(keys) > size else None
        rows = rows[:size]
        return Listed(rows, _words(listed_costs(self._store, rows)), more, note)

    def selected(self, filters: Filters, chosen: Sequence[str], most: int = MOST_CHOSEN) -> Listed:
        """Return the runs that were chosen by their ids, else all that match, at most ``most``.

        Raises:
            StorageError: the database does not answer.
        """
        if not chosen:
            return self.page(filters, most)
        rows = newest_runs(self._store, only=list(chosen), idle=self._idle, limit=most)
        self._add_tasks(rows)
        return Listed(rows, _words(listed_costs(self._store, rows)), None)

    def _given(self, filters: Filters) -> tuple[dict[str, Any] | None, str]:
        """Return the parameters of the query; None if no run can match."""
        given = {**filters.parameters(), "idle": self._idle}
        only: set[str] | None = {filters.run} if filters.run else None
        note = ""
        if filters.text:
            # No span is older than its run's start; it may be newer than the range.
            names = {"since": "since", "until": "begun"}
            within = {of: given[name] for name, of in names.items() if name in given}
            narrowing = narrowed(self._store, filters.text)
            rows = QUERIES["search"].run(
                self._store, text=filters.text, **narrowing, **within, limit=MOST_CHOSEN + 1
            )
            if len(rows) > MOST_CHOSEN:
                note = f"Among the latest {MOST_CHOSEN:,} runs with this text."
            found = {row["TraceId"] for row in rows[:MOST_CHOSEN]}
            only = found if only is None else only & found
        if filters.group:
            within = {name: given[name] for name in ("since", "until") if name in given}
            members = QUERIES["runs_of_group"].run(
                self._store, **filters.group, **within, limit=MOST_CHOSEN + 1
            )
            if len(members) > MOST_CHOSEN:
                note = f"{note} Among the latest {MOST_CHOSEN:,} runs of the group.".strip()
            found = {row["TraceId"] for row in members[:MOST_CHOSEN]}
            only = found if only is None else only & found
        if only is not None:
            if not only:
                return None, note
            given["only"] = sorted(only)
        return given, note

    def _by_cost(self, filters: Filters, given: Mapping[str, Any], size: int, note: str) -> Listed:
        within = {key: value for key, value in given.items() if not key.startswith("before")}
        rows = newest_runs(self._store, **within, limit=NEWEST + 1)
        if len(rows) > NEWEST:
            note = f"{note} The most expensive of the latest {NEWEST:,} runs that match.".strip()
            rows = rows[:NEWEST]
        costs = listed_costs(self._store, rows)
        rows.sort(key=lambda row: -(costs.get(run_key(row), ListedCost()).usd or 0.0))
        begin = filters.number * size
        more = filters.later() if len(rows) > begin + size else None
        shown = rows[begin : begin + size]
        return Listed(shown, _words(costs), more, note)


def _words(costs: Mapping[str, ListedCost]) -> dict[str, str]:
    return {run: cost.words for run, cost in costs.items()}
