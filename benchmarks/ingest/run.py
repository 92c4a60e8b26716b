"""Measures the collector: spans per second until they can be queried, latency, CPU, memory.

python benchmarks/ingest/run.py --shape agent --spans 200000
python benchmarks/ingest/run.py --shape agent --spans 100000 --rate 5000
"""

from __future__ import annotations

import argparse
import http.client
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from load import Shape, agent_shape, small_shape

if TYPE_CHECKING:
    from collections.abc import Mapping

HERE = Path(__file__).parent
HEADERS = {"content-type": "application/x-protobuf"}
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class Sent:
    """The senders' measurements."""

    latencies: list[float] = field(default_factory=list)
    refused: int = 0


@dataclass(frozen=True)
class Result:
    """One run."""

    spans: int
    bytes_per_span: float
    seconds: float
    cpu_seconds: float
    peak_rss: int
    disk: int
    sent: Sent

    def row(self, name: str) -> str:
        """The run as a line of the table."""
        latencies = sorted(self.sent.latencies)
        rate = self.spans / self.seconds
        cells = (
            name,
            f"{rate:,.0f}",
            f"{rate * self.bytes_per_span / 1e6:.1f}",
            f"{self.cpu_seconds / self.spans * 1e6:.0f}",
            f"{statistics.median(latencies) * 1e3:.1f}",
            f"{latencies[int(len(latencies) * 0.99)] * 1e3:.1f}",
            f"{self.peak_rss / 2**20:,.0f}",
            f"{self.disk / self.spans:,.0f}",
            f"{self.sent.refused}",
        )
        return "| " + " | ".join(cells) + " |"


HEAD = (
    "| load | spans/s until queryable | MB/s | CPU us/span | ack p50 ms | ack p99 ms "
    "| peak RSS MiB | disk B/span | refused |\n|---|---|---|---|---|---|---|---|---|"
)


def send(
    address: str,
    shape: Shape,
    count: int,
    connections: int,
    rate: float,
    headers: Mapping[str, str] = HEADERS,
) -> Sent:
    """Send so many requests, each until it is acknowledged."""
    sent = Sent()
    numbers = iter(range(count))
    lock = threading.Lock()
    begun = time.perf_counter()

    def sender() -> None:
        connection = http.client.HTTPConnection(address.removeprefix("http://"), timeout=60)
        while True:
            with lock:
                number = next(numbers, None)
            if number is None:
                break
            body = shape.body(number)
            if rate:
                due = begun + number * shape.spans / rate
                time.sleep(max(0.0, due - time.perf_counter()))
            while True:
                started = time.perf_counter()
                connection.request("POST", "/v1/traces", body, dict(headers))
                answer = connection.getresponse()
                answer.read()
                if answer.status == 200:
                    sent.latencies.append(time.perf_counter() - started)
                    break
                sent.refused += 1
                time.sleep(float(answer.getheader("retry-after", "1")))
        connection.close()

    with ThreadPoolExecutor(connections) as threads:
        for done in [threads.submit(sender) for _ in range(connections)]:
            done.result()
    return sent


def stored(address: str) -> int:
    with urllib.request.urlopen(f"{address}/metrics") as answer:
        for line in answer.read().decode().splitlines():
            if line.startswith("mast_trace_collector_stored_spans_total "):
                return int(float(line.split()[1]))
    return 0


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def peak_rss(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


def measure(shape: Shape, spans: int, connections: int, rate: float, folder: Path) -> Result:
    """Run a fresh collector under one load."""
    process = subprocess.Popen(
        [sys.executable, HERE / "measured_collector.py", folder], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        address = process.stdout.readline().strip()
        if not address:
            raise SystemExit("the collector did not start")
        requests = spans // shape.spans
        total = requests * shape.spans
        cpu = cpu_seconds(process.pid)
        begun = time.perf_counter()
        sent = send(address, shape, requests, connections, rate)
        while stored(address) < total:
            time.sleep(0.02)
        seconds = time.perf_counter() - begun
        cpu = cpu_seconds(process.pid) - cpu
        rss = peak_rss(process.pid)
        process.send_signal(signal.SIGTERM)
        rows, disk = int(process.stdout.readline()), int(process.stdout.readline())
        assert rows == total, f"{rows} rows of {total} spans"
        process.wait(timeout=60)
    finally:
        process.kill()
    return Result(total, shape.bytes_per_span, seconds, cpu, rss, disk, sent)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shape", choices=["agent", "small"], default="agent")
    parser.add_argument("--spans", type=int, default=200_000)
    parser.add_argument("--request-spans", type=int, default=512)
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--rate", type=float, default=0, help="spans per second; 0 is full speed")
    parser.add_argument("--repeat", type=int, default=1)
    options = parser.parse_args()
    build = agent_shape if options.shape == "agent" else small_shape
    shape = build(options.request_spans)
    pace = f", paced at {options.rate:,.0f}/s" if options.rate else ""
    name = f"{shape.name} ({shape.bytes_per_span:,.0f} B/span, {shape.spans} a request{pace})"
    print(f"load average before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print(HEAD)
    for _ in range(options.repeat):
        with tempfile.TemporaryDirectory(prefix="mast-trace-bench-") as folder:
            result = measure(shape, options.spans, options.connections, options.rate, Path(folder))
        print(result.row(name), flush=True)


if __name__ == "__main__":
    main()
