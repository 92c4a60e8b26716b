"""Measures the cost of instrumentation for an agent: added time per step and memory, ours and the peers'.

The program talks to a scripted model in another process. Every instrumentation has an environment
of its own, because their requirements conflict. A round starts a process for each of them and one
without any, all at once, and then lets them run the program by turns, one run at a time, so that
other load of the machine affects all equally. Their differences to the one without are the
measurements of the round; the table shows the median of the rounds with the smallest and the
largest.

CPU is all threads of the process, exporting included: it holds where a busy machine makes wall time
useless. Everything is sent over HTTP to a sink that throws it away.

The floor is the spans that mast-trace makes of the run, made by the bare OpenTelemetry SDK and sent by its
batch exporter: nothing that records as much can cost less (`floor.py`). The table gives each as a multiple
of it. The measurements are kept in ``results.json``; ``page.py`` writes the tables of the page from it.

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
from dataclasses import asdict, dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(HERE.parent), str(ROOT / "examples")]

import page  # noqa: E402
from environments import environment  # noqa: E402
from peers import FRAMEWORKS, peer  # noqa: E402
from scripted_llm import ScriptedLLM  # noqa: E402

from instrumentations import REQUIREMENTS  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


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
    """The cost of one instrumentation, one entry per round.

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


class Process:
    """A program under one instrumentation, warmed up and ready to run.

    Args:
        python: of its environment.
        name: of the instrumentation; ``none`` for nothing at all.
        home: its home and working folder, for some leave files there.
        under: command that runs it, such as a counter of instructions.
        options: more options of the worker.
        variables: of its environment, beside the inherited ones.
    """

    def __init__(
        self,
        python: Path,
        program: str,
        name: str,
        llm: str,
        sink: Sink,
        home: Path,
        *,
        under: Sequence[str] = (),
        options: Sequence[str] = (),
        variables: Mapping[str, str] | None = None,
    ) -> None:
        self._what = f"{program} under {name}"
        home.mkdir()
        self._errors = (home / "stderr").open("w+")
        worker = [python, HERE / "worker.py", program, name, "--llm", llm, "--sink", sink.url]
        command = [*under, *worker, *options]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            bufsize=1,
            cwd=home,
            env={**os.environ, "HOME": str(home), **(variables or {})},
        )
        self.pid = self._process.pid

    def answer(self) -> str:
        """Wait for its next line.

        Raises:
            SystemExit: it has ended without a line.
        """
        line = self._process.stdout.readline() if self._process.stdout else ""
        if not line:
            self._process.wait()
            self._errors.seek(0)
            raise SystemExit(f"{self._what} failed:\n{self._errors.read()}")
        return line

    def run(self) -> None:
        """Run the program once."""
        if self._process.stdin:
            self._process.stdin.write("run\n")
            self._process.stdin.flush()
        self.answer()

    def finish(self) -> dict[str, Any]:
        """Let it send what is left and end; return its measurements."""
        if self._process.stdin:
            self._process.stdin.close()
        result: dict[str, Any] = json.loads(self.answer())
        self._process.wait()
        self._errors.close()
        return result


def measure(
    pythons: Mapping[str, Path],
    program: str,
    llm: str,
    sinks: Mapping[str, Sink],
    runs: int,
    options: Sequence[str] = (),
) -> dict[str, dict[str, Any]]:
    """Let a process of each instrumentation run the program by turns; return the measurements of each."""
    with tempfile.TemporaryDirectory() as home:
        processes = {
            name: Process(
                python, program, name, llm, sinks[name], Path(home, str(number)), options=options
            )
            for number, (name, python) in enumerate(pythons.items())
        }
        for process in processes.values():
            process.answer()
        before = {name: sink.bytes for name, sink in sinks.items()}
        order = list(processes.values())
        for _ in range(runs):
            for process in order:
                process.run()
            # the process after an expensive one is not always the same
            order = [*order[1:], order[0]]
        results = {name: process.finish() for name, process in processes.items()}
    for name, result in results.items():
        result["sent"] = (sinks[name].bytes - before[name]) / runs
    return results


def environment_of(framework: str, name: str) -> Path:
    """Return the Python of the environment that holds a framework and one instrumentation."""
    packages = (*FRAMEWORKS[framework], *REQUIREMENTS, *peer(framework, name).packages)
    return environment(f"overhead/{framework}-{name}", [*packages, "-e", str(ROOT)])


def compare(
    program: str,
    rounds: int,
    runs: int,
    wanted: Sequence[str] | None = None,
    options: Sequence[str] = (),
) -> tuple[dict[str, Cost], float]:
    """Measure one program under everything; also return its own CPU a step, uninstrumented."""
    module = importlib.import_module(f"programs.{program}")
    names = ("mast-trace", *(module.PEERS if wanted is None else wanted))
    costs = {name: Cost() for name in names}
    pythons = {name: environment_of(module.FRAMEWORK, name) for name in names}
    for floor in ("floor", "floor in place"):
        pythons[floor] = pythons["mast-trace"]
        costs[floor] = Cost()
    pythons["none"] = pythons["mast-trace"]
    sinks = {name: Sink() for name in pythons}
    bare: list[float] = []
    with ScriptedLLM(module.script) as llm:
        for number in range(rounds):
            found = measure(pythons, program, llm.url, sinks, runs, options)
            none = found.pop("none")
            bare.append(none["cpu"] / module.STEPS * 1e6)
            for name, result in found.items():
                cost = costs[name]
                cost.cpu.append((result["cpu"] - none["cpu"]) / module.STEPS * 1e6)
                wall = statistics.median(result["wall"]) - statistics.median(none["wall"])
                cost.wall.append(wall / module.STEPS * 1e6)
                cost.peak.append(result["peak"] - none["peak"])
                cost.sent.append(result["sent"])
            print(f"round {number + 1} of {rounds} done", file=sys.stderr)
    return costs, statistics.median(bare)


def rounded(costs: Mapping[str, Cost], bare: float, runs: int) -> dict[str, Any]:
    """Return what was measured of a program, without digits that mean nothing."""
    rows = {
        name: {what: [round(value) for value in values] for what, values in asdict(cost).items()}
        for name, cost in costs.items()
    }
    return {"alone": round(bare), "runs": runs, "rows": rows}


def keep(file: Path, program: str, result: Mapping[str, Any]) -> None:
    """Write what was measured of a program into a file, beside what it holds of others."""
    results = json.loads(file.read_text()) if file.exists() else {}
    file.write_text(json.dumps({**results, program: result}, indent=1) + "\n")


def main() -> None:
    """Measure and print one table per program."""
    programs = sorted(file.stem for file in (HERE / "programs").glob("[!_]*.py"))
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--programs", nargs="+", default=programs, choices=programs)
    parser.add_argument(
        "--peers", nargs="*", help="these beside mast-trace and the floor; all if absent"
    )
    parser.add_argument(
        "--send-each",
        action="store_true",
        help="send at the end of each run, as programs of one run do",
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument(
        "--results", type=Path, help="a file of results in which to keep the rounds"
    )
    options = parser.parse_args()
    for program in options.programs:
        sending = ("--send-each",) if options.send_each else ()
        costs, bare = compare(program, options.rounds, options.runs, options.peers, sending)
        result = rounded(costs, bare, options.runs)
        if options.results is not None:
            keep(options.results, program, result)
        print(f"\n{program}\n\n{page.table(program, result)}")


if __name__ == "__main__":
    main()
