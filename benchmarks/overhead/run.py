"""What instrumentation costs an agent: added time per step and memory, ours and the peers'.

The program talks to a scripted model in another process. Every instrumentation has an environment
of its own, for they contradict each other. Each round starts, for each of them, one process with it
and one without it, in alternating order, so that whatever else the machine does hits both alike;
the difference is one measurement, and the table shows the median of the rounds with the smallest and
the largest.

CPU is all threads of the process, exporting included: it holds where a busy machine makes wall time
useless. Everything is sent over HTTP to a sink that throws it away.

::

    python benchmarks/overhead/run.py
    python benchmarks/overhead/run.py --rounds 9 --programs langgraph_supervisor
"""

from __future__ import annotations

import argparse
import gzip
import importlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(HERE.parent), str(ROOT / "examples")]

from environments import environment  # noqa: E402
from peers import FRAMEWORKS, peer  # noqa: E402
from scripted_llm import ScriptedLLM  # noqa: E402

from instrumentations import REQUIREMENTS  # noqa: E402


class Sink:
    """Takes OTLP over HTTP and counts what comes, uncompressed."""

    def __init__(self) -> None:
        self.bytes = 0
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                packed = self.headers.get("content-encoding") == "gzip"
                owner.bytes += len(gzip.decompress(body) if packed else body)
                self.send_response(200)
                self.send_header("content-type", "application/x-protobuf")
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_args: Any) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{server.server_address[1]}"


@dataclass
class Cost:
    """What one instrumentation adds, one entry per round.

    Attributes:
        cpu: microseconds a step, of all threads.
        wall: microseconds a step.
        peak: bytes of resident memory at its highest.
        sent: bytes a run, uncompressed.
    """

    cpu: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)
    peak: list[float] = field(default_factory=list)
    sent: list[float] = field(default_factory=list)


def measure(
    python: Path, program: str, name: str, llm: str, sink: Sink, runs: int
) -> dict[str, Any]:
    """Run a process to its end; return what it measured, and the bytes that it sent per run."""
    before = sink.bytes
    command = [python, HERE / "worker.py", program, name, "--llm", llm, "--sink", sink.url]
    with tempfile.TemporaryDirectory() as home:  # some leave files there
        done = subprocess.run(
            [*command, "--runs", str(runs)],
            check=False,
            capture_output=True,
            text=True,
            cwd=home,
            env={**os.environ, "HOME": home},
        )
    if done.returncode != 0:
        raise SystemExit(f"{program} under {name} failed:\n{done.stderr}")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    result["sent"] = (sink.bytes - before) / (runs + 8)
    return result


def compare(program: str, rounds: int, runs: int) -> tuple[dict[str, Cost], float]:
    """Measure one program under everything; also return its own CPU a step, uninstrumented."""
    module = importlib.import_module(f"programs.{program}")
    costs = {name: Cost() for name in ("mast-trace", *module.PEERS)}
    pythons = {
        name: environment(
            f"overhead/{module.FRAMEWORK}-{name}",
            [
                *(
                    *FRAMEWORKS[module.FRAMEWORK],
                    *REQUIREMENTS,
                    *peer(module.FRAMEWORK, name).packages,
                ),
                *("-e", str(ROOT)),
            ],
        )
        for name in costs
    }
    bare: list[float] = []
    with ScriptedLLM(module.script) as llm:
        sink = Sink()
        for number in range(rounds):
            for name, cost in costs.items():
                pair = ["none", name] if number % 2 == 0 else [name, "none"]
                found = {n: measure(pythons[name], program, n, llm.url, sink, runs) for n in pair}
                none, result = found["none"], found[name]
                bare.append(none["cpu"] / module.STEPS * 1e6)
                cost.cpu.append((result["cpu"] - none["cpu"]) / module.STEPS * 1e6)
                wall = statistics.median(result["wall"]) - statistics.median(none["wall"])
                cost.wall.append(wall / module.STEPS * 1e6)
                cost.peak.append(result["peak"] - none["peak"])
                cost.sent.append(result["sent"])
            print(f"round {number + 1} of {rounds} done", file=sys.stderr)
    return costs, statistics.median(bare)


def spread(values: list[float]) -> str:
    """Return median, smallest and largest."""
    return f"{statistics.median(values):7.0f} [{min(values):.0f} .. {max(values):.0f}]"


def main() -> None:
    """Measure and print one table per program."""
    programs = sorted(file.stem for file in (HERE / "programs").glob("[!_]*.py"))
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--programs", nargs="+", default=programs, choices=programs)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--runs", type=int, default=40)
    options = parser.parse_args()
    for program in options.programs:
        costs, bare = compare(program, options.rounds, options.runs)
        print(f"\n{program}: {bare:.0f} us of CPU a step by itself; added to that:\n")
        print(
            "| instrumentation | CPU a step, us | wall a step, us | peak memory, MiB "
            "| sent a run, bytes |"
        )
        print("|---|---|---|---|---|")
        for name, cost in costs.items():
            sent = statistics.median(cost.sent)
            peak = spread([value / 2**20 for value in cost.peak])
            print(f"| {name} | {spread(cost.cpu)} | {spread(cost.wall)} | {peak} | {sent:.0f} |")


if __name__ == "__main__":
    main()
