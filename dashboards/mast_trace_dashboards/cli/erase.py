"""`mast-trace erase`: permanently removes runs, with verdicts and labels, from the store."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from mast_trace.exceptions import ConfigurationError
from mast_trace_collector.storage import erasure
from mast_trace_dashboards.cli.open_store import open_store
from mast_trace_dashboards.cli.options import AsJson, ConfigFile, DataDir, Project, Url
from mast_trace_dashboards.cli.output import console, plain, print_json
from mast_trace_dashboards.run_names import NotFound, parse_time, resolve_run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mast_trace_collector.storage import Store
    from mast_trace_collector.storage.erasure import Erasure


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("erase")(erase)


@dataclass(frozen=True)
class ErasureSelection:
    """The runs that a command line selects for erasure; all but `project` exclude each other."""

    runs: Sequence[str]
    user: str | None
    session: str | None
    attribute: str | None
    before: str | None
    project: str | None

    def check(self) -> None:
        """Reject ambiguous selections.

        Raises:
            ConfigurationError: nothing is selected, or several things, or an empty name (such as
                that of an unset variable of a shell).
        """
        chosen = [self.user, self.session, self.attribute, self.before]
        number = sum(each is not None for each in chosen) + bool(self.runs)
        if number > 1:
            raise ConfigurationError(
                "choose by runs, --user, --session, --attribute or --before, one at a time"
            )
        if not number and self.project is None:
            raise ConfigurationError(
                "choose what to erase: runs, --user, --session, --attribute, --before or --project"
            )
        if any(each is not None and not each.strip() for each in (*chosen, self.project)):
            raise ConfigurationError("an empty value chooses nothing: was a variable unset?")

    def erasures(self, store: Store) -> list[Erasure]:
        """Return the rows to erase.

        Raises:
            NotFound: a run that was named does not exist.
            ConfigurationError: a run, a time or an attribute cannot be read.
        """
        if self.before is not None:
            return [erasure.before(parse_time(self.before), project=self.project)]
        if self.runs:
            ids = [resolve_run(store, run, self.project) for run in self.runs]
        elif self.user is not None:
            ids = erasure.runs_with(store, erasure.USER, self.user, project=self.project)
        elif self.session is not None:
            ids = erasure.runs_with(store, erasure.SESSION, self.session, project=self.project)
        elif self.attribute is not None:
            name, equals, value = self.attribute.partition("=")
            if not (name and equals and value):
                raise ConfigurationError("write an attribute as name=value")
            ids = erasure.runs_with(store, [name], value, project=self.project)
        else:
            return [erasure.of_project(str(self.project))]
        return erasure.of_runs(sorted(set(ids)), project=self.project)


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

    With --project alone, all data of the project. Erasure cannot be undone. Exit status 1 if there
    is nothing to erase. Backups, dead letters (`mast-trace collect dead-letters`) and damaged files
    (folders `damaged` of the data folder) are not touched.

    Example: `mast-trace erase --user ann@example.org --dry-run`
    """
    choice = ErasureSelection(runs or [], user, session, attribute, before, project)
    choice.check()
    if not (dry_run or yes) and (as_json or not sys.stdin.isatty()):
        raise ConfigurationError(
            "nobody can confirm the erasure here: add --yes, or preview it with --dry-run"
        )
    with open_store(url, data_dir, config) as store:
        erasures = choice.erasures(store)
        number = sum(each.runs(store) for each in erasures)
        rows: dict[str, int] = {}
        for each in erasures:
            for table, count in each.rows(store).items():
                rows[table] = rows.get(table, 0) + count
        if not any(rows.values()):
            raise NotFound("there is nothing to erase")
        if not as_json:
            _show(number, rows)
        if not dry_run:
            if not yes:
                typer.confirm("Erase this for good?", abort=True)
            for each in erasures:
                each.execute(store)
    if as_json:
        print_json({"erased": not dry_run, "runs": number, "rows": rows})
    else:
        console().print("Nothing was erased." if dry_run else "Erased.")


def _show(number: int, rows: dict[str, int]) -> None:
    table = Table("TABLE", "ROWS", box=None, pad_edge=False)
    for name, count in rows.items():
        table.add_row(name, str(count))
    console().print(plain(f"{number} run{'' if number == 1 else 's'}, in these rows:"))
    console().print(table)
