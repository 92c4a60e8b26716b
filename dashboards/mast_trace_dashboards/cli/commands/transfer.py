"""`mast-trace import` and `mast-trace export`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from enum import Enum
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn, track

from mast_trace.exceptions import ConfigurationError
from mast_trace.urls import masked
from mast_trace_dashboards.cli.commands.judge import judge_now
from mast_trace_dashboards.cli.open_store import EMBEDDED, open_store
from mast_trace_dashboards.cli.options import AsJson, ConfigFile, DataDir, Project, Since, Url
from mast_trace_dashboards.cli.output import console, draft_of, fail, plain, print_json, say
from mast_trace_dashboards.cli.render import runs_table
from mast_trace_dashboards.printable import counted, id_width
from mast_trace_dashboards.run_names import newest_runs, parse_time, resolve_run
from mast_trace_judge.study.labelled import set_at
from mast_trace_judge.transfer.exporting import count_runs, export_runs, write_jsonl, write_parquet
from mast_trace_judge.transfer.formats import FORMATS, format_named
from mast_trace_judge.transfer.importing import Importer, Taken, take_set
from mast_trace_judge.transfer.reading import NO_FILES, Piece, Refused, files_in, read_source
from mast_trace_judge.transfer.source import STDIN, Source, UnreadableFile, source_of

if TYPE_CHECKING:
    from mast_trace_collector.storage import Store
    from mast_trace_judge.transfer.formats.kinds import Format

_LISTED = 20
"""Refused lines of a file, and runs, that are listed one by one."""
_MOST_SEEN = 1000
"""Newest runs of the store among which the imported ones are sought for the list."""
_KEPT = 1000
"""Refused lines in the output for programs."""


def inputs_of(path: Path, held: ExitStack) -> list[Source | Refused]:
    """Return the files under a path; a pipe's copy is kept until ``held`` is closed."""
    try:
        # A pattern may be absolute, which `Path.glob` does not take.
        if not path.exists() and (matched := sorted(glob(str(path), recursive=True))):  # noqa: PTH207
            # A pattern for all depths matches a folder beside the files in it.
            files = [each for each in matched if "**" in str(path) and not Path(each).is_dir()]
            return [given for each in files or matched for given in inputs_of(Path(each), held)]
        if path == STDIN or not path.is_dir():
            return [held.enter_context(source_of(path))]
        found = files_in(path)
        if not found:
            return [Refused(str(path), None, NO_FILES)]
        return [held.enter_context(source_of(each)) for each in found]
    except UnreadableFile as error:
        return [Refused(str(path), None, str(error).removeprefix(f"{path}: "))]


def show_formats(*, as_json: bool) -> None:
    """Print the table of formats."""
    if as_json:
        rows = [{"name": f.name, "title": f.title, "recognised": f.recognised} for f in FORMATS]
        print_json(rows)
        return
    width = max(len(row.name) for row in FORMATS)
    for row in FORMATS:
        say(f"{row.name:{width}}  {row.title}: {row.recognised}", soft_wrap=True)


@dataclass
class ImportReport:
    """The results of the files, in their order.

    Attributes:
        taken: the content of each file, by format.
        refused: the first unreadable lines.
        refusals: number of all unreadable lines.
    """

    taken: list[tuple[str, list[Taken]]] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    refusals: int = 0
    _importer: Importer | None = None
    _erased: set[tuple[str, str]] = field(default_factory=set)
    _listed: int = 0
    _unlisted: int = 0
    _alike: int = 0
    _last: tuple[str, str] = ("", "")

    def check(self, given: Source | Refused, row: Format | None) -> None:
        """Read all files without storing them."""
        with _progress(given) as moved:
            for each in _read(given, row):
                moved()
                if isinstance(each, Refused):
                    self._refuse(each)
        self._end_of_file()

    def store(self, importer: Importer, inputs: list[Source | Refused], row: Format | None) -> None:
        """Read and store all files.

        Raises:
            StorageError: the database does not accept the spans.
        """
        self._importer = importer
        for given in inputs:
            by_title: dict[str, Taken] = {}
            with _progress(given) as moved:
                for each in _read(given, row):
                    moved()
                    if isinstance(each, Refused):
                        self._refuse(each)
                        continue
                    taken = by_title.setdefault(each.row.title, Taken(each.row.title))
                    self._take(importer, each, taken, given)
                importer.flush()
            for taken in by_title.values():
                importer.recount(taken)
            self._refuse_erased(importer, given)
            self._end_of_file()
            self.taken.append((_name_of(given), list(by_title.values())))

    def _take(
        self, importer: Importer, piece: Piece, taken: Taken, given: Source | Refused
    ) -> None:
        try:
            importer.take(piece, taken)
        except ValueError as error:
            self._refuse(Refused(_name_of(given), None, str(error)))

    def _refuse_erased(self, importer: Importer, given: Source | Refused) -> None:
        for key in importer.erased.keys() - self._erased:
            told = f"{importer.erased[key]}, and stays erased: it is not imported"
            self._refuse(Refused(_name_of(given), None, told))
        self._erased |= importer.erased.keys()

    def _refuse(self, refused: Refused) -> None:
        self.refusals += 1
        if len(self.refused) < _KEPT:
            self.refused.append(refused)
        if (refused.file, refused.problem) == self._last:
            self._alike += 1
            return
        self._tell_alike()
        self._last = refused.file, refused.problem
        if self._listed < _LISTED:
            self._listed += 1
            fail(str(refused))
        else:
            self._unlisted += 1

    def _tell_alike(self) -> None:
        """Count what has the same problem as the line before it, which is told once."""
        if self._unlisted:
            self._unlisted += self._alike
        elif self._alike:
            fail(f"... and {self._alike:,} more after it likewise")
        self._alike = 0

    def _end_of_file(self) -> None:
        self._tell_alike()
        if self._unlisted:
            fail(f"... and {self._unlisted:,} more that cannot be read")
        self._listed = self._unlisted = 0
        self._last = ("", "")

    def show(self) -> None:
        """Print a summary of the files and of the stored runs, for people."""
        for name, formats in self.taken:
            for taken in formats:
                line = f"read {name} as {taken.title}: {_counted(taken)}"
                if taken.equal:
                    line += f" ({taken.equal} equal to another run of the file)"
                if taken.verdicts:
                    line += f" ({taken.verdicts} verdicts left out: the runs are judged here)"
                say(line, soft_wrap=True)
        done = self._importer
        if done is None:
            say("Nothing is stored.")
            return
        line = (
            f"{counted(len(done.runs), 'run')} read, {counted(done.spans, 'new span')} "
            f"and {counted(done.labels, 'label')} stored."
        )
        if done.known_labels:
            were = "was" if done.known_labels == 1 else "were"
            line += f" {counted(done.known_labels, 'label')} {were} there already."
        if done.confirmations:
            line += f" {counted(done.confirmations, 'confirmation')} of replays taken over."
        say(line)

    def tell(
        self, rows: list[dict[str, Any]], judged: int | None, where: str, *, as_json: bool
    ) -> None:
        """Print the summary and the imported runs, for people or for programs.

        Args:
            rows: of the imported runs.
            judged: number of runs that were judged; None where others judge.
            where: options that name the store.
            as_json: for programs.
        """
        if as_json:
            print_json({**self.as_json(), "judged": judged})
        else:
            self.show()
            _show_runs(rows, judged, where)

    def as_json(self) -> dict[str, Any]:
        """Return the same summary for programs."""
        done = self._importer
        return {
            "runs": list(done.runs) if done else [],
            "spans": done.spans if done else 0,
            "labels": done.labels if done else 0,
            "known_labels": done.known_labels if done else 0,
            "confirmations": done.confirmations if done else 0,
            "files": [
                {
                    "file": name,
                    "format": taken.title,
                    "runs": len(taken.runs),
                    "spans" if taken.of_spans else "steps": taken.steps,
                    "tools": taken.tools,
                    "tokens": taken.tokens,
                    "texts": taken.texts,
                }
                for name, formats in self.taken
                for taken in formats
            ],
            "refused": [
                {"file": each.file, "line": each.line, "problem": each.problem}
                for each in self.refused
            ],
        }


def _read(given: Source | Refused, row: Format | None) -> Iterator[Piece | Refused]:
    if isinstance(given, Refused):
        yield given
    else:
        yield from read_source(given, row)


def _name_of(given: Source | Refused) -> str:
    return given.file if isinstance(given, Refused) else given.name


def _counted(taken: Taken) -> str:
    missing = [*(["tokens"] if taken.tokens is None else []), *([] if taken.texts else ["texts"])]
    return ", ".join(
        [
            counted(len(taken.runs), "run"),
            counted(taken.steps, "span" if taken.of_spans else "step"),
            *([counted(taken.tools, "tool call")] if taken.tools else []),
            *([f"{taken.tokens:,} tokens"] if taken.tokens is not None else []),
            *([f"no {' and no '.join(missing)} reported"] if missing and taken.runs else []),
        ]
    )


@contextmanager
def _progress(given: Source | Refused) -> Iterator[Callable[[], None]]:
    """Show progress in a file, on terminals, and return the function that moves the bar."""
    shown = console(stderr=True)
    if not isinstance(given, Source) or not shown.is_terminal:
        yield lambda: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=shown, transient=True) as bar:
        task = bar.add_task(plain(f"Reading {given.name}").plain, total=max(given.size, 1))
        yield lambda: bar.update(task, completed=given.position())


class ExportFormat(str, Enum):
    """The file format of an export."""

    jsonl = "jsonl"
    parquet = "parquet"


def import_files(
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FILE...", help="Files, folders or patterns; - is standard input."),
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
    """Store runs from files, judge and list them. Importing a file twice stores it once.

    It needs nothing before it: where there is no store yet, it makes one, as `mast-trace up` does.

    The format is recognised by the content: traces of OpenTelemetry, Jaeger, Phoenix, LangSmith and
    Langfuse, chats of OpenAI, Anthropic, LangChain and AutoGen, and files of `mast-trace export` (`--formats` lists all). Labels in a folder of `mast-trace dataset build` are
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
        judged, listed = None, list[dict[str, Any]]()
        if not report.refused:
            with open_store(url, data_dir, config, make=True) as store:
                importer = Importer(store)
                report.store(importer, inputs, row)
                judged, listed = _judged(store, importer, config)
    report.tell(
        listed, judged, f" --url {masked(url)}" if url else _folder(data_dir), as_json=as_json
    )
    if report.refused:
        raise typer.Exit(1)


def _judged(
    store: Store, importer: Importer, config: Path | None
) -> tuple[int | None, list[dict[str, Any]]]:
    """Judge what was imported, and return how many runs were judged, and the rows of the imported ones.

    None are judged where `mast-trace up` or a worker judges what comes.
    """
    if not importer.runs:
        return None, []
    judged = None
    if store.url.startswith(EMBEDDED):
        judged = judge_now(store, config) if importer.spans else 0
    rows = newest_runs(store, limit=_MOST_SEEN, idle=0.0)
    return judged, [row for row in rows if row["TraceId"] in importer.runs]


def _folder(data_dir: Path | None) -> str:
    return f" --data-dir {data_dir}" if data_dir else ""


def _show_runs(rows: list[dict[str, Any]], judged: int | None, where: str) -> None:
    """Print the imported runs, and what to type next."""
    if not rows:
        return
    if judged is not None:
        say(f"{counted(judged, 'run')} judged.")
    console().print()
    out = console()
    out.print(runs_table(rows[:_LISTED], out.width))
    if len(rows) > _LISTED:
        say(f"... and {len(rows) - _LISTED} more: mast-trace runs lists them.")
    first = next((row for row in rows if row["Modes"] or row["Outcome"] == "failure"), rows[0])
    run = first["TraceId"][: id_width(row["TraceId"] for row in rows)]
    say(f"\nNext: mast-trace show {run}{where}", soft_wrap=True)


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
            say(f"{told}.", soft_wrap=True)
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
        say(f"{counted(count, 'run')} written to {out}.")
