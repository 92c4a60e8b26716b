"""`mast-trace profile`: how multi-agent a service is, measured on its runs."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Annotated

import typer

from mast_trace.exceptions import ConfigurationError
from mast_trace_dashboards.cli.open_store import open_store
from mast_trace_dashboards.cli.options import AsJson, ConfigFile, DataDir, Project, Since, Url
from mast_trace_dashboards.cli.output import print_document, print_json, shown_progress, warn
from mast_trace_dashboards.document import Heading, Part, Sentence
from mast_trace_dashboards.run_names import NotFound, parse_time, service_names
from mast_trace_lab.teams.profile import MOST_RUNS, Gap, left_out, service_profile, team_gaps
from mast_trace_lab.teams.words import gap_words, said_of, side_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mast_trace_collector.storage import Store


def profile(
    service: Annotated[
        str | None,
        typer.Argument(
            help="Name of the service; the only one, if there is one.", show_default=False
        ),
    ] = None,
    version: Annotated[
        str, typer.Option("--version", help="Only runs of this version.", show_default=False)
    ] = "",
    since: Since = None,
    runs: Annotated[
        int, typer.Option("--runs", min=1, help="Most runs to read, the newest ones.")
    ] = MOST_RUNS,
    experiment: Annotated[
        str, typer.Option(help="Compare the arms of this experiment too.", show_default=False)
    ] = "",
    team: Annotated[
        str,
        typer.Option(
            help="Arm with the whole team.", show_default="the arm in which the most agents act"
        ),
    ] = "",
    project: Project = None,
    url: Url = None,
    data_dir: DataDir = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Measure how multi-agent a service is: who uses whose words, who does what, what talk costs.

    Each measure has an interval over runs and, where chance alone gives a value, that value. Below 20
    runs nothing is measured, and there is no total score.

    Examples: `mast-trace profile shop --since 30d --version 2.1` ·
    `mast-trace profile shop --experiment crew-or-one --team crew`
    """
    if team and not experiment:
        raise ConfigurationError("--team names an arm of --experiment: give both")
    gaps: list[Gap] = []
    with open_store(url, data_dir, config) as store:
        chosen = service or _only_service(store, project)
        begun = parse_time(since) if since else None
        with shown_progress() as progress:
            reading = progress.add_task("Reading runs", total=None)

            def tell(done: int, of: int) -> None:
                progress.update(reading, completed=done, total=of)

            if experiment:
                gaps = team_gaps(store, experiment, team=team, project=project, tell=tell)
            found = service_profile(
                store,
                chosen,
                version=version,
                since=begun,
                project=project,
                most=runs,
                tell=tell,
            )
        missing = left_out(store, chosen, since=begun, project=project)
    if not found.profile.runs and not found.unread:
        raise NotFound(
            f"{chosen} has no such finished runs; `mast-trace runs` lists those that exist"
        )
    if as_json:
        print_json(
            {**dataclasses.asdict(found), "gaps": [dataclasses.asdict(each) for each in gaps]}
        )
    else:
        of_version = f" {found.version}" if found.version else ""
        title = Heading(f"How multi-agent {found.service}{of_version} is")
        print_document([title, *said_of(found), *_variants(experiment, gaps)])
    if missing:
        warn(
            f"retention left out the spans of {missing:,} successful runs of this time, which are not "
            "measured: failures weigh more here than among all runs (`mast-trace retain --left-out`)"
        )


def _only_service(store: Store, project: str | None) -> str:
    names = service_names(store, projects=[project] if project else [])
    if len(names) == 1:
        return names[0]
    if not names:
        raise NotFound("there are no runs with a service's name yet")
    raise ConfigurationError(f"name one of the services: {', '.join(names[:20])}")


def _variants(experiment: str, gaps: Sequence[Gap]) -> list[Part]:
    if not gaps:
        return []
    sides = [gaps[0].team, *(each.other for each in gaps)]
    decided = f"`mast-trace experiment {experiment}` says which differences are decided, and allows a look at any time."
    told = [*map(side_words, sides), *map(gap_words, gaps), decided]
    return [Heading(f"Variants of {experiment}"), *(Sentence(each, "item") for each in told)]
