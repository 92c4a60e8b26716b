"""Resolves the names by which people refer to things: a run by the beginning of its id, a time by its age."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, Final

from mast_trace.exceptions import ConfigurationError, MastTraceError
from mast_trace_collector.storage.runs import find_run, projects_of
from mast_trace_dashboards.queries import QUERIES

if TYPE_CHECKING:
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
        # A run whose clock was ahead stands where it arrived, which may be before the stretch.
        if len(rows) >= limit and rows[-1]["StartNs"] >= since.timestamp() * 1e9:
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


_AGE = re.compile(r"(\d+)\s*(s|m|h|d|w)")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


class NotFound(MastTraceError):
    """The requested object does not exist."""


class SharedId(ConfigurationError):
    """Several projects have a run of one id, and none of them was named.

    Attributes:
        projects: their names.
    """

    def __init__(self, trace_id: str, projects: Sequence[str]) -> None:
        named = ", ".join(project or "(without a name)" for project in projects)
        super().__init__(f"run {trace_id} is in {len(projects)} projects: {named}; add --project")
        self.projects = projects


def resolve_run(
    store: Store, name: str, project: str | None = None, *, lister: str = "mast-trace runs"
) -> str:
    """Return the id of the run that ``name`` refers to: an id, the beginning of one, or ``last``.

    Args:
        store: the database; one project's, if only that may be seen.
        name: of the run.
        project: only this project's.
        lister: the command or the tool by which the asker lists runs, for the error.

    Raises:
        NotFound: there is no such run.
        ConfigurationError: several ids begin with it.
        SharedId: several projects have the run.
    """
    run = _run_named(store, name, project, lister)
    projects = projects_of(store, run, project=project)
    if len(projects) > 1:
        raise SharedId(run, projects)
    return run


def _run_named(store: Store, name: str, project: str | None, lister: str) -> str:
    if name == "last":
        newest = newest_runs(store, limit=1, projects=[project] if project else [])
        if not newest:
            raise NotFound("there are no runs yet")
        return str(newest[0]["TraceId"])
    found = find_run(store, name, project=project) if name else []
    if not found:
        raise NotFound(f"no run's id begins with {name!r}; `{lister}` lists them")
    exact = name.strip().lower()
    if len(found) > 1 and exact not in found:
        shown = ", ".join(found[:5])
        raise ConfigurationError(f"several runs begin with {name!r}: {shown}; write more of the id")
    return exact if exact in found else found[0]


def parse_time(text: str) -> datetime:
    """Read a time: an age such as ``15m``, ``2h`` or ``7d``, or an ISO 8601 date or time.

    A time without zone is this machine's.

    Raises:
        ConfigurationError: it is neither.
    """
    if age := _AGE.fullmatch(text.strip()):
        try:
            return datetime.now(timezone.utc) - timedelta(**{_UNITS[age[2]]: int(age[1])})
        except (ValueError, OverflowError):
            raise ConfigurationError(f"there was no time {text.strip()[:40]!r} ago") from None
    try:
        return datetime.fromisoformat(text.strip()).astimezone(timezone.utc)
    except (ValueError, OverflowError):
        raise ConfigurationError(
            f"cannot read the time {text!r}: write an age such as 15m, 2h or 7d, or a time such as "
            "2026-03-01T12:00"
        ) from None


def service_names(store: Store, **given: Any) -> list[str]:
    """Return the services that have runs, the most frequent first."""
    rows = QUERIES["filter_values"].run(store, **given)
    return [row["Value"] for row in rows if row["Filter"] == "service"]
