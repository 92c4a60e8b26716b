"""`mast-trace patterns`: failures that recur over runs, and the states that people give them."""

from __future__ import annotations

import dataclasses
import getpass
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.progress import Progress

from mast_trace_dashboards import found_pattern
from mast_trace_dashboards.cli.open_store import open_store
from mast_trace_dashboards.cli.options import AsJson, ConfigFile, DataDir, Project, Since, Url
from mast_trace_dashboards.cli.output import (
    FittedTable,
    console,
    plain,
    print_document,
    print_json,
    say,
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
from mast_trace_dashboards.printable import ID_SHOWN, counted
from mast_trace_dashboards.queries import QUERIES
from mast_trace_dashboards.run_names import parse_time, service_names
from mast_trace_judge.patterns.indexing import PatternIndexer

_NAMED: Final = 20

Service = Annotated[list[str] | None, typer.Option(help="Only this service's runs.")]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, help="Most rows.")]
_WARNS = 3.0


def nothing_separates(
    asked: Sequence[str], services: Sequence[str], counts: Sequence[Mapping[str, Any]]
) -> list[str]:
    """Return the reasons: one for each situation that services are in.

    Args:
        asked: the services of the question; none means all.
        services: all that have runs.
        counts: rows of the query `known_outcomes`.
    """
    unknown = [name for name in asked if name not in services]
    reasons: list[str] = []
    if unknown:
        those = f"Those with runs: {_few(services)}" if services else "No service has runs yet"
        reasons.append(f"There is no service {_few(unknown)}. {those}.")
    if not asked or len(unknown) < len(asked):
        judged = {row["Service"] for row in counts}
        waiting = [name for name in asked if name in services and name not in judged]
        reasons += _of_known(waiting, counts)
    return reasons


def _of_known(waiting: Sequence[str], counts: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if waiting or not counts:
        of = f" of {_few(waiting)}" if waiting else ""
        yield (
            f"There are no judged runs{of} in that time. The judge's worker adds runs as it judges them; "
            "`mast-trace patterns index` adds those that were judged without it."
        )
    same = [row for row in counts if row["Failed"] and row["Passed"]]
    alike = [row for row in counts if bool(row["Failed"]) != bool(row["Passed"])]
    silent = [row for row in counts if not row["Failed"] and not row["Passed"]]
    if same:
        yield (
            "Outcomes are recorded, and no agent, action or count of one differs between failed and successful runs by "
            "more than chance (p below 0.05, corrected): "
            f"{_listed(same)}."
        )
    if alike:
        yield (
            f"Recorded outcomes are all the same, and there is nothing to compare: {_listed(alike)}."
        )
    if silent:
        runs = sum(row["Runs"] for row in silent)
        of = _few([_name(row) for row in silent])
        yield (
            f"No outcomes are recorded of {of} (judged runs: {runs:,}), and those of the judge do not count. "
            "Record outcomes by `mast_trace.record_outcome` or `mast-trace outcome`."
        )


def _listed(rows: Sequence[Mapping[str, Any]]) -> str:
    return _few(
        [f"{_name(row)} ({row['Failed']:,} failed, {row['Passed']:,} successful)" for row in rows]
    )


def _name(row: Mapping[str, Any]) -> str:
    return row["Service"] or "runs without a service's name"


def _few(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more:,} more" if more > 0 else "")


def separate(
    service: Service = None,
    since: Since = None,
    limit: Limit = 20,
    project: Project = None,
    url: Url = None,
    data_dir: DataDir = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Show which agents and actions separate failed from successful runs.

    Only recorded outcomes count: those of the judge follow from what it found. OCHIAI is a suspicion between
    0 and 1; P is of Fisher's exact test, corrected for all agents, actions and counts of the service, and only rows
    below 0.05 are shown. Neither says that the action is the cause.

    Example: `mast-trace patterns separate --service shop --since 7d`
    """
    given = asked_of(service, since, project)
    reasons: list[str] = []
    with open_store(url, data_dir, config) as store:
        rows = QUERIES["separating_actions"].run(store, limit=limit, **given)
        if not rows and not as_json:
            services = service_names(store, projects=given["projects"]) if service else []
            counts = QUERIES["known_outcomes"].run(store, **given)
            reasons = nothing_separates(service or (), services, counts)
    if as_json:
        print_json(rows)
    elif not rows:
        for reason in reasons:
            warn(reason)
    else:
        table = FittedTable(
            "SERVICE", "AGENT AND ACTION", "FAILED RUNS", "SUCCESSFUL RUNS", "OCHIAI", "P"
        )
        for row in rows:
            named = f"{row['Agent']}: {row['Action'] or 'acts at all'}"
            table.add_row(
                plain(row["Service"]),
                plain(f"without {named}" if row["Absent"] else named),
                f"{row['FailedRuns']:,} of {row['AllFailed']:,}",
                f"{row['PassedRuns']:,} of {row['AllPassed']:,}",
                f"{row['Ochiai']:.2f}",
                f"{row['Corrected']:.2g}",
            )
        console().print(table)


def versions(
    service: Service = None,
    since: Since = None,
    limit: Limit = 20,
    project: Project = None,
    url: Url = None,
    data_dir: DataDir = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Show whether a version of a service fails more often than those before it.

    Each version is compared with all versions that were seen before it, by the exact binomial test and the gates of
    the alerts. EVIDENCE is minus the decimal logarithm of a probability: from 3 on it is a warning, from 4 a page.

    Example: `mast-trace patterns versions --service shop`
    """
    given = asked_of(service, since, project)
    with open_store(url, data_dir, config) as store:
        rows = QUERIES["version_regressions"].run(store, limit=limit, **given)
    if as_json:
        print_json(rows)
    elif not rows:
        warn(
            "No service has runs of two versions. Set `service.version` where it runs, such as by "
            "OTEL_RESOURCE_ATTRIBUTES=service.version=1.4.0."
        )
    else:
        table = FittedTable(
            "SERVICE", "VERSION", "FIRST SEEN", "MEASURE", "RUNS", "BEFORE", "EVIDENCE"
        )
        for row in rows:
            style = "bold red" if row["Evidence"] >= _WARNS else ""
            table.add_row(
                plain(row["Service"]),
                plain(row["Version"]),
                f"{row['FirstSeen']:%Y-%m-%d %H:%M}",
                plain(row["Measure"]),
                f"{row['Runs']:,} of {row['Examined']:,}",
                f"{row['RunsBefore']:,} of {row['ExaminedBefore']:,}",
                plain(f"{row['Evidence']:.1f}" if row["Evidence"] else "-", style),
            )
        console().print(table)


def index(
    url: Url = None,
    data_dir: DataDir = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Add judged runs to the patterns that the judge's worker has not added.

    It may be stopped at any moment and started again: nothing counts twice.

    Example: `mast-trace patterns index`
    """
    done = 0
    with open_store(url, data_dir, config) as store, Progress(console=console(stderr=True)) as bar:
        waiting = bar.add_task("judged runs", total=None)
        indexer = PatternIndexer(store)
        while written := indexer.index(at_all=True):
            done += written
            bar.update(waiting, completed=done)
    if as_json:
        print_json({"runs": done})
    else:
        say(f"Added {counted(done, 'judged run')}.")


def asked_of(
    service: Sequence[str] | None, since: str | None, project: str | None
) -> dict[str, Any]:
    """Return the parameters of a query for the options."""
    return {
        "services": list(service or ()),
        "projects": [project] if project else [],
        **({"since": parse_time(since)} if since else {}),
    }


PatternName = Annotated[
    str, typer.Argument(metavar="PATTERN", help="The pattern's id, or the beginning of it.")
]
Note = Annotated[str, typer.Option("--note", help="For people.")]
By = Annotated[str, typer.Option("--by", help="Name of the person.", show_default="your user name")]


def listing(rows: Sequence[Mapping[str, Any]]) -> FittedTable:
    """Return a table of patterns."""
    table = FittedTable("ID", "PATTERN", "SHARE", "TREND", "STATE", "LAST SEEN", "FAILED / OTHERS")
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
        **asked_of(service, since, project),
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
    say(f"Pattern {made.pattern} is {made.state}{in_version}, says {made.author}.")


group = typer.Typer(
    name="patterns",
    help="Failures that recur over runs: failure mode, agent, tool or text.",
    no_args_is_help=True,
)
group.command("list")(list_patterns)
group.command("show")(show)
group.command("ack")(acknowledge)
group.command("resolve")(resolve)
group.command("open")(reopen)
group.command("separate")(separate)
group.command("versions")(versions)
group.command("index")(index)
