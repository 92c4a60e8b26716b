"""Measures the cost of reading one long run: page, terminal, JSON, judge and exports.

    python benchmarks/large/run.py [--spans 1000 10000 200000] [--only page judge] [--store FOLDER]

A store with one run of each length is written by the collector's own writer into the embedded
engine. Every measurement is made in a process of its own, which reports the times of the first and
the last byte, its processor time, and the peak of its memory, the engine's included.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from mast_trace_collector.storage import Store, migrate
from mast_trace_collector.storage.span_writer import SpanWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from opentelemetry.proto.trace.v1.trace_pb2 import Span

_PER_REQUEST = 5000
_MS = 1_000_000
_PROGRAM = (sys.executable, "-c", "from mast_trace_dashboards.cli import main; main()")
_TOKEN = "large"
"""Begins the names of the inserts."""


def sentence(number: int) -> str:
    """Return about 300 characters that differ from span to span."""
    return (
        f"Item {number}: the invoice of page {number % 977} adds up to {number * 37 % 10007} EUR, "
        f"which is less than was ordered in week {number % 53}; supplier {number * 7919 % 100003} "
        "confirmed that it was delivered, and asks to be printed by whom the difference was approved "
        "and when it will be paid."
    )


def requests(trace_id: bytes, spans: int) -> Iterator[bytes]:
    """Yield OTLP requests of one run: turns of four agents, each of two calls, a tool and a message."""
    begin = time.time_ns() - 3600 * 10**9
    ids: list[str] = []
    made = 0
    while made < spans:
        request = ExportTraceServiceRequest()
        scope = request.resource_spans.add().scope_spans.add()
        scope.scope.name = "mast_trace.ag2"
        for number in range(made, min(made + _PER_REQUEST, spans)):
            span = scope.spans.add(trace_id=trace_id, span_id=(number + 1).to_bytes(8, "big"))
            span.start_time_unix_nano = begin + number * _MS
            span.end_time_unix_nano = begin + (number or spans) * _MS + _MS // 2
            _fill(span, number, ids)
        made += _PER_REQUEST
        yield request.SerializeToString()


def _fill(span: Span, number: int, ids: list[str]) -> None:
    place, agent = number % 5, f"agent{number // 5 % 4}"
    if number == 0:
        _put(span, "invoke_workflow", {"gen_ai.workflow.name": "invoices"})
        return
    parent = 1 if place == 1 or number < 5 else number - (place - 1) % 5 + 1
    span.parent_span_id = parent.to_bytes(8, "big")
    known = {"mast.message.id": f"m{number}", "gen_ai.agent.name": agent}
    shown = {"mast.input.message_ids": json.dumps(ids[-20:])}
    if place == 1:
        _put(span, "invoke_agent", {**known, **shown})
    elif place in {2, 4}:
        parts = [{"type": "text", "content": sentence(number)}]
        answer = [{"role": "assistant", "id": f"m{number}", "parts": parts}]
        tokens = {"gen_ai.usage.input_tokens": "900", "gen_ai.usage.output_tokens": "80"}
        output = {"gen_ai.output.messages": json.dumps(answer)}
        _put(span, "chat", {**known, **shown, **tokens, **output})
    elif place == 3:
        call = {"gen_ai.tool.name": "lookup", "gen_ai.tool.call.id": f"c{number}"}
        call["gen_ai.tool.call.arguments"] = json.dumps({"item": number})
        _put(span, "execute_tool", {**known, **call, "gen_ai.tool.call.result": sentence(number)})
        ids.append(f"m{number}")
    else:
        message_attributes = {"mast.message.sender": agent, "mast.message.recipients": '["boss"]'}
        message_attributes["mast.message.content"] = sentence(number)
        _put(span, "send_message", {**known, **message_attributes})
        ids.append(f"m{number}")


def _put(span: Span, operation: str, values: dict[str, str]) -> None:
    span.name = operation
    given = {"gen_ai.operation.name": operation, "mast.framework": "ag2", **values}
    for key, value in given.items():
        span.attributes.add(key=key).value.string_value = value


def trace_of(spans: int) -> str:
    """Return the id of the run of a length."""
    return f"{spans:032x}"


def fill(url: str, lengths: list[int]) -> None:
    """Write a store with one run of each length."""
    with Store.open(url) as store:
        migrate(store)
        writer = SpanWriter(store)
        for length in lengths:
            for number, request in enumerate(requests(bytes.fromhex(trace_of(length)), length)):
                writer.write([request], token=f"{_TOKEN}-{length}-{number}")


def page(url: str, trace_id: str, _: Path) -> dict[str, float]:
    """Open a run's page for the first time."""
    from mast_trace_collector.http_server.server import HTTPServer
    from mast_trace_dashboards.web.app import web_app

    with Store.open(url) as store, _served(HTTPServer(web_app(store), "127.0.0.1", 0)) as address:
        return _streamed(f"{address}/runs/{trace_id}", f"{address}/judge")


def page_again(url: str, trace_id: str, _: Path) -> dict[str, float]:
    """Open it a second time."""
    from mast_trace_collector.http_server.server import HTTPServer
    from mast_trace_dashboards.web.app import web_app

    with Store.open(url) as store, _served(HTTPServer(web_app(store), "127.0.0.1", 0)) as address:
        return _streamed(f"{address}/runs/{trace_id}", f"{address}/runs/{trace_id}")


def download(url: str, trace_id: str, _: Path) -> dict[str, float]:
    """Download a run as JSON."""
    from mast_trace_collector.http_server.server import HTTPServer
    from mast_trace_dashboards.web.app import web_app

    with Store.open(url) as store, _served(HTTPServer(web_app(store), "127.0.0.1", 0)) as address:
        return _streamed(f"{address}/runs/{trace_id}/download.json", f"{address}/judge")


def show(url: str, trace_id: str, _: Path) -> dict[str, float]:
    """Print a run in a terminal, the start of the program included."""
    return _printed(["show", trace_id, "--url", url])


def show_beside_up(url: str, trace_id: str, _: Path) -> dict[str, float]:
    """Print a run in a terminal, from the store of a running `mast-trace up`."""
    data = str(Path(url.removeprefix("chdb://")).parent)
    ports = [f"--{name}-port=0" for name in ("http", "grpc", "clickhouse", "web")]
    with tempfile.TemporaryDirectory() as folder:
        ready = Path(folder, "ready.json")
        options = ["--data-dir", data, "--no-judge", *ports, "--ready-file", str(ready)]
        with subprocess.Popen([*_PROGRAM, "up", *options], stdout=subprocess.DEVNULL) as up:
            try:
                while not ready.exists():
                    assert up.poll() is None
                    time.sleep(0.05)
                return _printed(["show", trace_id, "--data-dir", data])
            finally:
                up.terminate()


def show_json(url: str, trace_id: str, _: Path) -> dict[str, float]:
    """Print it as JSON."""
    return _printed(["show", trace_id, "--url", url, "--json"])


def judge(url: str, trace_id: str, _: Path) -> dict[str, float]:
    """Read a run and apply rules and local attribution."""
    from mast_trace_collector.storage.runs import run_summary
    from mast_trace_judge.batch import judge_chunk
    from mast_trace_judge.config import JudgeConfig
    from mast_trace_judge.judge import Judge

    with Store.open(url) as store:
        summary = run_summary(store, trace_id)
        assert summary is not None
        made = Judge(JudgeConfig())
        begin, used = time.perf_counter(), time.process_time()
        (one,) = judge_chunk(store, made, [summary])
        assert one.error is None, one.error
        return {**_took(begin, used), "bytes": 0}


def export_jsonl(url: str, trace_id: str, folder: Path) -> dict[str, float]:
    """Export the run as JSON lines."""
    from mast_trace_judge.transfer.exporting import write_jsonl

    return _exported(url, trace_id, folder / "runs.jsonl", write_jsonl)


def export_parquet(url: str, trace_id: str, folder: Path) -> dict[str, float]:
    """Export it as Parquet."""
    from mast_trace_judge.transfer.exporting import write_parquet

    return _exported(url, trace_id, folder / "runs.parquet", write_parquet)


def _exported(
    url: str, trace_id: str, out: Path, write: Callable[[Path, Any], int]
) -> dict[str, float]:
    from mast_trace_collector.storage.runs import run_summary
    from mast_trace_judge.transfer.exporting import _chunk

    with Store.open(url) as store:
        summary = run_summary(store, trace_id)
        assert summary is not None
        begin, used = time.perf_counter(), time.process_time()
        assert write(out, _chunk(store, [summary])) == 1
        return {**_took(begin, used), "bytes": out.stat().st_size}


def _printed(arguments: list[str]) -> dict[str, float]:
    begin = time.perf_counter()
    first, size = 0.0, 0
    with subprocess.Popen([*_PROGRAM, *arguments], stdout=subprocess.PIPE, bufsize=0) as child:
        assert child.stdout is not None
        while piece := child.stdout.read(65536):
            first = first or time.perf_counter() - begin
            size += len(piece)
    assert child.returncode == 0
    whole = time.perf_counter() - begin
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "first": first,
        "seconds": whole,
        "cpu": used.ru_utime + used.ru_stime,
        "peak": used.ru_maxrss / 1024,
        "bytes": size,
    }


def _streamed(address: str, before: str) -> dict[str, float]:
    import httpx

    with httpx.Client(timeout=900) as client:
        client.get(before)
        begin, used = time.perf_counter(), time.process_time()
        first, size = 0.0, 0
        with client.stream("GET", address) as answer:
            assert answer.status_code == 200
            for piece in answer.iter_raw():
                first = first or time.perf_counter() - begin
                size += len(piece)
        return {**_took(begin, used), "first": first, "bytes": size}


def _took(begin: float, used: float) -> dict[str, float]:
    seconds = time.perf_counter() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"first": seconds, "seconds": seconds, "cpu": time.process_time() - used, "peak": peak}


@contextlib.contextmanager
def _served(server: Any) -> Iterator[str]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    asyncio.run_coroutine_threadsafe(server.start(), loop).result(60)
    yield server.address
    asyncio.run_coroutine_threadsafe(server.stop(), loop).result(60)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(20)


_WAYS = (page, page_again, download, show, show_beside_up, show_json, judge)
MEASURED = {made.__name__: made for made in (*_WAYS, export_jsonl, export_parquet)}


def main() -> None:
    """Fill a store and measure, each in a process of its own."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--spans", type=int, nargs="+", default=[1000, 10_000, 200_000])
    parser.add_argument("--only", nargs="+", choices=MEASURED, default=list(MEASURED))
    parser.add_argument("--store", help="keep the store in this folder, or take it from there")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        from mast_trace_dashboards.cli import NEW_OBJECTS

        gc.set_threshold(NEW_OBJECTS)  # as every command does
        name, url, trace_id = given.child
        with tempfile.TemporaryDirectory() as folder:
            print(json.dumps(MEASURED[name](url, trace_id, Path(folder))))
        return
    with contextlib.ExitStack() as stack:
        folder = given.store or stack.enter_context(tempfile.TemporaryDirectory())
        url = f"chdb://{Path(folder).absolute()}/clickhouse"
        if not (Path(folder) / "clickhouse").exists():
            fill_store = "import sys, run; run.fill(sys.argv[1], list(map(int, sys.argv[2:])))"
            command = [sys.executable, "-c", fill_store, url, *map(str, given.spans)]
            subprocess.run(command, check=True, cwd=Path(__file__).parent)
        # As installed by pip, modules are compiled: by this first look.
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = stack.enter_context(tempfile.TemporaryDirectory())
        _printed(["show", trace_of(given.spans[0]), "--url", url])
        print("| what | spans | first bytes, s | all, s | processor, s | peak MiB | MiB out |")
        print("|---|---:|---:|---:|---:|---:|---:|")
        for name in given.only:
            for spans in given.spans:
                child = [sys.executable, __file__, "--child", name, url, trace_of(spans)]
                printed = subprocess.run(child, check=True, capture_output=True, text=True).stdout
                found = json.loads(printed.splitlines()[-1])
                print(
                    f"| {name} | {spans:,} | {found['first']:.2f} | {found['seconds']:.2f} "
                    f"| {found['cpu']:.1f} | {found['peak']:.0f} | {found['bytes'] / 2**20:.1f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
