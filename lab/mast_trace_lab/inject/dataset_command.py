"""`mast-trace dataset`: labelled sets of your own failures."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from mast_trace_dashboards.cli.open_store import open_store
from mast_trace_dashboards.cli.options import AsJson, ConfigFile, DataDir, Project, Url
from mast_trace_dashboards.cli.output import console, plain, print_json
from mast_trace_dashboards.printable import counted
from mast_trace_judge.study.set_files import CARD, PARQUET, RUNS, has_parquet
from mast_trace_lab.inject.dataset import build

group = typer.Typer(
    name="dataset",
    help="Build labelled sets from planted faults and proved errors.",
    no_args_is_help=True,
)


@group.callback()
def _group() -> None:
    pass


@group.command("build")
def build_set(
    out: Annotated[Path, typer.Option("--out", help="Folder of the set.", show_default=False)],
    licence: Annotated[str, typer.Option("--licence", help="Licence, for the card.")] = "",
    service: Annotated[str, typer.Option("--service", help="Only this service's runs.")] = "",
    project: Project = None,
    url: Url = None,
    data_dir: DataDir = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Write the runs of `mast-trace inject` and the errors that `mast-trace confirm` proved, with labels.

    The folder gets runs.jsonl, runs.parquet (with pyarrow) and card.md. `mast-trace import`, `judge fit --dataset`,
    `judge bench --data` and `train` read it. The runs hold texts of your agents: treat them as such.

    Example: `mast-trace dataset build --out my-failures --licence CC-BY-4.0`
    """
    with open_store(url, data_dir, config) as store:
        runs = build(store, out, project=project, service=service, licence=licence)
    counts = Counter((each.source, "failures" if each.failed else "survivors") for each in runs)
    if as_json:
        print_json(
            {
                "folder": str(out),
                "runs": len(runs),
                "failures": sum(each.failed for each in runs),
                "uncertain": sum(bool(each.uncertain) for each in runs),
                "parquet": has_parquet(),
            }
        )
        return
    told = ", ".join(
        f"{count} {what} by {source}" for (source, what), count in sorted(counts.items())
    )
    console().print(
        plain(
            f"Wrote {counted(len(runs), 'run')} to {out / RUNS} ({told or 'nothing labelled yet'}); {CARD} describes them."
        )
    )
    if unsure := sum(bool(each.uncertain) for each in runs):
        console().print(
            plain(
                f"{unsure} of them are marked as uncertain, by their operator; commands that read the set leave "
                "them out unless --uncertain is given."
            )
        )
    if not has_parquet():
        console().print(plain(f"Without {PARQUET}, which needs pyarrow: pip install pyarrow"))
