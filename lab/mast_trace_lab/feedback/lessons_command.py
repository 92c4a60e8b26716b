"""`mast-trace lessons`: what the failed runs teach, as `mast_trace.feedback` gives it to programs."""

from __future__ import annotations

from typing import Annotated

import typer

from mast_trace.exceptions import ConfigurationError
from mast_trace_dashboards.cli.open_store import open_store
from mast_trace_dashboards.cli.options import AsJson, ConfigFile, DataDir, Project, Url
from mast_trace_dashboards.cli.output import console, plain, print_json, warn
from mast_trace_dashboards.run_names import resolve_run
from mast_trace_lab.feedback.answering import MOST_CHARACTERS, MOST_LESSONS, Wanted, answer


def lessons(
    run: Annotated[
        str,
        typer.Option("--run", help="The run to learn from: its id, its beginning, or `last`."),
    ] = "",
    workflow: Annotated[
        str, typer.Option("--workflow", help="Only runs of this workflow.", show_default=False)
    ] = "",
    agent: Annotated[
        str, typer.Option("--agent", help="Only lessons about this agent.", show_default=False)
    ] = "",
    last: Annotated[
        int, typer.Option("--last", min=1, max=MOST_LESSONS, help="Lessons at most.")
    ] = MOST_LESSONS,
    budget: Annotated[
        int, typer.Option("--budget", min=1, max=MOST_CHARACTERS, help="Characters at most.")
    ] = 600,
    project: Project = None,
    url: Url = None,
    data_dir: DataDir = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Print what failed runs teach: confirmed, labelled and exact findings, with quotes of the runs.

    It is the text that `mast_trace.feedback()` gives to a program; nothing is printed where there is nothing to
    say. The exit status is 0 if there is a lesson, 1 if not.

    Example: `mast-trace lessons --workflow refund --agent researcher`
    """
    if run and workflow:
        raise ConfigurationError("name a run by --run or a workflow by --workflow, not both")
    with open_store(url, data_dir, config) as store:
        wanted = Wanted(
            run=resolve_run(store, run, project) if run else "",
            workflow=workflow,
            agent=agent,
            last=last,
            budget=budget,
        )
        found = answer(store, wanted, project=project)
    if as_json:
        print_json(found.to_json())
    elif found.text:
        console().print(plain(found.text), soft_wrap=True)
    else:
        warn(found.reason)
    if not found.text:
        raise typer.Exit(1)
