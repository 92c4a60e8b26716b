"""Stores runs that were read from files, and sets of `mast-trace dataset build`: planted faults and real failures, with labels."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from mast_trace import semconv
from mast_trace.exceptions import ConfigurationError
from mast_trace.trajectory import trajectory_from_dict, vocabulary
from mast_trace.trajectory.sources import EVENTS
from mast_trace_collector.storage.removal.tombstones import Key, Tombstone, tombstones_of
from mast_trace_collector.storage.runs import run_summary
from mast_trace_collector.storage.span_columns import attributes_text
from mast_trace_collector.storage.span_writer import SpanWriter
from mast_trace_judge.planted import PLANTED
from mast_trace_judge.proof import proved_step
from mast_trace_judge.store.confirmations import take_over
from mast_trace_judge.store.injections import Injection
from mast_trace_judge.store.injections import take_over as take_faults_over
from mast_trace_judge.store.labels import HumanLabel, save_labels, unstored
from mast_trace_judge.study.labelled import FORMAT, shapes_of
from mast_trace_judge.transfer.formats.kinds import StoredRun, Transcript
from mast_trace_judge.transfer.formats.own_export import EXPORT, confirmation_in
from mast_trace_judge.transfer.reading import Piece
from mast_trace_judge.transfer.spans import to_request, to_spans, trace_id_of, trace_id_of_run

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from pathlib import Path

    from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, Span

    from mast_trace_collector.storage import Store
    from mast_trace_judge.confirmation import Confirmation

_KNOWN = """
SELECT DISTINCT toString(Project) AS OfProject, TraceId, SpanId FROM otel_traces
WHERE TraceId IN {traces:Array(String)} AND SpanId IN {spans:Array(String)}
"""
_STORED = """
SELECT 1 FROM otel_traces WHERE TraceId = {trace:String} AND Project = {project:String} LIMIT 1
"""
_SPENT = """
SELECT sum(InputTokens + OutputTokens) AS Tokens FROM mast_runs WHERE TraceId IN {traces:Array(String)}
"""
_COUNTED = frozenset(
    name
    for spelt in ("operation", "tool", "model", "input_tokens", "output_tokens")
    for name in vocabulary.SPELLINGS[spelt]
) | {semconv.MCP_METHOD_NAME, *(name for _, names in vocabulary.MARKS for name in names)}
"""Attributes that tell the calls of tools and models, and their tokens."""
_TEXTS = (
    *(semconv.INPUT_MESSAGES, semconv.OUTPUT_MESSAGES, semconv.MESSAGE_CONTENT, EVENTS),
    *("gen_ai.input.", "gen_ai.output.", "gen_ai.prompt", "gen_ai.completion", "ai.prompt"),
    *("llm.input_messages", "llm.output_messages", "llm.prompts", "llm.completions"),
    *("gcp.vertex.agent.", *vocabulary.INPUTS, *vocabulary.SPELLINGS["result"]),
)
"""Beginnings of the names of attributes that hold texts."""
_BESIDE_TEXTS = (".role", ".finish_reason", ".tool_call_id")
_BATCH_SPANS = 5000
_BATCH_BYTES = 8 * 1024 * 1024


@dataclass
class Taken:
    """The content of a file in one format.

    Attributes:
        title: of the format.
        runs: ids of the runs, in their order.
        steps: number of steps, where the format has steps; of spans otherwise.
        of_spans: whether ``steps`` counts spans.
        equal: number of runs whose texts equal those of an earlier one of this file: they are one
            run.
        verdicts: number of verdicts in the file, which are not imported.
        tools: number of calls of tools.
        tokens: of calls of models; None where the file reports none.
        texts: whether any message, answer or result came with a text.
    """

    title: str
    runs: dict[str, None] = field(default_factory=dict)
    steps: int = 0
    of_spans: bool = False
    equal: int = 0
    verdicts: int = 0
    tools: int = 0
    tokens: int | None = None
    texts: bool = False

    def count(self, request: ExportTraceServiceRequest) -> None:
        """Count the calls of tools and the tokens of spans."""
        for span in _spans_of(request):
            told = attributes_text(each for each in span.attributes if each.key in _COUNTED)
            operation = vocabulary.operation(told)
            self.tools += operation == semconv.EXECUTE_TOOL
            # An agent's span may have the tokens of its calls once more.
            counted = ("input_tokens", "output_tokens") if operation == semconv.CHAT else ()
            for field_ in counted:
                found = vocabulary.integer(vocabulary.read(told, field_))
                if found is not None:
                    self.tokens = (self.tokens or 0) + found
            if not self.texts:
                self.texts = bool(span.events) or any(
                    each.key.startswith(_TEXTS) and not each.key.endswith(_BESIDE_TEXTS)
                    for each in span.attributes
                )


class Importer:
    """Stores runs and spans; those that the store has already are left unchanged.

    Attributes:
        runs: ids of all runs that were given, in their order.
        spans: the number of newly stored spans.
        labels: the number of newly stored labels.
        known_labels: the number of labels that the store had already.
        confirmations: the number of stored conclusions of replays; a run that has one keeps it.
        erased: runs that are refused because they were erased here.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._writer = SpanWriter(store)
        self._waiting: list[ExportTraceServiceRequest] = []
        self._waiting_spans = 0
        self._waiting_bytes = 0
        self._labels: list[HumanLabel] = []
        self._confirmations: dict[tuple[str, str], Confirmation] = {}
        self.runs: dict[str, None] = {}
        self.spans = 0
        self.labels = 0
        self.known_labels = 0
        self.confirmations = 0
        self.erased: dict[Key, Tombstone] = {}

    def take(self, piece: Piece, taken: Taken) -> None:
        """Store one run, or some spans, and count them.

        Raises:
            StorageError: the database does not accept them.
            ValueError: an exported run lacks an id.
        """
        read = piece.read
        if isinstance(read, Transcript):
            request = to_request(
                read.trajectory, name=read.name, start=time.time_ns(), model=read.model
            )
            identity = trace_id_of(read.trajectory)
            taken.equal += identity in taken.runs
            taken.steps += len(read.trajectory.steps)
        elif isinstance(read, StoredRun):
            identity = trace_id_of_run(read)
            request = self._unless_stored(read, identity)
            self._labels += [
                replace(label, trace_id=identity, project=read.project) for label in read.labels
            ]
            if read.confirmation is not None:
                self._confirmations[read.project, identity] = read.confirmation
            taken.steps += len(read.trajectory.steps)
            taken.texts = True
            taken.verdicts += read.has_verdict
            taken.runs[identity] = None
            self.runs[identity] = None
        else:
            request = read
            taken.of_spans = True
            taken.steps += sum(1 for _ in _spans_of(request))
        taken.count(request)
        ids = {span.trace_id.hex(): None for span in _spans_of(request)}
        taken.runs |= ids
        self.runs |= ids
        self._waiting.append(request)
        self._waiting_spans += sum(1 for _ in _spans_of(request))
        self._waiting_bytes += request.ByteSize()
        if self._waiting_spans >= _BATCH_SPANS or self._waiting_bytes >= _BATCH_BYTES:
            self.flush()

    def flush(self) -> None:
        """Store the remaining batch.

        Raises:
            StorageError: the database does not accept it.
        """
        whole = ExportTraceServiceRequest()
        for request in self._waiting:
            whole.resource_spans.extend(request.resource_spans)
        self._waiting, self._waiting_spans, self._waiting_bytes = [], 0, 0
        runs = {*_runs_of(whole), *self._confirmations}
        runs |= {(label.project, label.trace_id) for label in self._labels}
        self._refuse(tombstones_of(self._store, runs), runs)
        new = _without_known(self._store, whole, self.erased)
        if new.resource_spans:
            data = new.SerializeToString(deterministic=True)
            self.spans += self._writer.write([data], token=f"import-{time.time_ns()}")
        labels = unstored(self._store, self._labels)
        save_labels(self._store, labels)
        self.labels += len(labels)
        self.known_labels += len(self._labels) - len(labels)
        self._labels = []
        for (project, trace_id), confirmation in self._confirmations.items():
            run = run_summary(self._store, trace_id, project=project)
            if run is not None:
                self.confirmations += take_over(self._store, run, confirmation)
        self._confirmations = {}

    def recount(self, taken: Taken) -> None:
        """Count the tokens of a file's stored runs as lists show them: calls that two tools recorded count once.

        Raises:
            StorageError: the database does not answer.
        """
        if taken.tokens:
            runs = iter(taken.runs)
            counted = 0
            while some := [*islice(runs, _BATCH_SPANS)]:
                counted += self._store.query(_SPENT, {"traces": some})[0]["Tokens"]
            taken.tokens = counted or taken.tokens

    def _refuse(self, erased: Mapping[Key, Tombstone], given: Collection[Key]) -> None:
        """Leave out what is known about those of the given runs that were erased here."""
        self.erased |= erased
        self._labels = [
            label for label in self._labels if (label.project, label.trace_id) not in erased
        ]
        # Another project may have a run of the same id.
        living = {trace_id for _, trace_id in set(given) - erased.keys()}
        for key in erased:
            self._confirmations.pop(key, None)
            if key[1] not in living:
                self.runs.pop(key[1], None)

    def _unless_stored(self, run: StoredRun, identity: str) -> ExportTraceServiceRequest:
        """Return the spans of an exported run; none where the store has that run."""
        if self._store.query(_STORED, {"trace": identity, "project": run.project}):
            return ExportTraceServiceRequest()
        return to_spans(run)


def _spans_of(request: ExportTraceServiceRequest) -> Iterator[Span]:
    return (
        span
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    )


def _project_of(resource: ResourceSpans) -> str:
    """Return the project that the database will give to spans."""
    return attributes_text(resource.resource.attributes).get(semconv.PROJECT, "")


def _runs_of(request: ExportTraceServiceRequest) -> set[Key]:
    return {
        (_project_of(resource), span.trace_id.hex())
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    }


def _without_known(
    store: Store, request: ExportTraceServiceRequest, erased: Collection[Key]
) -> ExportTraceServiceRequest:
    """Return the request without spans that are stored already, are duplicates in it, or are of erased runs."""
    every = [(span.trace_id.hex(), span.span_id.hex()) for span in _spans_of(request)]
    ids = set(every)
    if not ids:
        return request
    asked = {"traces": sorted({each for each, _ in ids}), "spans": sorted({s for _, s in ids})}
    rows = store.query(_KNOWN, asked)
    known = {(row["OfProject"], row["TraceId"], row["SpanId"]) for row in rows}
    if not known and not erased and len(ids) == len(every):
        return request
    left = ExportTraceServiceRequest()
    for resource in request.resource_spans:
        to, project = None, _project_of(resource)
        for scope in resource.scope_spans:
            new = []
            for span in scope.spans:
                key = (project, span.trace_id.hex(), span.span_id.hex())
                if key not in known and key[:2] not in erased:
                    known.add(key)
                    new.append(span)
            if new:
                if to is None:
                    to = left.resource_spans.add(resource=resource.resource)
                to.scope_spans.add(scope=scope.scope, spans=new)
    return left


_INJECTION: Final = "injection"
_TAKEN: Final = "Replays have confirmed this step, as a labelled set says."


@dataclass(frozen=True)
class TakenSet:
    """The counts of what a set gave to a store.

    Attributes:
        faults: planted faults in the set.
        new_faults: those that the store did not have.
        failures: real failures whose decisive step replays had proved.
        new_labels: those whose proof the store did not have; a run that was replayed here keeps its own.
        without_label: those of a set that does not say what its replays have shown; they are runs without a label.
        erased: faults and failures of runs that were erased here, which are refused.
    """

    faults: int
    new_faults: int
    failures: int
    new_labels: int
    without_label: int
    erased: int = 0


def take_set(store: Store, folder: Path) -> TakenSet:
    """Store a set. Planted faults go where `mast-trace inject` puts them, and into no list of runs.

    Real failures become runs, and what replays have shown of them is kept with them, as `mast-trace confirm` keeps it.
    Nothing is stored if a row cannot be read.

    Raises:
        ConfigurationError: the folder holds no set of this version.
        StorageError: the database does not accept it.
    """
    counts = Counter(_kind(each) for each in _read(folder))
    importer, taken = Importer(store), Taken("labelled set")

    def planted() -> Iterator[tuple[Injection, datetime]]:
        for each in _read(folder):
            if isinstance(each, StoredRun):
                importer.take(Piece(EXPORT, each), taken)
            else:
                yield each, _end(each)

    new, refused = take_faults_over(store, planted())
    importer.flush()
    failures = counts["labelled"] + counts["bare"]
    return TakenSet(
        counts["fault"],
        new,
        failures,
        importer.confirmations,
        counts["bare"],
        refused + len(importer.erased),
    )


def _kind(read: Injection | StoredRun) -> str:
    if isinstance(read, Injection):
        return "fault"
    return "bare" if read.confirmation is None else "labelled"


def _read(folder: Path) -> Iterator[Injection | StoredRun]:
    for place, shape in shapes_of(folder):
        try:
            if shape["format"] != FORMAT:
                raise ConfigurationError(
                    f"{place} has format {shape['format']}; this version reads {FORMAT}"
                )
            yield _injection(shape) if shape["source"] == _INJECTION else _failure(shape)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ConfigurationError(f"{place} is no labelled run: {error}") from error


def _failure(shape: Mapping[str, Any]) -> StoredRun:
    """Return a real failure with what replays have shown of it."""
    run = trajectory_from_dict(shape["run"])
    told = shape.get("confirmation")
    if told is None and shape["decisive"]:  # a set of before has the proved step alone
        told = {
            "status": "confirmed",
            "text": _TAKEN,
            "origin": shape["step"],
            "point_of_no_return": shape.get("point_of_no_return"),
        }
    found = StoredRun(run, confirmation=confirmation_in({"confirmation": told}, run.steps))
    trace_id_of_run(found)
    if found.confirmation is not None and proved_step(found.confirmation) != shape["step"]:
        raise ValueError("its confirmation proves another step than its label names")
    return found


def _injection(shape: Mapping[str, Any]) -> Injection:
    run = trajectory_from_dict(shape["run"])
    kind, step = PLANTED.get(shape["operator"]), int(shape["step"])
    if not 0 <= step < len(run.steps):
        raise ValueError(f"the run has no step {step}")
    return Injection(
        project="",
        original=str(shape["group"]),
        fault_id=str(shape["id"]),
        operator=str(shape["operator"]),
        mode=str(shape["mode"]),
        level=kind.level if kind else "",
        step=step,
        # A fault of the environment names nobody; its step has an agent all the same.
        agent=str(shape["agent"]) or run.steps[step].agent,
        missed_by=tuple(map(str, shape["missed_by"])),
        verdict="kept" if shape["failed"] else "survived",
        decisive=bool(shape["decisive"]),
        e_value=float(shape["e_value"] or 0.0),
        success_after=shape["success_after"],
        point_of_no_return=_point(shape, len(run.steps)),
        service=str(shape["system"]),
        framework=str(shape["framework"]),
        run=run,
    )


def _point(shape: Mapping[str, Any], steps: int) -> int | None:
    """Return the point of no return; None if it is not known, or if the set is of a version that did not write it."""
    if (point := shape.get("point_of_no_return")) is None:
        return None
    if not 0 <= (step := int(point)) < steps:
        raise ValueError(f"the run has no step {step}")
    return step


def _end(injection: Injection) -> datetime:
    """Return the end of a faulty run; now, where its steps have no times."""
    steps = injection.run.steps if injection.run is not None else ()
    last = max((step.end for step in steps), default=0)
    return datetime.fromtimestamp(last / 1e9, timezone.utc) if last else datetime.now(timezone.utc)
