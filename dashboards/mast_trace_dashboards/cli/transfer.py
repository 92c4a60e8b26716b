"""`mast-trace import` and `mast-trace export`."""

from __future__ import annotations

import dataclasses
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import track

from mast_trace.exceptions import ConfigurationError
from mast_trace_dashboards.cli.arguments import parse_time
from mast_trace_dashboards.cli.drafts import draft_of
from mast_trace_dashboards.cli.open_store import open_store
from mast_trace_dashboards.cli.options import AsJson, ConfigFile, DataDir, Project, Since, Url
from mast_trace_dashboards.cli.output import console, plain, print_json
from mast_trace_judge.transfer.exporting import (
    count_runs,
    export_runs,
    write_jsonl,
    write_parquet,
)
from mast_trace_judge.transfer.importing import import_runs
from mast_trace_judge.transfer.reading import read_path


class ExportFormat(str, Enum):
    """The file format of an export."""

    jsonl = "jsonl"
    parquet = "parquet"


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("import")(import_files)
    app.command("export")(export)


def import_files(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Files or folders.")],
    url: Url = None,
    data_dir: DataDir = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Store runs from files, to be judged like others. Imported twice, nothing is doubled.

    Reads OTLP as JSON (also a request on each line) or protobuf, files of Who&When, traces of MAST,
    chat transcripts (a JSON list of role, name and content), and folders of Who&When, AgentRx and
    MAST with their labels. If one file cannot be read, nothing is stored.

    Example: `mast-trace import chat.json traces.otlp.json`
    """
    shown = console(stderr=True)
    listed = track(files, "Reading", console=shown, transient=True, disable=not shown.is_terminal)
    found = [each for path in listed for each in read_path(path)]
    with open_store(url, data_dir, config) as store:
        bar = track(found, "Storing", console=shown, transient=True, disable=not shown.is_terminal)
        done = import_runs(store, bar)
    if as_json:
        print_json(dataclasses.asdict(done))
        return
    said = f"{len(done.runs)} runs read, {done.spans} new spans and {done.labels} labels stored."
    console().print(plain(said))


def export(
    out: Annotated[Path, typer.Option("--out", help="File to write.")],
    kind: Annotated[
        ExportFormat, typer.Option("--format", help="JSON lines or Parquet.")
    ] = ExportFormat.jsonl,
    since: Since = None,
    project: Project = None,
    url: Url = None,
    data_dir: DataDir = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Write runs to a file: trajectory, newest verdict and labels, one run in each line or row.

    In Parquet, trajectory, verdict and labels are JSON texts, and a very long run takes several
    rows, numbered by `part`. An earlier file of this name is
    replaced when the new one is complete.

    Example: `mast-trace export --format parquet --out runs.parquet --since 7d`
    """
    begin = parse_time(since) if since else None
    write = write_parquet if kind is ExportFormat.parquet else write_jsonl
    shown = console(stderr=True)
    try:
        with open_store(url, data_dir, config) as store, draft_of(out) as draft:
            total = count_runs(store, since=begin, project=project)
            runs = track(
                export_runs(store, since=begin, project=project),
                "Exporting",
                total=total,
                console=shown,
                transient=True,
                disable=not shown.is_terminal,
            )
            count = write(draft, runs)
    except OSError as error:
        raise ConfigurationError(f"cannot write {out}: {error.strerror or error}") from error
    if as_json:
        print_json({"file": str(out), "runs": count})
    else:
        console().print(plain(f"{count} runs written to {out}."))
