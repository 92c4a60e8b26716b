"""`mast-trace patterns separate`, `versions` and `index`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Final

import typer
from rich.progress import Progress

from mast_trace_dashboards.cli.open_store import open_store
from mast_trace_dashboards.cli.options import AsJson, ConfigFile, DataDir, Project, Since, Url
from mast_trace_dashboards.cli.output import FittedTable, console, plain, print_json, warn
from mast_trace_dashboards.printable import counted
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


def register(group: typer.Typer) -> None:
    """Add the commands."""
    group.command("separate")(separate)
    group.command("versions")(versions)
    group.command("index")(index)


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
        table = headed(
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
        table = headed("SERVICE", "VERSION", "FIRST SEEN", "MEASURE", "RUNS", "BEFORE", "EVIDENCE")
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
        console().print(plain(f"Added {counted(done, 'judged run')}."))


def asked_of(
    service: Sequence[str] | None, since: str | None, project: str | None
) -> dict[str, Any]:
    """Return the parameters of a query for the options."""
    return {
        "services": list(service or ()),
        "projects": [project] if project else [],
        **({"since": parse_time(since)} if since else {}),
    }


def headed(*names: str) -> FittedTable:
    """Return a table with these columns and no rows."""
    table = FittedTable()
    for name in names:
        table.add_column(name)
    return table
