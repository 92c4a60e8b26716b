"""Measures the memory and speed of an export, over stores of growing size.

    python benchmarks/judge/export.py [--spans 250000 1000000] [--per-run 25]

Every store is written by the collector's own writer into the embedded engine and exported twice, to
JSON lines and to Parquet, each in a process of its own. Memory that grows with the store would show
between the rows.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from mast_trace_collector.storage import Store, migrate
from mast_trace_collector.storage.span_writer import SpanWriter
from mast_trace_judge.transfer.exporting import export_runs, write_jsonl, write_parquet

if TYPE_CHECKING:
    from collections.abc import Iterator

_WORDS = ("the", "invoice", "of", "page", "three", "adds", "up", "to", "less", "than", "ordered")
_RUNS_PER_REQUEST = 100
_WRITERS = {"jsonl": write_jsonl, "parquet": write_parquet}


def requests(runs: int, per_run: int) -> Iterator[bytes]:
    """Yield OTLP requests of runs: a root, then messages of 300 characters or so."""
    drawing = random.Random(0)
    begin = time.time_ns() - 3600 * 10**9
    for first in range(0, runs, _RUNS_PER_REQUEST):
        request = ExportTraceServiceRequest()
        scope = request.resource_spans.add().scope_spans.add()
        for number in range(first, min(runs, first + _RUNS_PER_REQUEST)):
            for place in range(per_run):
                span = scope.spans.add(
                    trace_id=(number + 1).to_bytes(16, "big"),
                    span_id=(number * per_run + place + 1).to_bytes(8, "big"),
                    start_time_unix_nano=begin + place * 1000,
                    end_time_unix_nano=begin + place * 1000 + 500,
                    name="invoke_workflow" if place == 0 else "send_message",
                )
                values = {"gen_ai.operation.name": span.name}
                if place:
                    span.parent_span_id = (number * per_run + 1).to_bytes(8, "big")
                    values["mast.message.sender"] = f"agent{place % 4}"
                    values["mast.message.id"] = f"{number}-{place}"
                    values["mast.message.content"] = " ".join(drawing.choices(_WORDS, k=60))
                for key, value in values.items():
                    span.attributes.add(key=key).value.string_value = value
        yield request.SerializeToString()


def fill(url: str, runs: int, per_run: int) -> None:
    """Write a store."""
    with Store.open(url) as store:
        migrate(store)
        writer = SpanWriter(store)
        for number, request in enumerate(requests(runs, per_run)):
            writer.write([request], token=f"export-{number}")


def export(url: str, kind: str, out: Path) -> dict[str, float]:
    """Export a store; return seconds, runs, and the peak of this process's memory in MiB."""
    with Store.open(url) as store:
        idle = _peak()
        begin = time.perf_counter()
        count = _WRITERS[kind](out, export_runs(store))
        return {
            "runs": count,
            "seconds": time.perf_counter() - begin,
            "idle": idle,
            "peak": _peak(),
        }


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Fill and export stores, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=_Raw)
    parser.add_argument("--spans", type=int, nargs="+", default=[250_000, 1_000_000])
    parser.add_argument("--per-run", type=int, default=25)
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        url, kind, out = given.child
        print(json.dumps(export(url, kind, Path(out))))
        return
    print("| spans | format | runs | file MiB | seconds | spans per second | idle MiB | peak MiB |")
    print("|---:|---|---:|---:|---:|---:|---:|---:|")
    for spans in given.spans:
        with tempfile.TemporaryDirectory() as folder:
            url = f"chdb://{folder}/store"
            subprocess.run(
                [sys.executable, "-c", _FILL, url, str(spans // given.per_run), str(given.per_run)],
                check=True,
                cwd=Path(__file__).parent,
            )
            for kind in _WRITERS:
                out = Path(folder) / f"runs.{kind}"
                command = [sys.executable, __file__, "--child", url, kind, str(out)]
                output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
                found = json.loads(output.splitlines()[-1])
                rate = spans / found["seconds"]
                size = out.stat().st_size / 2**20
                print(
                    f"| {spans:,} | {kind} | {found['runs']:,} | {size:.0f} | {found['seconds']:.0f} "
                    f"| {rate:,.0f} | {found['idle']:.0f} | {found['peak']:.0f} |",
                    flush=True,
                )


_FILL = "import sys, export; export.fill(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))"


class _Raw(argparse.RawDescriptionHelpFormatter):
    """Keeps the lines of the description."""


if __name__ == "__main__":
    main()
