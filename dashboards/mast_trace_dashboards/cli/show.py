"""`mast-trace show`: one run, step by step, with its verdict."""

from __future__ import annotations

import dataclasses
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Group

from mast_trace.trajectory import Trajectory
from mast_trace_collector.storage.runs import spans_of
from mast_trace_dashboards.cli.lookup import NotFound, resolve_run
from mast_trace_dashboards.cli.options import AsJson, ConfigFile, DataDir, Project, RunName, Url
from mast_trace_dashboards.cli.output import console, print_json, print_json_line
from mast_trace_dashboards.cli.render import run_view, steps_table, verdict_view
from mast_trace_dashboards.cli.store import open_store
from mast_trace_dashboards.queries import QUERIES
from mast_trace_judge.verdict_store import load_latest

if TYPE_CHECKING:
    from collections.abc import Callable

    from mast_trace.trajectory import Step
    from mast_trace_collector.storage import Store
    from mast_trace_judge.verdict import Verdict


_DONE = frozenset({"judged", "unscored"})


@dataclasses.dataclass(frozen=True)
class Shown:
    """All that is known of one run.

    Attributes:
        row: of the query `run`.
        trajectory: its steps.
        verdict: the newest one; None if there is none.
    """

    row: dict[str, Any]
    trajectory: Trajectory
    verdict: Verdict | None


def load(store: Store, trace_id: str, project: str | None = None) -> Shown:
    """Read one run.

    Raises:
        NotFound: there is none of this id.
    """
    row = QUERIES["run"].one(store, run=trace_id)
    if row is None:
        raise NotFound(f"there is no run {trace_id}")
    trajectory = Trajectory.from_spans(spans_of(store, trace_id, project=project))
    return Shown(row, trajectory, load_latest(store, trace_id, project=project))


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("show")(show)


def show(
    run: RunName,
    full: Annotated[bool, typer.Option("--full", help="Print texts in full.")] = False,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Follow the run until its verdict is there.")
    ] = False,
    every: Annotated[float, typer.Option(min=0.2, help="Seconds between looks.")] = 1.0,
    project: Project = None,
    url: Url = None,
    data_dir: DataDir = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Show a run: its steps, the decisive error, and the failure modes with their evidence.

    With `--watch`, steps are printed as they come, then the verdict; as JSON, a line for each.

    Example: `mast-trace show last --full`
    """
    with open_store(url, data_dir, config) as store:
        trace_id = resolve_run(store, run, project)
        if watch:
            follow(lambda: load(store, trace_id, project), every, full=full, as_json=as_json)
            return
        shown = load(store, trace_id, project)
    if as_json:
        print_json(as_dict(shown))
    else:
        console().print(run_view(shown.row, shown.trajectory, shown.verdict, full=full))


def follow(
    look: Callable[[], Shown], every: float, *, full: bool = False, as_json: bool = False
) -> None:
    """Print a run's steps as they come, and its verdict at the end."""
    printed = 0
    while True:
        shown = look()
        new = shown.trajectory.steps[printed:]
        if as_json:
            for step in new:
                print_json_line({"step": _step(step)})
        elif new:
            part = dataclasses.replace(shown.trajectory, steps=new)
            console().print(steps_table(part, shown.verdict, full=full, header=not printed))
        printed += len(new)
        if shown.row["State"] in _DONE:
            break
        time.sleep(every)
    if as_json:
        print_json_line({"run": shown.row, "verdict": as_dict(shown)["verdict"]})
    else:
        console().print(Group("", *verdict_view(shown.row, shown.verdict)))


def as_dict(shown: Shown) -> dict[str, Any]:
    """Return a run for other programs: the query's row, the steps, and the verdict."""
    return {
        "run": shown.row,
        "task": shown.trajectory.task,
        "agents": shown.trajectory.agents,
        "steps": [_step(step) for step in shown.trajectory.steps],
        "verdict": None if shown.verdict is None else shown.verdict.to_json(),
    }


def _step(step: Step) -> dict[str, Any]:
    values = dataclasses.asdict(step)
    return {name: value for name, value in values.items() if value not in ("", (), None)}
