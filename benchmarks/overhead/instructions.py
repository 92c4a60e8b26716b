"""Counts the instructions that instrumentation adds to a step of an agent: ours, the floor's and the peers'.

Instructions are the same on a busy machine and on an idle one, and differ by little from run to run. They
say how much more work there is, and nothing about what caches and waiting add to it; ``run.py`` measures
that in time.

Each process runs under callgrind (package ``valgrind``), which counts all of its threads, exporting included.
Counting begins once the program has been imported and warmed up, and each run is counted by itself, until
its records have been sent; the model and the sink are in another process. Clients of models load one
certificate instead of the system's 140: a program that makes a client for each agent would be counted for
hours, and nothing of that is instrumentation.

Callgrind makes a program about 50 times as slow, so that counts are kept process by process: a count that
was interrupted goes on where it was when it is started again with the same ``--results``.

::

    python benchmarks/overhead/instructions.py --results benchmarks/overhead/instructions.json
    python benchmarks/overhead/instructions.py --programs autogen_group --peers --runs 3
    python benchmarks/overhead/page.py                                    # write the table from them
"""

from __future__ import annotations

import argparse
import importlib
import json
import re
import ssl
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path
from typing import TYPE_CHECKING

from run import HERE, Process, Sink, environment_of

from scripted_llm import ScriptedLLM  # isort: skip  # its folder is put on the path by `run`

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

VARIABLES = {
    "PYTHONHASHSEED": "0",
    # The batch processor's clock would go 50 times as fast as the program: it sends when told to.
    "OTEL_BSP_SCHEDULE_DELAY": "3600000",
}
NOT_COUNTED = 1
"""Runs after the start of counting that are left out: the count of the first is not whole."""
LEFT_OUT = frozenset({"agentops"})
"""Peers with an exporter of their own beside that to the sink: its attempts would be counted."""


@dataclass(frozen=True)
class Job:
    """A program to count under one instrumentation.

    Attributes:
        program: its module's name.
        name: of the instrumentation; ``none`` for nothing at all, followed by the instrumentation in
            whose environment that is, where it is not mast-trace's.
        python: of the environment.
    """

    program: str
    name: str
    python: Path

    @property
    def instrumentation(self) -> str:
        """The instrumentation to switch on."""
        return "none" if self.name.startswith("none") else self.name


class Callgrind:
    """A program under callgrind, warmed up; counts one run at a time.

    Args:
        job: program and instrumentation.
        llm: address of the scripted model.
        folder: an empty folder for its files.
        warm_up: runs before the first that is counted.
    """

    def __init__(self, job: Job, llm: str, folder: Path, warm_up: int) -> None:
        self._counts = folder / "counts"
        self._dumps = 0
        certificate = folder / "one.pem"
        certificate.write_text(one_certificate())
        under = ("valgrind", "--tool=callgrind", "--instr-atstart=no")
        self._process = Process(
            job.python,
            job.program,
            job.instrumentation,
            llm,
            Sink(),
            folder / "home",
            under=(*under, f"--callgrind-out-file={self._counts}"),
            options=("--send-each", "--warm-up", str(warm_up)),
            variables={**VARIABLES, "SSL_CERT_FILE": str(certificate)},
        )
        self._process.answer()
        self._tell("instrumentation", "on")

    def run(self) -> int:
        """Run the program once; return the instructions of all its threads."""
        self._tell("zero")
        self._process.run()
        self._tell("dump")
        self._dumps += 1
        dump = Path(f"{self._counts}.{self._dumps}")
        found = re.search(r"^totals: (\d+)", dump.read_text(), re.MULTILINE)
        if found is None:
            raise SystemExit(f"callgrind has left no total in {dump}")
        return int(found[1])

    def finish(self) -> None:
        """Stop counting and let the process end."""
        self._tell("instrumentation", "off")
        self._process.finish()

    def _tell(self, *command: str) -> None:
        command = ("vgdb", f"--pid={self._process.pid}", *command)
        subprocess.run(command, check=True, capture_output=True)


def one_certificate() -> str:
    """Return the first certificate of the system's store, in PEM."""
    store = Path(ssl.get_default_verify_paths().cafile or "/etc/ssl/certs/ca-certificates.crt")
    begin, end = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
    return begin + store.read_text().partition(begin)[2].partition(end)[0] + end + "\n"


def count(job: Job, llm: str, runs: int, warm_up: int) -> list[int]:
    """Return the instructions of each of several runs."""
    with tempfile.TemporaryDirectory() as folder:
        process = Callgrind(job, llm, Path(folder), warm_up)
        counts = [process.run() for _ in range(NOT_COUNTED + runs)][NOT_COUNTED:]
        process.finish()
    return counts


def jobs_of(program: str, wanted: Sequence[str] | None) -> list[Job]:
    """Return what is to be counted of a program.

    A run is compared with one without any instrumentation in mast-trace's environment; in its own
    where that holds another version of something that the program uses.
    """
    module = importlib.import_module(f"programs.{program}")
    peers = [name for name in module.PEERS if name not in LEFT_OUT]
    ours = environment_of(module.FRAMEWORK, "mast-trace")
    jobs = [Job(program, name, ours) for name in ("mast-trace", "none", "floor")]
    for name in peers if wanted is None else wanted:
        python = environment_of(module.FRAMEWORK, name)
        jobs.append(Job(program, name, python))
        if differ(versions(ours), versions(python)):
            jobs.append(Job(program, f"none, {name}", python))
    return jobs


def versions(python: Path) -> dict[str, str]:
    """Return the versions of an environment's packages, without OpenTelemetry's."""
    folders = python.parents[1].glob("lib/python*/site-packages")
    found = {each.metadata["Name"]: each.version for each in distributions(path=map(str, folders))}
    return {name: version for name, version in found.items() if "opentelemetry" not in name}


def differ(ours: Mapping[str, str], theirs: Mapping[str, str]) -> bool:
    """Return whether two environments hold something in different versions."""
    return any(theirs.get(name, version) != version for name, version in ours.items())


def main() -> None:
    """Count, and keep each count as soon as it is there."""
    programs = sorted(file.stem for file in (HERE / "programs").glob("[!_]*.py"))
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--programs", nargs="+", default=programs, choices=programs)
    parser.add_argument("--peers", nargs="*", help="these beside mast-trace and the floor")
    parser.add_argument("--runs", type=int, default=5, help="counted runs of each process")
    parser.add_argument("--warm-up", type=int, default=4, help="runs before them")
    parser.add_argument("--processes", type=int, default=2, help="at a time")
    parser.add_argument("--results", type=Path, help="a file in which to keep the counts")
    options = parser.parse_args()
    results = Results(options.results)
    for program in options.programs:
        module = importlib.import_module(f"programs.{program}")
        waiting = [job for job in jobs_of(program, options.peers) if not results.has(job)]
        with ScriptedLLM(module.script) as llm, ThreadPoolExecutor(options.processes) as pool:
            counted = {
                pool.submit(count, job, llm.url, options.runs, options.warm_up): job
                for job in waiting
            }
            for done in as_completed(counted):
                results.add(counted[done], module.STEPS, done.result())


class Results:
    """The counts of all programs, by program and instrumentation, in a file if there is one.

    Args:
        file: holds what was counted before; None to print alone.
    """

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._held = json.loads(file.read_text()) if file is not None and file.exists() else {}

    def has(self, job: Job) -> bool:
        """Return whether a job has been done."""
        return job.name in self._held.get(job.program, {}).get("rows", {})

    def add(self, job: Job, steps: int, counts: Sequence[int]) -> None:
        """Keep and print the instructions of each run of a job."""
        self._held.setdefault(job.program, {"steps": steps, "rows": {}})
        self._held[job.program]["rows"][job.name] = list(counts)
        print(f"{job.program}, {job.name}: {counts}", file=sys.stderr, flush=True)
        if self._file is not None:
            self._file.write_text(json.dumps(self._held, indent=1) + "\n")


if __name__ == "__main__":
    main()
