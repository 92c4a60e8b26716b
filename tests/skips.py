"""Counts skipped tests, and fails a run in which one is skipped that is not expected.

A skipped test looks like a passed one, and a whole folder may be skipped for want of a package.
``expected_skips.toml`` lists the tests that each session of nox may skip: by session, the
beginnings of the test's name and of the reason, and the largest number. Under nox and on CI (``CI``
is set) others are failures; elsewhere they are only listed, as the machine may lack what a test
needs.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from toml_files import tomllib

from judge import data

if TYPE_CHECKING:
    from collections.abc import Iterable

EXPECTED = Path(__file__).with_name("expected_skips.toml")
DEFAULT_SESSION = "tests"


@dataclass(frozen=True)
class Skip:
    """A test or a file that was skipped, and why."""

    place: str
    reason: str


@dataclass(frozen=True)
class Expected:
    """A set of tests that may be skipped.

    Attributes:
        place: a beginning of the test's id.
        reason: a beginning of the reason.
        most: their largest number.
        without: a thing that the machine must lack: ``root``, ``labelled runs``, or a program.
    """

    place: str
    reason: str
    most: int
    without: str = ""

    def covers(self, skip: Skip) -> bool:
        """Return whether this is about a skip, and the machine lacks what it says."""
        about = skip.place.startswith(self.place) and skip.reason.startswith(self.reason)
        return about and not (self.without and has(self.without))


def has(thing: str) -> bool:
    """Return whether the machine has something that tests need."""
    if thing == "root":
        return os.geteuid() == 0
    if thing == "labelled runs":
        return data.folder() is not None
    return shutil.which(thing) is not None


def expected_in(session: str) -> list[Expected]:
    """Read what a session may skip; a section ``framework(x-*)`` counts for all of that name."""
    sections = tomllib.loads(EXPECTED.read_text("utf-8"))
    found = []
    for name, rows in sections.items():
        if name == session or (name.endswith("*") and session.startswith(name[:-1])):
            found += [Expected(**row) for row in rows]
    return found


def unexpected(skips: Iterable[Skip], expected: Iterable[Expected]) -> list[str]:
    """Return a line for each skip that nothing covers, and for each row that too many use up."""
    rows, used, lines = list(expected), Counter[Expected](), []
    for skip in skips:
        row = next((row for row in rows if row.covers(skip)), None)
        if row is None:
            lines.append(f"{skip.place}: {skip.reason}")
        else:
            used[row] += 1
    lines += [
        f"{row.place}: {count} skipped, {row.most} expected: {row.reason}"
        for row, count in used.items()
        if count > row.most
    ]
    return lines


class Skips:
    """The pytest plugin; beside xdist's workers only their master counts."""

    def __init__(self, session: str, *, strict: bool) -> None:
        self.session = session
        self.strict = strict
        self.skips: list[Skip] = []
        self.complaints: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped and not hasattr(report, "wasxfail"):
            self._add(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.skipped:
            self._add(report)

    def _add(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        told = report.longrepr
        reason = told[2] if isinstance(told, tuple) else str(told)
        self.skips.append(Skip(report.nodeid, reason.removeprefix("Skipped: ")))

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        self.complaints = unexpected(self.skips, expected_in(self.session))
        if (
            self.strict
            and self.complaints
            and exitstatus in {0, pytest.ExitCode.NO_TESTS_COLLECTED}
        ):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.strict and self.complaints:
            title = f"skipped, but not expected in session {self.session}"
            terminalreporter.section(title, red=True)
            for line in self.complaints:
                terminalreporter.line(line)
            terminalreporter.line(f"What may be skipped is listed in {EXPECTED.name}.")


def register(config: pytest.Config) -> None:
    """Count skips in this process, unless it is a worker of xdist."""
    if hasattr(config, "workerinput"):
        return
    session = os.environ.get("MAST_TRACE_TEST_SESSION", "")
    strict = bool(session) or os.environ.get("CI", "").lower() in {"1", "true", "yes"}
    config.pluginmanager.register(Skips(session or DEFAULT_SESSION, strict=strict), "skips")
