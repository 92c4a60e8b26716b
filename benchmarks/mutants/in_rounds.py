"""Runs mutmut with mutants first tried in lasting processes, and alone only if they survive there.

A mutant of code that runs in a module's fixtures is found only in a process of its own; all others
are killed sooner beside a running engine. Those that have been killed before, by the file that
``MUTANTS_KILLED`` names, count as killed.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import history
import mutmut.__main__ as command
from lasting import KILLED, SPOILT
from mutmut.configuration import config
from mutmut.runners.harness import PytestRunner
from mutmut.state import state
from mutmut.workers.isolation import ForkServerRunner, MutantResult

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

DEAD, TIMED_OUT = 1, 36
"""Exit codes of mutmut for a mutant that a test noticed, and for one that hung or crashed."""


@dataclass
class Waiting:
    """A mutant that waits to be tried: arguments of mutmut's `submit`."""

    name: str
    tests: list[str]
    cpu_seconds: int
    estimated_seconds: float

    def tests_in(self, file: str) -> list[str]:
        """Return those of its tests that a file has."""
        return [test for test in self.tests if test.partition("::")[0] == file]


class Rounds(ForkServerRunner):
    """Tries all mutants with the tests of one file after the other, then each survivor alone."""

    def __init__(self, max_workers: int = 1) -> None:
        super().__init__(max_workers, PytestRunner, {})
        self.waiting: list[Waiting] = []
        self._results = self._all_results()

    def submit(
        self, mutant_name: str, tests: list[str], cpu_time_limit: int, estimated_time: float
    ) -> None:
        """Put a mutant into the queue."""
        self.waiting.append(Waiting(mutant_name, tests, cpu_time_limit, estimated_time))

    def has_capacity(self) -> bool:
        """Return true: a round wants all mutants."""
        return True

    def pending_count(self) -> int:
        """Return how many mutants have no verdict."""
        return len(self.waiting) + super().pending_count()

    def signal_work_complete(self) -> None:
        """Leave the fork server running, until no mutant waits for it."""
        if not self.waiting or self._shutting_down:
            super().signal_work_complete()

    def wait_for_result(self, timeout: float | None = None) -> MutantResult:
        """Return the next verdict."""
        if self._shutting_down:
            return super().wait_for_result(timeout)
        return next(self._results)

    def _all_results(self) -> Iterator[MutantResult]:
        killed = history.read(Path(os.environ["MUTANTS_KILLED"]), Path("mutants"))
        for mutant in [mutant for mutant in self.waiting if mutant.name in killed]:
            self.waiting.remove(mutant)
            yield MutantResult(mutant.name, DEAD, 0.0)
        for file in self._files():
            for mutant, code in self._one_file(file):
                self.waiting.remove(mutant)
                yield MutantResult(mutant.name, code, 0.0)
        print(f"\n{len(self.waiting)} left for a process of their own", flush=True)
        while self.pending_count():
            while self.waiting and super().has_capacity():
                alone = self.waiting.pop(0)
                super().submit(alone.name, alone.tests, alone.cpu_seconds, alone.estimated_seconds)
            self.signal_work_complete()
            yield super().wait_for_result()

    def _files(self) -> list[str]:
        """Return files of tests, the quickest first."""
        seconds: Counter[str] = Counter()
        for test in {test for mutant in self.waiting for test in mutant.tests}:
            seconds[test.partition("::")[0]] += state().duration_by_test[test]
        return sorted(seconds, key=lambda file: seconds[file])

    def _one_file(self, file: str) -> Iterator[tuple[Waiting, int]]:
        """Yield the mutants that a file's tests kill, with the exit code for mutmut."""
        concerned = [mutant for mutant in self.waiting if mutant.tests_in(file)]
        verdicts: queue.Queue[tuple[Waiting, int] | None] = queue.Queue()
        lanes = [concerned[lane :: self.max_workers] for lane in range(self.max_workers)]
        with ThreadPoolExecutor(self.max_workers) as pool:
            running = [pool.submit(_try_in_turn, file, lane, verdicts) for lane in lanes]
            for lane in running:
                lane.add_done_callback(lambda _: verdicts.put(None))
            ended = 0
            while ended < len(running):
                if found := verdicts.get():
                    yield found
                else:
                    ended += 1
            for lane in running:
                lane.result()


def _try_in_turn(
    file: str, mutants: Sequence[Waiting], verdicts: queue.Queue[tuple[Waiting, int] | None]
) -> None:
    """Try mutants one after the other, in a new process each time that one hung or spoilt its own."""
    left = {mutant.name: mutant for mutant in mutants}
    while left:
        begun, ended = "", False
        for name, verdict in _verdicts(file, list(left.values())):
            begun, ended = name, bool(verdict)
            if verdict == SPOILT:
                # Tried again, as the first mutant of the next process.
                left = {name: left.pop(name), **left}
            elif verdict:
                mutant = left.pop(name)
                if verdict == KILLED:
                    verdicts.put((mutant, DEAD))
        if not begun:
            raise RuntimeError(f"the tests of {file} do not pass without a mutant")
        if not ended:
            verdicts.put((left.pop(begun), TIMED_OUT))


def _verdicts(file: str, mutants: Sequence[Waiting]) -> Iterator[tuple[str, str]]:
    """Run a process that tries mutants; yields each when it begins (verdict empty) and ends."""
    pytest = [sys.executable, "-m", "pytest", "--rootdir=.", "-q"]
    reading, writing = os.pipe()
    with tempfile.TemporaryDirectory() as folder, os.fdopen(reading) as lines:
        given = Path(folder) / "mutants.json"
        given.write_text(json.dumps([(mutant.name, mutant.tests_in(file)) for mutant in mutants]))
        process = subprocess.Popen(
            [*pytest, *config().pytest_add_cli_args, "-plasting", file],
            cwd="mutants",
            env={
                **os.environ,
                "MUTANTS_TO_TRY": str(given),
                "VERDICTS_TO": str(writing),
                "TMPDIR": folder,
            },
            pass_fds=[writing],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(writing)
        try:
            for line in lines:
                name, verdict = json.loads(line)
                yield name, verdict
        finally:
            process.kill()
            process.wait()


if __name__ == "__main__":
    command.get_mutant_runner = Rounds
    command.cli()
