"""Runs a suite with and without mast-trace, and distinguishes a difference from a flaky test."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suites import Suite

HERE = Path(__file__).parent
REPEATS = 3
SECONDS_PER_TEST = 120
SECONDS = 7200


@dataclass(frozen=True)
class Compared:
    """The outcome of a suite.

    Attributes:
        suite: its name.
        package: the source distribution, with its version.
        tests: number of tests that ran, with or without.
        passed_without: number that passed without mast-trace.
        passed_with: number that passed with it.
        confirmed: tests that end one way each time without and another way each time with it.
        flaky: tests that differed once and not each time.
        spans: number of spans that were begun.
        never_ended: names of spans that had not ended when the suite was over, with their number.
        never_ended_in: tests in which those began.
    """

    suite: str
    package: str
    tests: int
    passed_without: int
    passed_with: int
    confirmed: dict[str, str]
    flaky: list[str]
    spans: int
    never_ended: dict[str, int]
    never_ended_in: list[str]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


class SuiteError(Exception):
    """A suite did not run to its end."""


def compare(suite: Suite) -> Compared:
    """Run a suite both ways, and again what differs.

    Raises:
        SuiteError: the suite did not run to its end, or recorded nothing at all.
        subprocess.CalledProcessError: its parts could not be installed.
    """
    python, source = suite.python(), suite.source()
    without = _run(python, source, suite, suite.tests, traced=False)
    traced = _run(python, source, suite, suite.tests, traced=True)
    if not traced["active"] or not traced["spans"]:
        raise SuiteError(f"{suite.name}: nothing was recorded, so nothing was compared")
    plain, ours = without["outcomes"], traced["outcomes"]
    ends = {
        test: ({plain.get(test, "absent")}, {ours.get(test, "absent")})
        for test in sorted(plain.keys() | ours.keys())
        if plain.get(test) != ours.get(test)
    }
    for _ in range(REPEATS if ends else 0):
        for place, on in enumerate((False, True)):
            again = _run(python, source, suite, sorted(ends), traced=on)["outcomes"]
            for test, seen in ends.items():
                seen[place].add(again.get(test, "absent"))
    confirmed = {
        test: f"{min(one)}, with mast-trace {min(other)}"
        for test, (one, other) in ends.items()
        if len(one) == len(other) == 1
    }
    return Compared(
        suite=suite.name,
        package=suite.package,
        tests=len(plain.keys() | ours.keys()),
        passed_without=_passed(plain),
        passed_with=_passed(ours),
        confirmed=confirmed,
        flaky=[test for test in ends if test not in confirmed],
        spans=traced["spans"],
        never_ended=traced["never_ended"],
        never_ended_in=traced["never_ended_in"],
    )


def _passed(outcomes: dict[str, str]) -> int:
    return sum(1 for outcome in outcomes.values() if outcome == "passed")


def _run(
    python: Path, source: Path, suite: Suite, tests: Sequence[str], *, traced: bool
) -> dict[str, Any]:
    """Run tests of a suite, in the folder of its source; return what `watching` wrote."""
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder, "results.json")
        own = {
            "PYTHONPATH": str(HERE),
            "PYTHONDONTWRITEBYTECODE": "1",
            "TRANSPARENCY_RESULTS": str(results),
            "TRANSPARENCY_TRACED": "1" if traced else "0",
        }
        options = [
            "-p",
            "watching",
            "-o",
            "addopts=",
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:mast_trace",
        ]
        ended = subprocess.run(
            [
                str(python),
                "-m",
                "pytest",
                *options,
                f"--timeout={SECONDS_PER_TEST}",
                "--continue-on-collection-errors",
                *suite.options,
                *tests,
            ],
            cwd=source,
            env=os.environ | own | suite.variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        # Some tests may fail; what was interrupted, or had no tests at all, cannot be compared.
        if ended.returncode not in {0, 1} or not results.exists():
            raise SuiteError(f"{suite.name}:\n{ended.stdout[-4000:]}\n{ended.stderr[-4000:]}")
        read: dict[str, Any] = json.loads(results.read_text("utf-8"))
        return read
