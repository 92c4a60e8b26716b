"""The tests that are nearest to a line: those that go through it, and through little else.

``record`` runs the suite once under coverage, which notes the lines that each test goes through.
A line that runs when its module is imported, such as a constant, belongs to the tests that go through the
lines that name it; a template or a table to those that go through the lines that name its file.
"""

from __future__ import annotations

import ast
import re
import shutil
import sqlite3
import subprocess
import sys
from collections import Counter, defaultdict
from difflib import SequenceMatcher
from fnmatch import fnmatch
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from coverage import CoverageData

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ROOT = Path(__file__).parents[2]
RECORD = ROOT / "build" / "mutants" / "record"
PACKAGES = ("sdk", "collector", "judge", "dashboards", "lab", "instrumentations")
ROWS = [
    ("dashboards/mast_trace_dashboards/queries/*.py", "tests/dashboards/test_query_rows.py"),
]
"""Tests of texts that no line runs: a module, and the file that has to notice."""
SETTINGS = """[run]
relative_files = true
source_pkgs = mast_trace, mast_trace_collector, mast_trace_judge, mast_trace_dashboards, mast_trace_lab, mast_trace_instrumentations
"""


def record(workers: int) -> None:
    """Run all tests of the main environment once; minutes, as long as the tests take.

    Raises:
        SystemExit: a test fails.
    """
    shutil.rmtree(RECORD, ignore_errors=True)
    RECORD.mkdir(parents=True)
    (RECORD / "settings").write_text(SETTINGS + f"data_file = {RECORD / 'lines'}\n")
    command = [
        *(sys.executable, "-m", "pytest", "-q", f"-n{workers}", "--dist=loadfile", "--timeout=600"),
        *("--cov", f"--cov-config={RECORD / 'settings'}", "--cov-context=test", "--cov-report="),
        f"--junitxml={RECORD / 'seconds.xml'}",
    ]
    if status := subprocess.run(command, cwd=ROOT, check=False).returncode:
        raise SystemExit(status)
    (RECORD / "commit").write_text(_git("rev-parse", "HEAD").strip())


class Nearest:
    """The last record, read for the lines as they are now."""

    def __init__(self) -> None:
        if not (RECORD / "commit").exists():
            raise SystemExit("no record of the tests: run `run.py record` once")
        self._commit = (RECORD / "commit").read_text()
        self._data = CoverageData(str(RECORD / "lines"))
        self._data.read()
        self._contexts = cache(self._read_contexts)

    def tests(self, file: str, line: int, last: int) -> list[str]:
        """Return tests that go through lines of a file, the nearest first.

        Args:
            file: relative to the project, of any kind.
            line: the first of the lines, from 1.
            last: the last of them.
        """
        if not file.endswith(".py"):
            return self._in_order(file, self._through_names([re.escape(Path(file).name)]))
        statement, inside, names = _around((ROOT / file).read_text("utf-8"), line, last)
        found = self._through(file, statement)
        if not found and inside:
            found = self._through(file, inside)
        if not found and names:
            found = self._through_names([rf"\b{name}\b" for name in names])
        ordered = self._in_order(file, found or self._through(file, range(1, 10_000)))
        named = [test for pattern, test in ROWS if fnmatch(file, pattern)]
        return [*named, *ordered]

    @cached_property
    def seconds(self) -> dict[str, float]:
        """Seconds that each test of the record took."""
        found = {}
        for case in ET.parse(RECORD / "seconds.xml").iter("testcase"):
            parts = case.attrib["classname"].split(".")
            if parts == [""]:
                continue  # a whole file that was skipped
            # The file may be gone since: its name tells where the classes begin.
            size = next(n for n, part in enumerate(parts, 1) if part.startswith("test_"))
            place = _module(parts[:size]).relative_to(ROOT).as_posix()
            test = "::".join([place, *parts[size:], case.attrib["name"]])
            found[test] = float(case.attrib["time"])
        return found

    @cached_property
    def first(self) -> dict[str, float]:
        """Seconds of the first test of each file: the parts that its tests share were made for it."""
        found: dict[str, float] = {}
        for test, seconds in self.seconds.items():
            found.setdefault(test.partition("::")[0], seconds)
        return found

    @cached_property
    def _by_file(self) -> dict[str, list[str]]:
        found = defaultdict(list)
        for test in self.seconds:
            found[test.partition("::")[0]].append(test)
        return found

    @cached_property
    def _lines(self) -> Counter[str]:
        """The number of lines that each test goes through."""
        counted: Counter[str] = Counter()
        query = "SELECT context, numbits FROM line_bits JOIN context ON context.id = context_id"
        with sqlite3.connect(RECORD / "lines") as data:
            for context, bits in data.execute(query):
                counted[context.partition("|")[0]] += int.from_bytes(bits, "big").bit_count()
        return counted

    def _in_order(self, file: str, tests: Iterable[str]) -> list[str]:
        """Return tests of a file with the module's name first, then those that go through little else."""
        stem = Path(file).stem.strip("_")

        def distance(test: str) -> tuple[bool, int, str]:
            name = test.partition("::")[0].rpartition("/")[2]
            return stem not in name or stem == "init", self._lines[test], test

        return sorted(set(tests), key=distance)

    def _through(self, file: str, lines: Iterable[int]) -> set[str]:
        before = self._before(file)
        contexts = self._contexts(file)
        found = {each for line in lines for each in contexts.get(before.get(line, line), ())}
        tests = {each.partition("|")[0] for each in found} - {""}
        # Lines of a fixture are noted for the first test that uses it.
        prepared = {each.partition("::")[0] for each in found if each.endswith("|setup")}
        return tests.union(*(self._by_file.get(each, []) for each in prepared))

    def _through_names(self, patterns: list[str]) -> set[str]:
        """Return tests through lines that name something, or through what names a file that does."""
        found: set[str] = set()
        # Templates may include each other in a circle.
        waiting, asked = list(patterns), set(patterns)
        while waiting:
            for file, lines in _naming(waiting.pop()).items():
                if file.endswith(".py"):
                    found |= self._through(file, lines)
                elif (name := re.escape(Path(file).name)) not in asked:
                    asked.add(name)
                    waiting.append(name)
        return found

    def _read_contexts(self, file: str) -> dict[int, list[str]]:
        return self._data.contexts_by_lineno(file)

    @cache  # noqa: B019  (there is one of it)
    def _before(self, file: str) -> dict[int, int]:
        """Return the line of the record for each line of a file that has changed since."""
        now = (ROOT / file).read_text("utf-8").splitlines()
        then = _git("show", f"{self._commit}:{file}").splitlines()
        found = {}
        for _, first, last, begin, end in SequenceMatcher(
            a=then, b=now, autojunk=False
        ).get_opcodes():
            for line in range(begin, end):
                found[line + 1] = min(first + line - begin, max(first, last - 1)) + 1
        return {} if now == then else found


def _around(text: str, line: int, last: int) -> tuple[range, range, list[str]]:
    """Return the lines of a statement, those inside of what it defines, and the names that it gives."""
    statement = range(line, last + 1)
    inside, names = range(0), []
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.stmt) or not node.lineno <= line <= (node.end_lineno or 0):
            continue
        body = getattr(node, "body", None)
        if body:
            inside = range(body[0].lineno, (node.end_lineno or 0) + 1)
            statement = range(node.lineno, max(body[0].lineno, node.lineno + 1))
        else:
            statement = range(node.lineno, (node.end_lineno or 0) + 1)
            targets = getattr(node, "targets", [getattr(node, "target", None)])
            names = [each.id for each in targets if isinstance(each, ast.Name)]
    if line not in statement:
        statement = range(line, last + 1)
    return statement, inside, names


@cache
def _naming(pattern: str) -> dict[str, list[int]]:
    found = {}
    for file in _sources():
        text = file.read_text("utf-8")
        if lines := [text.count("\n", 0, at.start()) + 1 for at in re.finditer(pattern, text)]:
            found[file.relative_to(ROOT).as_posix()] = lines
    return found


@cache
def _sources() -> list[Path]:
    return [each for top in PACKAGES for each in _files(ROOT / top)]


def _files(folder: Path) -> Iterator[Path]:
    yield from folder.rglob("*.py")
    yield from folder.rglob("*.html")


def _module(parts: list[str]) -> Path:
    return ROOT.joinpath(*parts).with_suffix(".py")


def _git(*arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout
