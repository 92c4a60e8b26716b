"""`mast-trace label`: a person's label of a run, which `judge agree` and `judge fit` read."""

from __future__ import annotations

import dataclasses
import getpass
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from mast_trace.exceptions import ConfigurationError
from mast_trace.taxonomy import FAILURE_MODES
from mast_trace_dashboards.cli.commands.runs import Outcome
from mast_trace_dashboards.cli.open_store import open_store
from mast_trace_dashboards.cli.options import AsJson, ConfigFile, DataDir, Project, RunName, Url
from mast_trace_dashboards.cli.output import console, print_json, say
from mast_trace_dashboards.cli.render import RunView, load, run_view
from mast_trace_dashboards.printable import clip
from mast_trace_dashboards.run_names import resolve_run
from mast_trace_judge.store.labels import NO_MODES, HumanLabel, labels_of, save_labels

_QUOTED = 70
_MOST_DIGITS = 9


def label(
    run: RunName,
    annotator: Annotated[
        str,
        typer.Option(
            "--annotator", help="Name of the person who labels.", show_default="your user name"
        ),
    ] = "",
    outcome: Annotated[
        Outcome | None, typer.Option("--outcome", help="Outcome of the run.")
    ] = None,
    mode: Annotated[
        list[str] | None,
        typer.Option(
            "--mode", help="A failure mode that it shows, such as 2.6, or `none`; can be repeated."
        ),
    ] = None,
    step: Annotated[
        list[int] | None,
        typer.Option(
            "--step",
            min=0,
            help="Number of the decisive step, from 0; can be repeated where several are, the clearest first.",
        ),
    ] = None,
    note: Annotated[str, typer.Option("--note", help="For people.")] = "",
    project: Project = None,
    url: Url = None,
    data_dir: DataDir = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Record your opinion of a run. A later label of the same annotator replaces the earlier one.

    Without an opinion on the command line, a terminal shows the run's steps and asks for one. The
    verdict is hidden then, so that it does not influence the label.

    Example: `mast-trace label 4f2a --annotator ada --outcome failure --mode 2.6 --step 3`
    """
    who = (annotator or getpass.getuser()).strip()
    given = HumanLabel("", who, outcome.value if outcome else "", tuple(mode or ()), note=note)
    given = dataclasses.replace(given, **_several(step or []))
    asks = outcome is None and not mode and not step and not note
    if asks and (as_json or not sys.stdin.isatty()):
        raise ConfigurationError("give your opinion by --outcome, --mode, --step or --note")
    with open_store(url, data_dir, config) as store:
        shown = load(store, resolve_run(store, run, project), project)
        # A person who has labelled the run has seen the verdict since.
        first = all(each.annotator != who for each in labels_of(store, shown.stored.trace_id))
        told = dataclasses.replace(_ask(shown, who), blind=first) if asks else given
        made = _placed(told, shown)
        save_labels(store, [made])
    if as_json:
        print_json(dataclasses.asdict(made))
    else:
        say(f"Recorded {made.annotator}'s label of run {made.trace_id}.")


def _several(steps: Sequence[int]) -> dict[str, Any]:
    """Return the fields of a label that hold its decisive steps, the first one of which is the main one."""
    return {"decisive_step": steps[0], "decisive_steps": tuple(steps)} if steps else {}


def _placed(opinion: HumanLabel, shown: RunView) -> HumanLabel:
    """Attach an opinion to its run: the decisive agent is the agent of the decisive step.

    Raises:
        ConfigurationError: the run has no such step.
    """
    count, chosen = shown.stored.count, opinion.decisive_step
    if unknown := [each for each in opinion.decisive_steps if each >= count]:
        raise ConfigurationError(
            f"the run has no step {unknown[0]}: its steps are 0 to {count - 1}"
        )
    return dataclasses.replace(
        opinion,
        trace_id=shown.stored.trace_id,
        project=str(shown.row["Project"]),
        modes=tuple(sorted(set(opinion.modes))),
        decisive_agent="" if chosen is None else shown.stored.outline.actor(chosen),
    )


def _ask(shown: RunView, annotator: str) -> HumanLabel:
    """Show the run without its verdict and ask, question by question."""
    for part in run_view(shown, judged=False):
        console().print(part)
    ended = typer.prompt(
        "How did it end? (success, failure, or - for no opinion)",
        default=Outcome.failure.value,
        value_proc=_read_outcome,
    )
    for code, each in FAILURE_MODES.items():
        say(f"  {code} {each.name}")
    modes = typer.prompt(
        "Which failure modes does it show? (codes, none, or - for no opinion)",
        default="-",
        value_proc=_read_modes,
    )
    step = typer.prompt(
        "Which step decided it? (its number, or - for no opinion)",
        default="-",
        value_proc=lambda text: _read_step(text, shown.stored.count),
    )
    if step >= 0:
        (named,) = shown.stored.steps([step], clip=_QUOTED * 10)
        say(f"  {named.agent}: {clip(named.text, _QUOTED)}")
    note = typer.prompt("A note?", default="", show_default=False)
    return HumanLabel("", annotator, ended, modes, step if step >= 0 else None, "", note)


def _read_outcome(text: str) -> str:
    answer = text.strip().lower().strip("-")
    if answer not in {"", *(each.value for each in Outcome)}:
        raise typer.BadParameter("write success, failure or -")
    return answer


def _read_modes(text: str) -> tuple[str, ...]:
    codes = tuple(text.replace(",", " ").replace("-", " ").split())
    if codes == NO_MODES:
        return codes
    if unknown := sorted(set(codes) - FAILURE_MODES.keys()):
        raise typer.BadParameter(f"MAST has no failure mode {', '.join(unknown)}")
    return codes


def _read_step(text: str, steps: int) -> int:
    """Read a step's number; -1 stands for no opinion."""
    answer = text.strip()
    if answer in {"", "-"}:
        return -1
    if not answer.isdecimal() or len(answer) > _MOST_DIGITS or int(answer) >= steps:
        raise typer.BadParameter(f"write a number from 0 to {steps - 1}, or -")
    return int(answer)
