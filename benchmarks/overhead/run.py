"""What instrumentation costs an agent: added time per step, ours and the peers'.

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
import shutil
import statistics
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "mast-trace" / "overhead"
sys.path[:0] = [str(HERE), str(ROOT / "examples")]

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
    """What one instrumentation adds, one entry per round; times in microseconds a step."""

    cpu: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)
    sent: list[float] = field(default_factory=list)


def environment(name: str, requirements: list[str]) -> Path:
    """Make, or find, the Python of an environment that holds a program and an instrumentation."""
    folder = CACHE / name
    python = folder / "bin" / "python"
    wanted = "\n".join(requirements)
    noted = folder / "requirements.txt"
    if not noted.exists() or noted.read_text() != wanted:
        shutil.rmtree(folder, ignore_errors=True)
        uv = shutil.which("uv")
        make = [uv, "venv", "-q"] if uv else [sys.executable, "-m", "venv"]
        install = [uv, "pip", "install", "-q", "-p", str(python)] if uv else None
        subprocess.run([*make, str(folder)], check=True)
        subprocess.run(
            [*(install or [str(python), "-m", "pip", "install", "-q"]), *requirements, "-e", ROOT],
            check=True,
        )
        noted.write_text(wanted)
    return python


def measure(
    python: Path, program: str, name: str, llm: str, sink: Sink, runs: int
) -> dict[str, Any]:
    """Run a process to its end; return what it measured, and the bytes that it sent per run."""
    before = sink.bytes
    done = subprocess.run(
        [
            *(python, HERE / "worker.py", program, name),
            *("--llm", llm, "--sink", sink.url, "--runs", str(runs)),
        ],
        check=False,
        capture_output=True,
        text=True,
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
        name: environment(f"{program}-{name}", [*module.REQUIREMENTS, *REQUIREMENTS[name]])
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
        print("| instrumentation | CPU a step, us | wall a step, us | sent a run, bytes |")
        print("|---|---|---|---|")
        for name, cost in costs.items():
            sent = statistics.median(cost.sent)
            print(f"| {name} | {spread(cost.cpu)} | {spread(cost.wall)} | {sent:.0f} |")


if __name__ == "__main__":
    main()
