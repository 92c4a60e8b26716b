"""`mast-trace train`: a training set from one's own labels, and a model trained on it."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mast_trace_dashboards.cli.open_store import open_store
from mast_trace_dashboards.cli.options import AsJson, ConfigFile, DataDir, Project, Uncertain, Url
from mast_trace_dashboards.cli.output import console, plain, print_json, warn
from mast_trace_judge.config import JudgeConfig
from mast_trace_judge.version import judge_version, own_profiles
from mast_trace_lab.train.examples import Question, write_examples
from mast_trace_lab.train.export import (
    SOURCES,
    Export,
    set_failures,
    stored_failures,
    wanted_sources,
)
from mast_trace_lab.train.run_command import run_training

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mast_trace_lab.train.export import Failure


def register(app: typer.Typer) -> None:
    """Add the group."""
    group = typer.Typer(
        help="Train a model to name decisive steps, on your own labels.", no_args_is_help=True
    )
    group.callback()(_group)
    group.command("export")(export_set)
    group.command("run")(run_training)
    app.add_typer(group, name="train")


def _group() -> None:
    pass


def export_set(
    out: Annotated[Path, typer.Option("--out", help="File to write.")] = Path("train.jsonl"),
    labels: Annotated[
        str, typer.Option("--labels", help="Sources of labels, with commas between.")
    ] = ",".join(SOURCES),
    question: Annotated[
        Question,
        typer.Option(
            "--question",
            help="read: the judge's own first question; step: the number of the step alone.",
        ),
    ] = "read",
    data: Annotated[
        list[Path] | None,
        typer.Option(
            "--data",
            help="Folder by `mast-trace dataset build`, instead of the store; may be repeated.",
            show_default=False,
        ),
    ] = None,
    uncertain: Uncertain = False,
    project: Project = None,
    url: Url = None,
    data_dir: DataDir = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Write the labelled failures as prompts, in the words in which the judge asks its model.

    Labels are those of `mast-trace label RUN --step N`, of `mast-trace confirm` and of
    `mast-trace inject`. Each line of the file has prompt, step, agent, mode, steps, source and
    group, and the run. It holds texts of your agents: treat it as such.

    Example: `mast-trace train export --labels person,injection --out train.jsonl`
    """
    sources = wanted_sources(labels)
    settings = JudgeConfig.load(config)
    profiles = own_profiles(settings)
    export = Export(question, settings, judge_version(settings, profiles), profiles, uncertain)
    shown = console(stderr=True)
    opened = nullcontext() if data else open_store(url, data_dir, config)
    with opened as store, shown.status("Writing prompts"):

        def failures() -> Iterator[Failure]:
            for folder in data or ():
                yield from set_failures(folder, sources)
            if store is not None:
                yield from stored_failures(store, sources, project=project)

        count = write_examples(export.examples(failures()), out)
    if as_json:
        counts = {"examples": count, "by_source": export.written, "left_out": export.left_out}
        print_json({"file": str(out), "question": question, **counts})
    else:
        told = ", ".join(f"{n} by {source}" for source, n in sorted(export.written.items()))
        console().print(
            plain(f"Wrote {count} examples to {out}" + (f" ({told})." if told else "."))
        )
        for reason, number in sorted(export.left_out.items()):
            console().print(plain(f"Left out {number}: {reason}."))
    if not count:
        warn(
            "There is nothing to train on. Name decisive steps by `mast-trace label RUN --step N`, prove "
            "them by `mast-trace confirm RUN`, or plant faults by `mast-trace inject RUN`."
        )
        sys.exit(1)
