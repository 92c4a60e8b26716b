"""`mast-trace runs` and `mast-trace outcome`."""

from __future__ import annotations

import time
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.live import Live

from mast_trace.exceptions import ConfigurationError
from mast_trace.taxonomy import FAILURE_MODES
from mast_trace_collector.config import CollectorConfig
from mast_trace_collector.storage.runs import record_outcome
from mast_trace_dashboards.cli.open_store import open_store
from mast_trace_dashboards.cli.options import (
    AsJson,
    ConfigFile,
    DataDir,
    Every,
    Project,
    RunName,
    Since,
    Url,
)
from mast_trace_dashboards.cli.output import console, plain, print_json, print_json_line, say, warn
from mast_trace_dashboards.cli.render import runs_table
from mast_trace_dashboards.cost_words import ListedCost, listed_costs
from mast_trace_dashboards.queries.runs import run_key
from mast_trace_dashboards.run_names import newest_runs, parse_time, resolve_run
from mast_trace_dashboards.run_outcome import as_reported

if TYPE_CHECKING:
    from mast_trace_collector.storage import Store


_FILTERS = ("services", "frameworks", "outcomes", "modes", "agents", "projects")


class Outcome(str, Enum):
    """Possible outcomes of a run."""

    success = "success"
    failure = "failure"


class Outcomes(str, Enum):
    """Outcomes in lists, including unknown, and runs whose record contradicts a good end."""

    success = "success"
    failure = "failure"
    unknown = "unknown"
    suspect = "suspect"


def runs(
    since: Since = None,
    service: Annotated[list[str] | None, typer.Option(help="Only this service's.")] = None,
    framework: Annotated[list[str] | None, typer.Option(help="Only this framework's.")] = None,
    ended: Annotated[
        list[Outcomes] | None, typer.Option("--outcome", help="Only runs with this outcome.")
    ] = None,
    mode: Annotated[
        list[str] | None, typer.Option(help="Only runs that show this failure mode, such as 1.3.")
    ] = None,
    agent: Annotated[list[str] | None, typer.Option(help="Only runs with this agent.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="Most runs to list.")] = 20,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Keep the list up to date.")] = False,
    every: Every = 2.0,
    project: Project = None,
    url: Url = None,
    data_dir: DataDir = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """List runs with their findings, newest first.

    Filters can be given several times. With `--watch --json`, a line is printed for each new or
    changed run.

    Example: `mast-trace runs --since 2h --outcome failure --mode 1.3`
    """
    if unknown := sorted(set(mode or []) - FAILURE_MODES.keys()):
        raise ConfigurationError(f"MAST has no failure mode {', '.join(unknown)}; 1.1 to 3.3 exist")
    given: dict[str, Any] = {
        "services": service or [],
        "frameworks": framework or [],
        "outcomes": [each.value for each in ended or []],
        "modes": mode or [],
        "agents": agent or [],
        "projects": [project] if project else [],
        "limit": limit,
        "idle": CollectorConfig.load(config).run_idle_seconds,
    }
    if since:
        given["since"] = parse_time(since)
    with open_store(url, data_dir, config) as store:
        if not watch:
            rows = newest_runs(store, **given)
            rows = _with_costs(store, rows) if as_json else rows
            filtered = any(given[name] for name in _FILTERS) or bool(since)
            _list(rows, as_json=as_json, filtered=filtered)
        elif as_json:
            _follow(store, given, every)
        else:
            _watch(store, given, every)


def _with_costs(store: Store, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the runs for programs, with what their own model calls cost, beside the judge's."""
    costs = listed_costs(store, rows)
    priced = [costs.get(run_key(row), ListedCost()) for row in rows]
    return [
        {**as_reported(row), "CostUsd": cost.usd, "UnpricedCalls": cost.unpriced}
        for row, cost in zip(rows, priced, strict=True)
    ]


def _list(rows: list[dict[str, Any]], *, as_json: bool, filtered: bool) -> None:
    if as_json:
        print_json(rows)
    elif rows:
        out = console()
        out.print(runs_table(rows, out.width))
    elif filtered:
        warn("No run matches these filters.")
    else:
        warn("No runs yet. Is the program instrumented? `mast-trace doctor` checks.")


def _watch(store: Store, given: dict[str, Any], every: float) -> None:
    with Live(console=console(), screen=False, auto_refresh=False) as live:
        while True:
            rows = newest_runs(store, **given)
            table = runs_table(rows, live.console.width)
            live.update(table if rows else plain("Waiting for runs ..."), refresh=True)
            time.sleep(every)


def _follow(store: Store, given: dict[str, Any], every: float) -> None:
    shown: dict[str, dict[str, Any]] = {}
    while True:
        for row in reversed(_with_costs(store, newest_runs(store, **given))):
            if shown.get(run_key(row)) != row:
                print_json_line(row)
                shown[run_key(row)] = row
        time.sleep(every)


def outcome(
    run: RunName,
    ended: Annotated[Outcome, typer.Argument(help="The outcome.")],
    reason: Annotated[str, typer.Option(help="The reason, for people.")] = "",
    project: Project = None,
    url: Url = None,
    data_dir: DataDir = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Record the outcome of a run. It overrides the run's own, and the run is judged again.

    Example: `mast-trace outcome 4f2a failure --reason "the total leaves out page 3"`
    """
    with open_store(url, data_dir, config) as store:
        trace_id = resolve_run(store, run, project)
        record_outcome(store, trace_id, ended.value, reason, project=project)
    if as_json:
        print_json({"run": trace_id, "outcome": ended.value, "reason": reason})
    else:
        say(f"Recorded: run {trace_id} ended in {ended.value}.")
