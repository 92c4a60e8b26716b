"""`mast-trace patterns`: failures that recur over runs, and the states that people give them."""

from __future__ import annotations

import dataclasses
import getpass
from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from mast_trace_dashboards import found_pattern
from mast_trace_dashboards.cli.commands import patterns_more
from mast_trace_dashboards.cli.open_store import open_store
from mast_trace_dashboards.cli.options import AsJson, ConfigFile, DataDir, Project, Since, Url
from mast_trace_dashboards.cli.output import (
    FittedTable,
    console,
    plain,
    print_document,
    print_json,
    warn,
)
from mast_trace_dashboards.document import Heading
from mast_trace_dashboards.found_pattern import (
    cost_of,
    find_pattern,
    naming_problems,
    said_of,
    set_state,
)
from mast_trace_dashboards.printable import ID_SHOWN
from mast_trace_dashboards.queries import QUERIES
from mast_trace_dashboards.run_names import parse_time

PatternName = Annotated[
    str, typer.Argument(metavar="PATTERN", help="The pattern's id, or the beginning of it.")
]
Note = Annotated[str, typer.Option("--note", help="For people.")]
By = Annotated[str, typer.Option("--by", help="Name of the person.", show_default="your user name")]


def listing(rows: Sequence[Mapping[str, Any]]) -> FittedTable:
    """Return a table of patterns."""
    table = patterns_more.headed(
        "ID", "PATTERN", "SHARE", "TREND", "STATE", "LAST SEEN", "FAILED / OTHERS"
    )
    for row in rows:
        told = found_pattern.title(row)
        if row["Sentence"]:
            told = f"{told}\n  {found_pattern.named(row)}"
        if row["Text"]:
            told = f"{told}\n  {found_pattern.text(row)}"
        table.add_row(
            plain(row["PatternId"][:ID_SHOWN]),
            plain(told),
            plain(found_pattern.share(row)),
            plain(row["Trend"]),
            plain(found_pattern.state(row)),
            plain(f"{row['LastSeen']:%Y-%m-%d %H:%M}"),
            plain(_failed(row)),
        )
    return table


def _failed(row: Mapping[str, Any]) -> str:
    """Return both shares of recorded failures, and whether they differ."""
    known = row["Failed"] + row["Succeeded"]
    rest = row["KnownFailed"] + row["KnownSucceeded"] - known
    if row["PValue"] is None or not rest or not known:
        return "unknown"
    own, others = row["Failed"] / known, (row["KnownFailed"] - row["Failed"]) / rest
    return f"{own:.0%} / {others:.0%}, p = {row['Corrected']:.2g}"


class State(str, Enum):
    """States of patterns."""

    open = "open"
    acknowledged = "acknowledged"
    resolved = "resolved"
    reopened = "reopened"


def register(app: typer.Typer) -> None:
    """Add the group."""
    group = typer.Typer(
        help="Failures that recur over runs: failure mode, agent, tool or text.",
        no_args_is_help=True,
    )
    group.command("list")(list_patterns)
    group.command("show")(show)
    group.command("ack")(acknowledge)
    group.command("resolve")(resolve)
    group.command("open")(reopen)
    patterns_more.register(group)
    app.add_typer(group, name="patterns")


def list_patterns(
    since: Since = None,
    state: Annotated[
        list[State] | None, typer.Option(help="Only those in this state; can be repeated.")
    ] = None,
    mode: Annotated[list[str] | None, typer.Option(help="Only this failure mode's.")] = None,
    agent: Annotated[list[str] | None, typer.Option(help="Only this agent's.")] = None,
    service: Annotated[list[str] | None, typer.Option(help="Only this service's runs.")] = None,
    min_runs: Annotated[int, typer.Option(min=1, help="Fewest runs.")] = 3,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="Most patterns.")] = 20,
    project: Project = None,
    url: Url = None,
    data_dir: DataDir = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """List patterns, most frequent first.

    A pattern is a failure mode at one agent (or between two), with one tool or with one form of text. Its share
    is of the runs in which the mode was looked for.

    Example: `mast-trace patterns list --since 7d --state open`
    """
    given: dict[str, Any] = {
        **patterns_more.asked_of(service, since, project),
        "states": [each.value for each in state or []],
        "modes": mode or [],
        "agents": agent or [],
        "min_runs": min_runs,
        "limit": limit,
    }
    with open_store(url, data_dir, config) as store:
        rows = QUERIES["patterns"].run(store, **given)
        problems = QUERIES["pattern_naming"].run(store, projects=given["projects"])
    if as_json:
        print_json(rows)
    elif not rows:
        warn(
            f"No failure was found in {min_runs} runs or more. Patterns are kept by the judge's worker; "
            "`mast-trace patterns index` adds runs that were judged without it."
        )
    else:
        console().print(listing(rows))
        for problem in naming_problems(problems, rows):
            warn(problem)


def show(
    pattern: PatternName,
    since: Since = None,
    project: Project = None,
    url: Url = None,
    data_dir: DataDir = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Show a pattern: share, trend, contrast with successful runs, its runs, and what to do next.

    Example: `mast-trace patterns show 4f2a`
    """
    given: dict[str, Any] = {"since": parse_time(since)} if since else {}
    with open_store(url, data_dir, config) as store:
        found = find_pattern(store, pattern, project=project, **given)
        cost = cost_of(store, found)
    if as_json:
        commands = [{"effect": effect, "command": line} for effect, line in found.commands]
        told = {"pattern": found.row, "runs": found.runs, "cost": cost, "commands": commands}
        print_json(told)
    else:
        print_document([Heading(found_pattern.title(found.row)), *said_of(found, cost)])


def acknowledge(
    pattern: PatternName,
    note: Note = "",
    by: By = "",
    project: Project = None,
    url: Url = None,
    data_dir: DataDir = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Acknowledge a pattern: it is known, and the alert on new patterns leaves it out.

    Example: `mast-trace patterns ack 4f2a --note "ticket 17"`
    """
    _set((pattern, project), "acknowledged", by, "", note, (url, data_dir, config), as_json)


def resolve(
    pattern: PatternName,
    version: Annotated[
        str,
        typer.Option(
            "--version",
            help="Version of the service (service.version) that has the fix. Runs of earlier versions then "
            "reopen nothing; without it, every run from now on does.",
        ),
    ] = "",
    note: Note = "",
    by: By = "",
    project: Project = None,
    url: Url = None,
    data_dir: DataDir = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Call a pattern resolved. A later run that shows it opens it again.

    Example: `mast-trace patterns resolve 4f2a --version 1.4.0`
    """
    _set((pattern, project), "resolved", by, version, note, (url, data_dir, config), as_json)


def reopen(
    pattern: PatternName,
    note: Note = "",
    by: By = "",
    project: Project = None,
    url: Url = None,
    data_dir: DataDir = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Call a pattern open again, as if nobody had acknowledged or resolved it.

    Example: `mast-trace patterns open 4f2a`
    """
    _set((pattern, project), "open", by, "", note, (url, data_dir, config), as_json)


def _set(
    named: tuple[str, str | None],
    state: str,
    by: str,
    version: str,
    note: str,
    where: tuple[str | None, Path | None, Path | None],
    as_json: bool,
) -> None:
    pattern, project = named
    with open_store(*where) as store:
        made = set_state(
            store,
            pattern,
            state,
            by or getpass.getuser(),
            version=version,
            note=note,
            project=project,
        )
    if as_json:
        print_json(dataclasses.asdict(made))
        return
    in_version = f" in version {made.version}" if made.version else ""
    console().print(
        plain(f"Pattern {made.pattern} is {made.state}{in_version}, says {made.author}.")
    )
