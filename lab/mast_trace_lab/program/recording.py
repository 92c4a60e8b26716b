"""Records a program into a store: a collector on a free port, and the program with its address."""

from __future__ import annotations

import asyncio
import os
import tempfile
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mast_trace.exceptions import MastTraceError
from mast_trace_collector.collector import Collector
from mast_trace_collector.config import CollectorConfig
from mast_trace_lab.program.process import run_command

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mast_trace_collector.storage import Store

RECORDED_FOR: Final = "mast.recorded_for"
"""Attribute of the resource with the label of a recording."""
_ENDING_SECONDS: Final = 30.0
_FIND: Final = """
SELECT DISTINCT TraceId FROM otel_traces
WHERE ResourceAttributes[{key:String}] = {label:String}
"""
_FINISHED: Final = """
SELECT Project, TraceId, Outcome FROM mast_runs
WHERE TraceId IN {traces:Array(String)} AND Kind = '' ORDER BY Start, TraceId
"""


@dataclass(frozen=True)
class RecordedRun:
    """A run that a program has recorded.

    Attributes:
        project: of the run.
        trace_id: its id.
        outcome: ``success``, ``failure`` or empty.
    """

    project: str
    trace_id: str
    outcome: str


class NotRecorded(MastTraceError):
    """The program has recorded no run; the text says what it did."""


@contextmanager
def receiving(store: Store) -> Iterator[str]:
    """Receive OTLP into a store while a block runs; yield the address. Everything is stored at the end.

    Raises:
        MastTraceError: the collector cannot start.
    """
    with tempfile.TemporaryDirectory(prefix="mast-trace-recording-") as folder:
        config = CollectorConfig.load(
            data_dir=Path(folder),
            host="127.0.0.1",
            http_port=0,
            grpc_enabled=False,
            keys_file=None,
        )
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever, name="mast-trace-recording", daemon=True)
        thread.start()
        try:
            collector = Collector(config, store)
            asyncio.run_coroutine_threadsafe(collector.start(), loop).result(_ENDING_SECONDS)
            try:
                yield collector.http_address
            finally:
                asyncio.run_coroutine_threadsafe(collector.stop(), loop).result(_ENDING_SECONDS)
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()


def record(
    store: Store,
    command: Sequence[str],
    *,
    label: str,
    timeout: float,
    environment: Mapping[str, str] | None = None,
) -> list[RecordedRun]:
    """Run a program once, for real, and store what it records as usual runs of its service.

    Args:
        store: the database.
        command: the program, which calls `mast_trace.instrument()`, and its arguments.
        label: by which `recorded` finds the runs again.
        timeout: seconds after which the program and its child processes are killed.
        environment: variables that it gets besides those of this process.

    Raises:
        NotRecorded: it has recorded no run, or was killed.
        OSError: the command cannot be started.
        StorageError: the database does not answer.
    """
    before = {each.trace_id for each in recorded(store, label)}
    given = {**os.environ, **(environment or {})}
    attributes = ",".join(
        filter(None, (given.get("OTEL_RESOURCE_ATTRIBUTES", ""), f"{RECORDED_FOR}={label}"))
    )
    with receiving(store) as address:
        given |= {
            "OTEL_EXPORTER_OTLP_ENDPOINT": address,
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": f"{address}/v1/traces",
            "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
            "OTEL_RESOURCE_ATTRIBUTES": attributes,
        }
        done = run_command(command, environment=given, timeout=timeout, errors_alone=True)
    if done.exit_status is None:
        raise NotRecorded(f"the program did not end within {timeout:g} s")
    new = [each for each in recorded(store, label) if each.trace_id not in before]
    if not new:
        said = done.printed.strip()[-500:]
        raise NotRecorded(
            f"the program ended with {done.exit_status} and recorded no run; it must call "
            f"mast_trace.instrument(){': ' + said if said else ''}"
        )
    return new


def recorded(store: Store, label: str) -> list[RecordedRun]:
    """Return the runs that were recorded with a label, the oldest first.

    Raises:
        StorageError: the database does not answer.
    """
    traces = [row["TraceId"] for row in store.query(_FIND, {"key": RECORDED_FOR, "label": label})]
    rows = store.query(_FINISHED, {"traces": traces}) if traces else []
    return [RecordedRun(row["Project"], row["TraceId"], row["Outcome"]) for row in rows]
