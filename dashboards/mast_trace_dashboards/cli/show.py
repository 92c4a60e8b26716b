"""`mast-trace show`: one run, step by step, with its verdict."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mast_trace.trajectory import Trajectory
from mast_trace_collector.storage.runs import spans_of
from mast_trace_dashboards.cli.lookup import NotFound, resolve_run
from mast_trace_dashboards.cli.options import AsJson, ConfigFile, DataDir, Project, Url
from mast_trace_dashboards.cli.output import console, print_json
from mast_trace_dashboards.cli.render import run_view
from mast_trace_dashboards.cli.store import open_store
from mast_trace_dashboards.queries import QUERIES
from mast_trace_judge.verdict_store import load_latest

if TYPE_CHECKING:
    from mast_trace.trajectory import Step
    from mast_trace_collector.storage import Store
    from mast_trace_judge.verdict import Verdict


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
    run: Annotated[str, typer.Argument(help="The run's id, its beginning, or `last`.")],
    full: Annotated[bool, typer.Option("--full", help="Print texts in full.")] = False,
    project: Project = None,
    url: Url = None,
    data_dir: DataDir = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Show a run: its steps, the decisive error, and the failure modes with their evidence.

    Example: `mast-trace show last --full`
    """
    with open_store(url, data_dir, config) as store:
        shown = load(store, resolve_run(store, run, project), project)
    if as_json:
        print_json(as_dict(shown))
    else:
        console().print(run_view(shown.row, shown.trajectory, shown.verdict, full=full))


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
