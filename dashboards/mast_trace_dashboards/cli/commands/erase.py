"""`mast-trace erase`: permanently removes runs, with verdicts and labels, from the store."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from mast_trace.exceptions import ConfigurationError
from mast_trace_collector.storage.removal import erasure
from mast_trace_collector.storage.removal.tombstone_file import (
    beside,
    keep_in_step,
    line_of,
    read_tombstones,
)
from mast_trace_collector.storage.removal.tombstones import (
    Key,
    Tombstone,
    find_tombstones,
    new_stamp,
    put_back,
    tombstones_of,
)
from mast_trace_collector.storage.runs import SESSION, USER, runs_with
from mast_trace_dashboards.cli.open_store import open_store
from mast_trace_dashboards.cli.options import AsJson, ConfigFile, DataDir, Project, Url
from mast_trace_dashboards.cli.output import FittedTable, console, print_json, say
from mast_trace_dashboards.printable import counted
from mast_trace_dashboards.run_names import NotFound, SharedId, parse_time, resolve_run

if TYPE_CHECKING:
    from mast_trace_collector.storage import Store
    from mast_trace_collector.storage.removal.erasure import Erasure

_SHOWN: Final = 20


@dataclass(frozen=True)
class ErasureSelection:
    """The runs that a command line selects for erasure; all but `project` exclude each other."""

    runs: Sequence[str]
    user: str | None
    session: str | None
    attribute: str | None
    before: str | None
    project: str | None
    again: Path | None

    def check(self) -> None:
        """Reject ambiguous selections.

        Raises:
            ConfigurationError: nothing is selected, or several things, or an empty name (such as
                that of an unset variable of a shell).
        """
        file = None if self.again is None else str(self.again)
        chosen = [self.user, self.session, self.attribute, self.before, file]
        number = sum(each is not None for each in chosen) + bool(self.runs)
        if number > 1:
            raise ConfigurationError(
                "choose by runs, --user, --session, --attribute, --before or --again, one at a time"
            )
        if not number and self.project is None:
            raise ConfigurationError(
                "choose what to erase: runs, --user, --session, --attribute, --before, --again or --project"
            )
        if any(each is not None and not each.strip() for each in (*chosen, self.project)):
            raise ConfigurationError("an empty value chooses nothing: was a variable unset?")

    def scope(self, store: Store) -> Scope:
        """Return the rows to erase, and the chosen runs that were erased before.

        Raises:
            NotFound: a run that was named does not exist.
            ConfigurationError: a run, a time, an attribute or a file cannot be read.
        """
        if self.before is not None:
            return Scope([erasure.before(parse_time(self.before), project=self.project)])
        if self.again is not None:
            filed = [
                each for each in read_tombstones(self.again) if self.project in {None, each.project}
            ]
            return Scope(erasure.of_keys([each.key for each in filed]), filed)
        if self.runs:
            keys = _named_runs(store, self.runs, self.project)
        elif self.user is not None:
            keys = runs_with(store, USER, self.user, project=self.project)
        elif self.session is not None:
            keys = runs_with(store, SESSION, self.session, project=self.project)
        elif self.attribute is not None:
            name, equals, value = self.attribute.partition("=")
            if not (name and equals and value):
                raise ConfigurationError("write an attribute as name=value")
            keys = runs_with(store, [name], value, project=self.project)
        else:
            return Scope([erasure.of_project(store, str(self.project))])
        return Scope(erasure.of_keys(keys), list(tombstones_of(store, keys).values()))


@dataclass(frozen=True)
class Scope:
    """The scope of an erasure.

    Attributes:
        erasures: what is to be erased.
        known: tombstones of runs in it that were erased before, here or elsewhere.
    """

    erasures: Sequence[Erasure]
    known: Sequence[Tombstone] = ()

    def rows(self, store: Store) -> dict[str, int]:
        """Count the rows to erase by table."""
        counted: Counter[str] = Counter()
        for each in self.erasures:
            counted.update(each.rows(store))
        return dict(counted)

    def erase(self, store: Store) -> None:
        """Erase; see `mast_trace_collector.storage.removal.erasure.erase`."""
        put_back(store, new_stamp(store), [replace(each, arrived=0) for each in self.known])
        erasure.erase(store, *self.erasures)


def _named_runs(store: Store, names: Sequence[str], project: str | None) -> list[Key]:
    """Return the runs with these names, each of one project.

    Raises:
        NotFound: one does not exist.
        ConfigurationError: several ids begin with a name, or several projects have the run.
    """
    keys = erasure.keys_of(store, [_named_run(store, name, project) for name in names], project)
    owners: dict[str, list[str]] = {}
    for owner, run in keys:
        owners.setdefault(run, []).append(owner)
    # A run of which another project has labels or a tombstone alone is shared, too.
    for run, projects in owners.items():
        if len(projects) > 1:
            raise SharedId(run, projects)
    return keys


def _named_run(store: Store, name: str, project: str | None) -> str:
    """Return the id of a run that exists, or was erased.

    Raises:
        NotFound: there is no such run.
        ConfigurationError: several ids begin with the name.
    """
    try:
        return resolve_run(store, name, project)
    except NotFound as error:
        erased = (
            {each.trace_id for each in find_tombstones(store, name, project)} if name else set()
        )
        if len(erased) > 1:
            raise ConfigurationError(
                f"{len(erased)} erased runs begin with {name!r}: write more of the id"
            ) from None
        for found in erased:
            return found
        raise NotFound(
            f"{error}. A run that was sent a moment ago is not stored yet: try again in some seconds"
        ) from None


def erase(
    runs: Annotated[
        list[str] | None,
        typer.Argument(help="Ids of runs, or their beginnings.", show_default=False),
    ] = None,
    user: Annotated[
        str | None, typer.Option(help="All runs for this user (user.id, enduser.id ...).")
    ] = None,
    session: Annotated[
        str | None, typer.Option(help="All runs of this conversation or session.")
    ] = None,
    attribute: Annotated[
        str | None,
        typer.Option(help="All runs with this attribute on a span or resource: name=value."),
    ] = None,
    before: Annotated[
        str | None, typer.Option(help="All from before: 30d, or a time such as 2026-03-01.")
    ] = None,
    again: Annotated[
        Path | None,
        typer.Option(
            help="All runs in a file of --list: after a restored backup has brought them back.",
            show_default=False,
        ),
    ] = None,
    listed: Annotated[
        bool, typer.Option("--list", help="List the runs that were erased, and erase nothing.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only report how much would be erased.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    project: Project = None,
    url: Url = None,
    data_dir: DataDir = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Erase runs for good: spans, verdicts, the judge model's answers, labels and evaluations.

    With --project alone, all data of the project. Erasure cannot be undone: project, id and time of an erased
    run are kept, and what arrives about it later is deleted. Exit status 1 if there
    is nothing to erase, or if rows keep coming in. Backups, dead letters (`mast-trace collect dead-letters`) and damaged
    files (folders `damaged` of the data folder) are not touched.

    Examples: `mast-trace erase --user ann@example.org --dry-run` · `mast-trace erase --list > tombstones.jsonl`
    """
    if listed:
        with open_store(url, data_dir, config) as store:
            sys.stdout.writelines(
                f"{line_of(each)}\n" for each in find_tombstones(store, "", project)
            )
        return
    choice = ErasureSelection(runs or [], user, session, attribute, before, project, again)
    choice.check()
    if not (dry_run or yes) and (as_json or not sys.stdin.isatty()):
        raise ConfigurationError(
            "nobody can confirm the erasure here: add --yes, or preview it with --dry-run"
        )
    with open_store(url, data_dir, config) as store:
        scope = choice.scope(store)
        number = sum(each.count(store) for each in scope.erasures)
        rows = scope.rows(store)
        if not any(rows.values()) and not scope.known:
            raise NotFound("there is nothing to erase")
        if not as_json:
            _show(scope.known, number, rows)
        if not dry_run:
            if any(rows.values()) and not yes:
                typer.confirm("Erase this for good?", abort=True)
            scope.erase(store)
            if (file := beside(store)) is not None:
                keep_in_step(store, file)
    if as_json:
        before_now = [json.loads(line_of(each)) | {"arrived": each.arrived} for each in scope.known]
        shown = {"erased": not dry_run, "runs": number, "rows": rows, "erased_before": before_now}
        print_json(shown)
    else:
        console().print("Nothing was erased." if dry_run else "Erased.")


def _show(known: Sequence[Tombstone], number: int, rows: Mapping[str, int]) -> None:
    for each in known[:_SHOWN]:
        later = f"; {each.arrived} rows that arrived later are deleted" if each.arrived else ""
        say(f"Known: {each}{later}.", soft_wrap=True)
    if len(known) > _SHOWN:
        say(f"... and {len(known) - _SHOWN} more that were erased before.")
    if not any(rows.values()):
        return
    table = FittedTable("TABLE", "ROWS")
    for name, count in rows.items():
        if count:
            table.add_row(name, str(count))
    say(f"{counted(number, 'run')}, in these rows:")
    console().print(table)
