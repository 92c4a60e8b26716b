"""Finds a pattern by the beginning of its id, with its runs and the commands that go on from it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from mast_trace.exceptions import ConfigurationError
from mast_trace_dashboards.commands import has_command
from mast_trace_dashboards.newest_runs import newest_runs
from mast_trace_dashboards.queries import QUERIES
from mast_trace_dashboards.run_names import NotFound
from mast_trace_judge.patterns.states import PatternState, save_state
from mast_trace_judge.planted import PLANTED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mast_trace_collector.storage import Store

PROGRAM: Final = "YOUR COMMAND"
"""Stands for the program that made the runs."""
LISTER: Final = "mast-trace patterns list"
"""The command that lists patterns."""
_RUNS: Final = 20
_MOST: Final = 10_000


@dataclass(frozen=True)
class FoundPattern:
    """A pattern with its newest runs.

    Attributes:
        row: of the query `patterns`.
        runs: rows of the query `pattern_runs`, newest first.
        successful: id of the newest successful run of its services; empty if there is none.
    """

    row: Mapping[str, Any]
    runs: Sequence[Mapping[str, Any]]
    successful: str

    @property
    def commands(self) -> tuple[tuple[str, str], ...]:
        """Commands to copy, each with its effect: first `confirm`, then `inject`."""
        project = self.row["Project"]
        waiting = [run for run in self.runs if not run["Replayed"]] or self.runs
        failed = [run for run in waiting if run["Outcome"] == "failure"] or waiting
        run = failed[0]["TraceId"] if failed else "RUN"
        code = self.row["Code"]
        plants = any(each.mode == code for each in PLANTED.values())
        offered = {
            "confirm": (
                "Proves by replays which step decided a run of it",
                _line("confirm", run, project),
            ),
            "inject": (
                f"Plants {code} in a successful run, and sees whether it fails"
                if plants
                else "Plants faults in a successful run, and sees which make it fail",
                _line(
                    "inject",
                    self.successful or "SUCCESSFUL_RUN",
                    project,
                    f"--operator {code}" if plants else "",
                ),
            ),
        }
        return tuple(told for command, told in offered.items() if has_command(command))


def find_pattern(
    store: Store,
    name: str,
    *,
    project: str | None = None,
    lister: str = LISTER,
    **given: Any,
) -> FoundPattern:
    """Return a pattern by its id or the beginning of it.

    Args:
        store: the database; one project's, if only that may be seen.
        name: the id, or its beginning.
        project: only this project's.
        lister: the command or the tool by which the asker lists patterns, for the error.
        given: further parameters of the query `patterns`.

    Raises:
        NotFound: there is none.
        ConfigurationError: several ids begin so.
    """
    row = _row(store, name.strip().lower(), project, given, lister)
    owners = {"projects": [row["Project"]]}
    runs = QUERIES["pattern_runs"].run(store, pattern=row["PatternId"], limit=_RUNS, **owners)
    newest = newest_runs(store, outcomes=["success"], services=row["Services"], limit=1, **owners)
    return FoundPattern(row, runs, newest[0]["TraceId"] if newest else "")


def cost_of(store: Store, found: FoundPattern) -> Mapping[str, Any]:
    """Return the row of `cost_totals` on a pattern's newest runs; empty if there are none."""
    only = [run["TraceId"] for run in found.runs]
    if not only:  # The query takes no ids for all runs.
        return {}
    return QUERIES["cost_totals"].one(store, only=only, projects=[found.row["Project"]]) or {}


def set_state(
    store: Store,
    name: str,
    state: str,
    author: str,
    *,
    version: str = "",
    note: str = "",
    project: str | None = None,
    lister: str = LISTER,
) -> PatternState:
    """Record that a pattern is open, acknowledged or resolved; return what was stored.

    Args:
        store: the database; one project's, if only that may be seen.
        name: the pattern's id, or its beginning.
        state: ``open``, ``acknowledged`` or ``resolved``.
        author: who says so.
        version: in which it is resolved; empty if unknown.
        note: for people.
        project: only this project's.
        lister: as in `find_pattern`.

    Raises:
        NotFound: there is no such pattern.
        ConfigurationError: several ids begin with ``name``, or the state cannot be given.
        StorageError: the database does not accept it.
    """
    row = _row(store, name.strip().lower(), project, {}, lister)
    made = PatternState(row["Project"], row["PatternId"], state, author, version.strip(), note)
    save_state(store, made)
    return made


def _row(
    store: Store, name: str, project: str | None, given: Mapping[str, Any], lister: str
) -> Mapping[str, Any]:
    projects = {"projects": [project]} if project is not None else {}
    asked: dict[str, Any] = {"min_runs": 1, "limit": _MOST, **projects, **given}
    rows = QUERIES["patterns"].run(store, **asked)
    found = [row for row in rows if name and row["PatternId"].startswith(name)]
    if not found:
        raise NotFound(f"no pattern's id begins with {name!r}; `{lister}` shows them")
    if len(found) > 1:
        shown = ", ".join(
            f"{row['PatternId']} of {row['Project'] or 'no project'}" for row in found[:5]
        )
        raise ConfigurationError(f"several patterns begin with {name!r}: {shown}; write more of it")
    return found[0]


def _line(command: str, run: str, project: str, more: str = "") -> str:
    of_project = f"--project {shlex.quote(project)}" if project else ""
    parts = ("mast-trace", command, shlex.quote(run), more, of_project, "--", PROGRAM)
    return " ".join(filter(None, parts))
