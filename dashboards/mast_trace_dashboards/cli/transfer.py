"""`mast-trace import` and `mast-trace export`."""

from __future__ import annotations

from contextlib import ExitStack
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import track

from mast_trace.exceptions import ConfigurationError
from mast_trace_dashboards.cli.drafts import draft_of
from mast_trace_dashboards.cli.import_report import ImportReport, inputs_of, show_formats
from mast_trace_dashboards.cli.open_store import open_store
from mast_trace_dashboards.cli.options import AsJson, ConfigFile, DataDir, Project, Since, Url
from mast_trace_dashboards.cli.output import console, plain, print_json
from mast_trace_dashboards.run_names import parse_time, resolve_run
from mast_trace_judge.study.datasets.injected import set_at
from mast_trace_judge.transfer.exporting import (
    count_runs,
    export_runs,
    write_jsonl,
    write_parquet,
)
from mast_trace_judge.transfer.formats import format_named
from mast_trace_judge.transfer.importing import Importer
from mast_trace_judge.transfer.labelled_sets import take_set


class ExportFormat(str, Enum):
    """The file format of an export."""

    jsonl = "jsonl"
    parquet = "parquet"


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("import")(import_files)
    app.command("export")(export)


def import_files(
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FILE...", help="Files or folders; - is standard input."),
    ] = None,
    kind: Annotated[
        str,
        typer.Option(
            "--format", metavar="NAME", help="Format of the files, if it is not recognised."
        ),
    ] = "",
    list_formats: Annotated[
        bool, typer.Option("--formats", help="List the formats, and how each is recognised.")
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Store nothing if any line is unreadable.")
    ] = False,
    url: Url = None,
    data_dir: DataDir = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Store runs from files, to be judged like others. Importing a file twice stores it once.

    The format is recognised by the content: traces of OpenTelemetry, Jaeger, Phoenix, LangSmith and
    Langfuse, chats of OpenAI, Anthropic, LangChain and AutoGen, published sets, and files of
    `mast-trace export` (`--formats` lists all). Labels in a folder of `mast-trace dataset build` are
    kept; its planted faults are in no list of runs. Files may be compressed (gzip, Zstandard).
    Unreadable lines are listed, the others are stored, and the exit status is 1.

    Examples: `mast-trace import chat.json runs.jsonl.gz` ·
    `mast-trace import --format chat --strict dump.txt` · `curl ... | mast-trace import -`
    """
    if list_formats:
        show_formats(as_json=as_json)
        return
    if not files:
        raise ConfigurationError("name a file or a folder, or - for standard input")
    row = format_named(kind) if kind else None
    files = _without_sets(files, url, data_dir, config, as_json=as_json)
    if not files:
        return
    with ExitStack() as held:
        inputs = [each for path in files for each in inputs_of(path, held)]
        report = ImportReport()
        if strict:
            for each in inputs:
                report.check(each, row)
        if not report.refused:
            with open_store(url, data_dir, config) as store:
                report.store(Importer(store), inputs, row)
    if as_json:
        print_json(report.as_json())
    else:
        report.show()
    if report.refused:
        raise typer.Exit(1)


def _without_sets(
    files: list[Path],
    url: str | None,
    data_dir: Path | None,
    config: Path | None,
    *,
    as_json: bool,
) -> list[Path]:
    """Store the labelled sets among files, say what of them, and return the other files.

    Raises:
        ConfigurationError: a set cannot be read, or there are both, and one JSON document is wanted.
    """
    folders = [folder for path in files if (folder := set_at(path)) is not None]
    if not folders:
        return files
    if as_json and len(files) > 1:
        raise ConfigurationError("with --json, import a labelled set alone")
    with open_store(url, data_dir, config) as store:
        for folder in dict.fromkeys(folders):
            taken = take_set(store, folder)
            if as_json:
                print_json({"file": str(folder), "format": "labelled set", **vars(taken)})
                continue
            told = f"read {folder} as labelled set: {taken.faults} planted faults, {taken.new_faults} new"
            if taken.failures:
                told += f"; {taken.failures} real failures, as runs, {taken.new_labels} new labels"
            if taken.without_label:
                told += (
                    f"; {taken.without_label} of them without a label, because the set does not have what replays have "
                    f"shown: `judge fit --dataset {folder}` reads it"
                )
            if taken.erased:
                told += f"; {taken.erased} not taken: their runs were erased here"
            console().print(plain(f"{told}."), soft_wrap=True)
    return [path for path in files if set_at(path) is None]


def export(
    out: Annotated[Path, typer.Option("--out", help="File to write.")],
    kind: Annotated[
        ExportFormat, typer.Option("--format", help="JSON lines or Parquet.")
    ] = ExportFormat.jsonl,
    run: Annotated[
        str | None,
        typer.Option(
            "--run", help="Only this run: its id, its beginning, or `last`.", show_default=False
        ),
    ] = None,
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

    Examples: `mast-trace export --format parquet --out runs.parquet --since 7d` ·
    `mast-trace export --run last --out tests/runs/refund.jsonl`
    """
    begin = parse_time(since) if since else None
    write = write_parquet if kind is ExportFormat.parquet else write_jsonl
    shown = console(stderr=True)
    try:
        with open_store(url, data_dir, config) as store, draft_of(out) as draft:
            only = resolve_run(store, run, project) if run else None
            total = count_runs(store, since=begin, project=project, run=only)
            runs = track(
                export_runs(store, since=begin, project=project, run=only),
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
