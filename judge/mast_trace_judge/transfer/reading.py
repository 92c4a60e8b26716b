"""Reads files of runs, whatever program wrote them."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from mast_trace.exceptions import MastTraceError
from mast_trace.untrusted_json import read_json
from mast_trace_collector.otlp.errors import RequestError
from mast_trace_collector.otlp.json_decoding import parse_json
from mast_trace_collector.otlp.signals import TRACES
from mast_trace_judge.store.labels import NO_MODES, HumanLabel
from mast_trace_judge.study.datasets.agentrx import read_agentrx
from mast_trace_judge.study.datasets.mast import from_trace, read_mast_v0
from mast_trace_judge.study.datasets.who_and_when import SUBSETS, from_history, read_who_and_when

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from mast_trace.trajectory import Trajectory
    from mast_trace_judge.study.datasets.labelled import LabelledRun

_NESTING = 64


class UnreadableFile(MastTraceError):
    """A file holds no runs that can be read; the text names the file and says why."""


@dataclass(frozen=True)
class Transcript:
    """A run of a file that is no OTLP.

    Attributes:
        name: of the run.
        labels: that came with it; their trace id is still empty.
    """

    trajectory: Trajectory
    name: str
    labels: tuple[HumanLabel, ...] = ()


Read = Transcript | ExportTraceServiceRequest
"""A transcript, or spans as they are."""


def read_path(path: Path) -> list[Read]:
    """Read a file, or a folder of one of the published data sets with its labels.

    Raises:
        UnreadableFile: it holds no runs.
    """
    try:
        found = _folder(path) if path.is_dir() else _file(path)
    except OSError as error:
        raise UnreadableFile(f"{error.filename or path}: {error.strerror or error}") from error
    except RequestError as error:
        raise UnreadableFile(f"{path}: {error}") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UnreadableFile(f"{path}: {type(error).__name__}: {error}") from error
    if not found:
        raise UnreadableFile(f"{path}: it holds no runs")
    return found


def _folder(path: Path) -> list[Read]:
    runs = [("Who&When", run) for subset in SUBSETS for run in read_who_and_when(path, subset)]
    if (path / "agentrx").is_dir():
        runs += [("AgentRx", run) for run in read_agentrx(path)]
    if (path / "mast-v0").is_dir():
        runs += [("MAST", run) for run in read_mast_v0(path)]
    return [_labelled(annotator, run) for annotator, run in runs]


def _labelled(annotator: str, run: LabelledRun) -> Transcript:
    known = run.step is not None and 0 <= run.step < len(run.trajectory.steps)
    outcome = {True: "success", False: "failure", None: run.trajectory.outcome}[run.success]
    said = HumanLabel(
        trace_id="",
        annotator=annotator,
        outcome=outcome,
        modes=_modes(run.modes),
        decisive_step=run.step if known else None,
        decisive_agent=run.agent,
    )
    others = (HumanLabel("", rater, modes=_modes(modes)) for rater, modes in run.raters.items())
    return Transcript(run.trajectory, f"{run.subset}/{run.name}", (said, *others))


def _modes(looked_at: Mapping[str, bool]) -> tuple[str, ...]:
    """Return the modes that somebody saw, who looked at so many; empty where nobody looked."""
    shown = tuple(sorted(code for code, shown in looked_at.items() if shown))
    return shown or (NO_MODES if looked_at else ())


def _file(path: Path) -> list[Read]:
    data = path.read_bytes()
    if data.lstrip()[:1] not in {b"{", b"["}:
        return [_protobuf(data)]
    try:
        return [_record(read_json(data), data, path)]
    except json.JSONDecodeError:
        # One record on each line, as the collector's file exporter writes them.
        lines = [line for line in data.splitlines() if line.strip()]
        if len(lines) < 2:
            raise
        return [_record(read_json(line), line, path) for line in lines]


def _protobuf(data: bytes) -> ExportTraceServiceRequest:
    try:
        request = ExportTraceServiceRequest.FromString(data)
    except DecodeError as error:
        raise ValueError(f"neither JSON nor an OTLP trace request: {error}") from error
    if not any(scope.spans for each in request.resource_spans for scope in each.scope_spans):
        raise ValueError("it holds no spans")
    return request


def _record(value: Any, data: bytes, path: Path) -> Read:
    if isinstance(value, list):
        return Transcript(_chat(value), path.stem)
    if "resourceSpans" in value or "resource_spans" in value:
        request: ExportTraceServiceRequest = parse_json(data, TRACES, _NESTING)
        return _protobuf(request.SerializeToString())
    if "history" in value:
        return _who_and_when(value, path.stem)
    if "trajectory" in value or "content" in value:
        return Transcript(_checked(from_trace(value, path.stem)), path.stem)
    raise ValueError(
        "neither OTLP, Who&When (history), MAST (trajectory) nor a list of role, name and content"
    )


def _who_and_when(record: dict[str, Any], name: str) -> Transcript:
    trajectory = from_history(
        record["history"], trace_id=name, task=str(record.get("question") or "")
    )
    step = int(record["mistake_step"]) if "mistake_step" in record else None
    if step is not None and not 0 <= step < len(trajectory.steps):
        raise ValueError(f"mistake_step {step} is no step of its {len(trajectory.steps)}")
    agent = str(record.get("mistake_agent") or "")
    said = HumanLabel("", "Who&When", trajectory.outcome, (), step, agent)
    return Transcript(_checked(trajectory), name, () if step is None else (said,))


def _chat(entries: Sequence[Any]) -> Trajectory:
    for number, entry in enumerate(entries):
        if not isinstance(entry, dict) or not isinstance(entry.get("content"), str):
            raise TypeError(f"entry {number} is no object with a text as its content")
        if not (entry.get("role") or entry.get("name")):
            raise ValueError(f"entry {number} has neither role nor name")
    read = from_history(entries, trace_id="", task=next(_tasks(entries), ""))
    steps = tuple(
        dataclasses.replace(step, role=str(entry.get("role") or step.role))
        for step, entry in zip(read.steps, entries, strict=True)
    )
    # A plain transcript does not say how it ended.
    return _checked(dataclasses.replace(read, steps=steps, outcome=""))


def _tasks(entries: Sequence[dict[str, Any]]) -> Iterator[str]:
    return (entry["content"] for entry in entries if entry.get("role") == "user")


def _checked(trajectory: Trajectory) -> Trajectory:
    if not trajectory.steps:
        raise ValueError("it holds no messages")
    return trajectory
