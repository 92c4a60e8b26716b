"""`mast-trace experiment` and `mast-trace lessons`."""

from __future__ import annotations

import dataclasses
from enum import Enum
from typing import Annotated, Any

import typer

from mast_trace.exceptions import ConfigurationError
from mast_trace.experiment.assignment import ARMS, HASH, PAIRS
from mast_trace_dashboards.cli.open_store import open_store
from mast_trace_dashboards.cli.options import AsJson, ConfigFile, DataDir, Project, Url
from mast_trace_dashboards.cli.output import print_document, print_json, say, warn
from mast_trace_dashboards.run_names import resolve_run
from mast_trace_lab.feedback.answering import MOST_CHARACTERS, MOST_LESSONS, Wanted, answer
from mast_trace_lab.feedback.experiment import look_at, make_plan
from mast_trace_lab.feedback.statistics.plan import ExperimentPlan
from mast_trace_lab.feedback.store import projects_with
from mast_trace_lab.feedback.words import planned, said_of


class Design(str, Enum):
    """Designs of an experiment."""

    hash = HASH
    pairs = PAIRS


def experiment(
    name: Annotated[str, typer.Argument(help="Name that the program gives to mast_trace.assign.")],
    plan: Annotated[
        bool, typer.Option("--plan", help="Plan it: before its first run, and only once.")
    ] = False,
    arms: Annotated[
        list[str] | None,
        typer.Option(
            "--arm",
            help="An arm, in the order of mast_trace.assign; the first is the control.",
            show_default=", ".join(ARMS),
        ),
    ] = None,
    design: Annotated[
        Design, typer.Option(help="`hash`: a task has one arm. `pairs`: each task in all arms.")
    ] = Design.hash,
    repeats: Annotated[
        int, typer.Option(min=1, max=1000, help="Runs of a task in an arm that count.")
    ] = 1,
    baseline: Annotated[
        float | None,
        typer.Option(help="Expected success rate of the control.", show_default=".6 for the size"),
    ] = None,
    effect: Annotated[float, typer.Option(help="Difference of success rates to find.")] = 0.1,
    workflow: Annotated[
        str,
        typer.Option(help="Workflow whose failed runs teach the lessons.", show_default="all"),
    ] = "",
    peek: Annotated[
        bool, typer.Option("--no-count", help="Neither count nor store this look.")
    ] = False,
    project: Project = None,
    url: Url = None,
    data_dir: DataDir = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Say whether an arm is better, worse, or not decided; with --plan, print the size it needs first.

    The plan freezes the lessons. Each later call is a look: intervals and e-values hold however often one looks.
    Success is the outcome that was recorded, by the program or by a person; a run without one counts against
    every claim. A plan without --arm is one of feedback against placebo and none.

    Example: `mast-trace experiment lessons-1 --plan --workflow refund --baseline .6`, then `mast-trace experiment lessons-1`
    """
    with open_store(url, data_dir, config) as store:
        if not plan:
            where = _project(projects_with(store, name) if project is None else [project], name)
            look = look_at(store, where, name, count=not peek)
            if as_json:
                print_json(_as_dict(look))
            else:
                print_document(said_of(look))
            return
        try:
            wanted = ExperimentPlan(
                name=name,
                arms=tuple(arms or ARMS),
                design=design.value,
                repeats=repeats,
                baseline=baseline,
                effect=effect,
                workflow=workflow,
            )
            wanted.size()
        except ValueError as error:
            raise ConfigurationError(str(error)) from error
        made = make_plan(store, project or "", wanted)
    if as_json:
        print_json({**dataclasses.asdict(made), "size": dataclasses.asdict(made.size())})
    else:
        say(planned(made), soft_wrap=True)


def _project(projects: list[str], name: str) -> str:
    if len(projects) > 1:
        raise ConfigurationError(
            f"the projects {', '.join(map(repr, projects))} have an experiment {name!r}: name one by --project"
        )
    return projects[0] if projects else ""


def _as_dict(look: Any) -> dict[str, Any]:
    return {
        **dataclasses.asdict(look),
        "size": dataclasses.asdict(look.plan.size()),
        "threshold": look.plan.threshold,
    }


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
        say(found.text, soft_wrap=True)
    else:
        warn(found.reason)
    if not found.text:
        raise typer.Exit(1)
