"""Exports runs with their verdict and labels, a few at a time, as JSON lines or Parquet; a run of any length, part by part."""

from __future__ import annotations

import dataclasses
import json
from datetime import datetime, timezone
from tempfile import SpooledTemporaryFile
from typing import TYPE_CHECKING, Any

from mast_trace.exceptions import ConfigurationError, StorageError
from mast_trace.trajectory import SpanRecord, Step, Trajectory, to_dict
from mast_trace_collector.storage.moments import nanoseconds
from mast_trace_collector.storage.run_spans import RunSpans
from mast_trace_collector.storage.runs import RunSummary, spans_of, summary_of
from mast_trace_judge.batch import chunks_of, trajectory_of
from mast_trace_judge.local.long_runs import MOST_SPANS, outline_of
from mast_trace_judge.proof import as_shown
from mast_trace_judge.store.confirmations import confirmations_of, outdated
from mast_trace_judge.store.labels import label_of
from mast_trace_judge.store.records import utc, verdict_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from mast_trace.messages import Message
    from mast_trace.trajectory.outline import Fetch, Outline
    from mast_trace_collector.storage.store import Store
    from mast_trace_judge.confirmation import Confirmation
    from mast_trace_judge.verdict import Verdict


class LongRun:
    """A run whose steps, turns and texts are read on demand, each once.

    Attributes:
        head: the run without these.
        outline: of the run.
    """

    def __init__(self, spans: RunSpans, *, outcome: str = "", outcome_reason: str = "") -> None:
        """Outline the run.

        Args:
            spans: of the run.
            outcome: overrides the run's own.
            outcome_reason: likewise.

        Raises:
            StorageError: the database does not answer.
        """
        self._spans = spans
        self.outline: Outline = outline_of(spans)
        self.head: Trajectory = self.outline.run
        if outcome:
            self.head = dataclasses.replace(
                self.head, outcome=outcome, outcome_reason=outcome_reason
            )

    def json(self) -> Iterator[str]:
        """Yield the text of the trajectory, as `json.dumps` writes the result of `to_dict`.

        Each page of the run is read once: turns and texts wait in temporary files for the end of the steps.

        Raises:
            StorageError: the database does not answer.
        """
        head = to_dict(self.head)
        yield f'{{"trace_id": {_text(head.pop("trace_id"))}, "steps": ['
        for part in _LISTED:
            head.pop(part, None)
        with _aside() as invocations, _aside() as texts:
            between = dict.fromkeys(_LISTED, "")
            for page in self._pages():
                joined = {part: ", ".join(found) for part, found in page.items() if found}
                told = {part: between[part] + text for part, text in joined.items()}
                between |= dict.fromkeys(told, ", ")
                yield told.get("steps", "")
                invocations.write(told.get("invocations", ""))
                texts.write(told.get("texts", ""))
            yield '], "invocations": ['
            yield from _read_back(invocations)
            yield '], "texts": {'
            yield from _read_back(texts)
        yield "}"
        for name, value in head.items():
            yield f", {_text(name)}: {_text(value)}"
        yield "}"

    def parts(self, most: int) -> Iterator[str]:
        """Yield the trajectory as several, each the text of one that `trajectory_from_dict` reads.

        The first has the fields of the run; their steps, turns and texts, joined in order, are the
        run's.

        Args:
            most: approximate characters of each.

        Raises:
            StorageError: the database does not answer.
        """
        head = _text(to_dict(dataclasses.replace(self.head, steps=(), invocations=(), texts={})))
        listed: dict[str, list[str]] = {part: [] for part in _LISTED}
        size, begun = 0, False
        for page in self._pages():
            for part, told in ((part, told) for part, found in page.items() for told in found):
                listed[part].append(told)
                size += len(told)
                if size >= most:
                    yield _joined(head, listed)
                    head, size, begun = _text({"trace_id": self.head.trace_id}), 0, True
                    listed = {part: [] for part in _LISTED}
        if size or not begun:
            yield _joined(head, listed)

    def _pages(self) -> Iterator[dict[str, list[str]]]:
        """Yield the steps, turns and new texts of each page as JSON; those of the steps are in order."""
        seen: set[str] = set()
        for page, fetch, steps in _read(self._spans, self.outline):
            by_start = sorted(page, key=lambda span: (span.start, -span.end, span.span_id))
            messages: dict[str, Message] = {}
            for identity, message in self.outline.texts(page):
                if identity not in seen:
                    seen.add(identity)
                    messages[identity] = message
            yield {
                "steps": [_text(to_dict(step)) for step in steps],
                "invocations": [
                    _text(to_dict(each)) for each in self.outline.invocations(by_start, fetch)
                ],
                "texts": [
                    f"{_text(identity)}: {_text(to_dict(message))}"
                    for identity, message in messages.items()
                ],
            }


def steps_of(spans: RunSpans, outline: Outline) -> Iterator[Step]:
    """Yield all steps of a run in order, with their whole texts; each page of it is read once.

    Raises:
        StorageError: the database does not answer.
    """
    for _, _, steps in _read(spans, outline):
        yield from steps


def _read(
    spans: RunSpans, outline: Outline
) -> Iterator[tuple[Sequence[SpanRecord], Fetch, list[Step]]]:
    """Yield each page of a run, a reader for which it is there already, and the next steps in order."""
    numbers = {span_id: number for number, span_id in enumerate(outline.span_ids)}
    # Spans that begin together may come in another order than their steps have.
    early: dict[int, Step] = {}
    following = 0
    for page in spans.read():
        here = {span.span_id: span for span in page}
        fetch = _reader(spans, here)
        found = [numbers[span_id] for span_id in here if span_id in numbers]
        early |= {step.index: step for step in outline.steps(found, fetch)}
        steps = []
        while following in early:
            steps.append(early.pop(following))
            following += 1
        yield page, fetch, steps


def _reader(spans: RunSpans, here: dict[str, SpanRecord]) -> Fetch:
    """Return a reader of spans, some of which are passed here."""

    def fetch(span_ids: Sequence[str], between: tuple[int, int] | None) -> Iterator[SpanRecord]:
        yield from (here[span_id] for span_id in span_ids if span_id in here)
        missing = [span_id for span_id in span_ids if span_id not in here]
        if missing:
            yield from spans.of(missing, between)

    return fetch


def run_as_json(
    spans: RunSpans, verdict: Verdict | None, *, outcome: str = "", outcome_reason: str = ""
) -> Iterator[str]:
    """Yield the text of a run and its verdict.

    Args:
        spans: of the run.
        verdict: on it; None if there is none.
        outcome: overrides the run's own, as in `LongRun`.
        outcome_reason: likewise.

    Raises:
        StorageError: the database does not answer.
    """
    yield '{"trajectory": '
    yield from LongRun(spans, outcome=outcome, outcome_reason=outcome_reason).json()
    yield f', "verdict": {_text(verdict.to_json() if verdict else None)}}}'


_text = json.JSONEncoder(ensure_ascii=False).encode
"""One encoder for all: `json.dumps` makes one a call, and a long run has half a million."""
_LISTED = ("steps", "invocations", "texts")
"""The parts of a trajectory that are read page by page."""
_CHARACTERS = 1024 * 1024


def _aside() -> SpooledTemporaryFile[str]:
    return SpooledTemporaryFile(_PART, "w+", encoding="utf-8", errors="surrogatepass", newline="")


def _read_back(file: SpooledTemporaryFile[str]) -> Iterator[str]:
    file.seek(0)
    while some := file.read(_CHARACTERS):
        yield some


def _joined(head: str, listed: Mapping[str, Sequence[str]]) -> str:
    """Return the JSON of some fields, and of lists and texts behind them."""
    steps, invocations, texts = (", ".join(listed[part]) for part in _LISTED)
    return (
        f'{head[:-1]}, "steps": [{steps}], "invocations": [{invocations}], "texts": {{{texts}}}}}'
    )


_PAGE = 500
_KEYS = """
SELECT DISTINCT Project, TraceId, hex(Project) AS ProjectHex, hex(TraceId) AS TraceHex FROM mast_run_states
WHERE ({project:Nullable(String)} IS NULL OR Project = {project:Nullable(String)})
  AND ({run:Nullable(String)} IS NULL OR TraceId = {run:Nullable(String)})
  AND (Project > unhex({after_project:String})
    OR (Project = unhex({after_project:String}) AND TraceId > unhex({after:String})))
ORDER BY Project, TraceId
LIMIT {page:UInt64}
"""
"""A page of runs in storage order: no page scans all runs. It begins after bytes, for names may be no UTF-8."""
_WHOLE = "(Project, TraceId) GLOBAL NOT IN (SELECT Project, TraceId FROM mast_left_out)"
"""A condition: retention has not left the spans of the run out."""
_RUNS = """
SELECT * FROM mast_runs
WHERE Project IN {projects:Array(String)} AND TraceId IN {traces:Array(String)}
  AND End >= fromUnixTimestamp64Nano({since:Int64}) AND {whole}
ORDER BY Project, TraceId
""".replace("{whole}", _WHOLE)
_COUNT = """
SELECT count() AS Runs FROM mast_runs
WHERE End >= fromUnixTimestamp64Nano({since:Int64})
  AND ({project:Nullable(String)} IS NULL OR Project = {project:Nullable(String)})
  AND ({run:Nullable(String)} IS NULL OR TraceId = {run:Nullable(String)}) AND {whole}
""".replace("{whole}", _WHOLE)
_VERDICTS = "SELECT * FROM mast_latest_verdicts WHERE TraceId IN {traces:Array(String)}"
_LABELS = """
SELECT * FROM mast_human_labels FINAL WHERE TraceId IN {traces:Array(String)}
ORDER BY TraceId, Annotator
"""
COLUMNS = (
    "project",
    "trace_id",
    "name",
    "service",
    "framework",
    "start",
    "end",
    "outcome",
    "trajectory",
    "verdict",
    "labels",
)
"""The columns of each run; in Parquet the last three are JSON texts."""
PART = "part"
"""Number of a row among those of its run, in Parquet: 0, except for runs that are too long for one
row. Each row then holds a part of the trajectory; their steps, turns and texts together are the
run's.
"""
_NESTED = ("trajectory", "verdict", "labels")
_PART = 4 * 1024 * 1024
"""Characters of JSON after which a long run continues in another row."""
_ROW_GROUP = 8 * 1024 * 1024
"""Characters of JSON after which rows are written out."""


def count_runs(
    store: Store,
    *,
    since: datetime | None = None,
    project: str | None = None,
    run: str | None = None,
) -> int:
    """Return the number of runs that `export_runs` would yield."""
    given = {"since": _nanoseconds(since), "project": project, "run": run}
    (row,) = store.query(_COUNT, given)
    return int(row["Runs"])


def export_runs(
    store: Store,
    *,
    since: datetime | None = None,
    project: str | None = None,
    run: str | None = None,
) -> Iterator[dict[str, Any]]:
    """Yield runs with trajectory, newest verdict and labels; few are in memory at a time.

    Runs whose spans retention has left out are not among them.

    The trajectory of a run that is too long to be held is a `LongRun`, which is read while it is
    written: before the next run is asked for.

    Args:
        store: where they are.
        since: leaves out runs that ended before.
        project: leaves out the runs of others.
        run: leaves out all other runs.

    Raises:
        StorageError: the database does not answer.
    """
    after = ("", "")
    while found := _keys(store, project, run, after):
        after = found[-1]["ProjectHex"], found[-1]["TraceHex"]
        keys = [(row["Project"], row["TraceId"]) for row in found]
        known = set(keys)
        page = {"projects": sorted({each for each, _ in keys}), "traces": [t for _, t in keys]}
        rows = store.query(_RUNS, {**page, "since": _nanoseconds(since)})
        runs = [summary_of(row) for row in rows if (row["Project"], row["TraceId"]) in known]
        for chunk in chunks_of(runs):
            yield from _chunk(store, chunk)


def _keys(
    store: Store, project: str | None, run: str | None, after: tuple[str, str]
) -> list[dict[str, Any]]:
    filters = {"project": project, "run": run}
    given = {**filters, "page": _PAGE, "after_project": after[0], "after": after[1]}
    return store.query(_KEYS, given)


def _chunk(store: Store, runs: Sequence[RunSummary]) -> Iterator[dict[str, Any]]:
    spans = _spans(store, runs)
    traces = {"traces": [run.trace_id for run in runs]}
    verdicts = {(row["Project"], row["TraceId"]): row for row in store.query(_VERDICTS, traces)}
    labels: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in store.query(_LABELS, traces):
        labels.setdefault((row["Project"], row["TraceId"]), []).append(
            dataclasses.asdict(label_of(row))
        )
    confirmations = confirmations_of(store, [(run.project, run.trace_id) for run in runs])
    for run in runs:
        key = (run.project, run.trace_id)
        if spans is not None and key not in spans:
            continue  # Its day was dropped, and its state, which is written later, was not.
        yield {
            "project": run.project,
            "trace_id": run.trace_id,
            "name": run.name,
            "service": run.service,
            "framework": run.framework,
            "start": _utc(run.start),
            "end": _utc(run.end),
            "outcome": run.outcome,
            "trajectory": _trajectory(store, run, None if spans is None else spans.pop(key, ())),
            "verdict": _verdict(verdicts.get(key), confirmations.get(key)),
            "labels": labels.get(key, []),
        }


def _verdict(
    row: Mapping[str, Any] | None, confirmed: tuple[Confirmation, str] | None
) -> dict[str, Any] | None:
    """Return a verdict as it is shown, with what replays have shown of this state of the run."""
    if row is None:
        return None
    verdict = verdict_of(row)
    confirmation, fingerprint = confirmed or (None, "")
    if confirmation is not None and fingerprint != verdict.fingerprint:
        confirmation = outdated(confirmation)
    return as_shown(verdict, confirmation).to_json()


def _spans(
    store: Store, runs: Sequence[RunSummary]
) -> dict[tuple[str, str], list[SpanRecord]] | None:
    """Return the spans of runs; None if they exceed the limit of memory."""
    if any(run.spans > MOST_SPANS for run in runs):
        return None
    try:
        return spans_of(
            store, [run.trace_id for run in runs], [(run.start, run.end) for run in runs]
        )
    except StorageError:
        store.query("SELECT 1")  # raises where the failure is not about these runs
        return None


def _trajectory(
    store: Store, run: RunSummary, spans: Sequence[SpanRecord] | None
) -> dict[str, Any] | LongRun:
    if spans is not None:
        return to_dict(trajectory_of(run, spans))
    pages = RunSpans(store, run.trace_id, project=run.project)
    return LongRun(pages, outcome=run.outcome, outcome_reason=run.outcome_reason)


def write_jsonl(path: Path, runs: Iterable[dict[str, Any]]) -> int:
    """Write each run on a line of its own, of any length; return their number."""
    count = 0
    with path.open("w", encoding="utf-8") as file:
        for run in runs:
            for number, (name, value) in enumerate(run.items()):
                file.write(f"{', ' if number else '{'}{json.dumps(name)}: ")
                if isinstance(value, LongRun):
                    file.writelines(value.json())
                else:
                    file.write(json.dumps(value, ensure_ascii=False))
            file.write("}\n")
            count += 1
    return count


def write_parquet(path: Path, runs: Iterable[dict[str, Any]]) -> int:
    """Write a Parquet file with one row for each run, several for a long one; return their number.

    Raises:
        ConfigurationError: pyarrow is missing.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise ConfigurationError("Parquet needs pyarrow: pip install pyarrow") from error
    columns = [(name, pa.string()) for name in COLUMNS]
    schema = pa.schema([*columns, (PART, pa.int32())])
    count = size = 0
    rows: list[dict[str, Any]] = []
    with pq.ParquetWriter(path, schema) as writer:
        for run in runs:
            count += 1
            for row in _rows(run):
                rows.append(row)
                size += sum(len(row[name]) for name in _NESTED)
                if size >= _ROW_GROUP:
                    writer.write_table(pa.Table.from_pylist(rows, schema))
                    rows, size = [], 0
        if rows:
            writer.write_table(pa.Table.from_pylist(rows, schema))
    return count


def _rows(run: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the rows of a run; verdict and labels are in the first one."""
    texts = {
        name: json.dumps(run[name], ensure_ascii=False) for name in _NESTED if name != "trajectory"
    }
    given = run["trajectory"]
    parts = (
        given.parts(_PART)
        if isinstance(given, LongRun)
        else [json.dumps(given, ensure_ascii=False)]
    )
    for number, part in enumerate(parts):
        yield {**run, **texts, "trajectory": part, PART: number}
        texts = {"verdict": "null", "labels": "[]"}


def _utc(moment: datetime) -> str:
    return utc(moment).astimezone(timezone.utc).isoformat()


def _nanoseconds(since: datetime | None) -> int:
    return 0 if since is None else nanoseconds(since)
