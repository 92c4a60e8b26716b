"""Puts one-line mistakes into risky modules, one at a time, and checks that a test fails.

``risky.toml`` lists the modules, ``mutations.py`` makes the mistakes, ``nearest.py`` finds the tests that
have to notice. A run can be broken off and taken up again: verdicts add up in ``tried.jsonl`` and count
until the function that is mutated changes; what survived is tried again. ``harmless.toml`` says
of mistakes that no test notices why they do no harm.

::

    python benchmarks/mutants/run.py record                  # once: which test goes through which line
    python benchmarks/mutants/run.py sample --seed 7         # 400 mistakes at random over all modules
    python benchmarks/mutants/run.py files 'collector/mast_trace_collector/spool/*.py'
    python benchmarks/mutants/run.py table                   # only the page, from stored verdicts
"""

from __future__ import annotations

import argparse
import ast
import datetime as dt
import fnmatch
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING

import mutations
import nearest
import tomllib
import tried
from nearest import PACKAGES, ROOT
from tried import Tried

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

HERE = Path(__file__).parent
LANES = ROOT / "build" / "mutants"
MEMORY = Path("/dev/shm")
"""A folder in memory, if there is one: a sync takes no time there."""
ROUNDS = ((10.0, 8), (60.0, 30))
"""Seconds of the nearest tests, and files of them at most: few at first, more for what survives them."""
LIMIT = 300
"""Seconds after which a round has hung on a mistake."""
HUNG = -1
"""Status of such a round."""


@dataclass(frozen=True)
class Mistake:
    """A mistake that is to be tried."""

    file: str
    scope: str
    number: int
    mutant: mutations.Mutant

    @property
    def key(self) -> tuple[str, str, int]:
        """The same for the same mistake in the same function."""
        return self.file, self.scope, self.number

    def judged(self, verdict: str, by: str = "") -> Tried:
        """Return it with a verdict of today."""
        made = self.mutant
        today = dt.datetime.now(dt.timezone.utc).date().isoformat()
        place = (self.file, self.scope, self.number, made.line)
        return Tried(*place, made.was, made.is_now, verdict, by, today, _commit())


def main() -> int:
    """Run what is asked for; the status is 1 where a mistake survives that does harm."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--at-once", type=int, default=2, help="processes side by side (2)")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("record", help="run all tests once, to learn which lines each goes through")
    sample = commands.add_parser("sample", help="mistakes at random: a module, then one in it")
    sample.add_argument("--seed", type=int, default=0)
    sample.add_argument("--number", type=int, default=400)
    files = commands.add_parser("files", help="all mistakes of some modules")
    files.add_argument(
        "patterns", nargs="+", help="below the project's root, such as 'sdk/**/*.py'"
    )
    commands.add_parser("table", help="write the page from stored verdicts")
    given = parser.parse_args()
    if given.command == "record":
        nearest.record(given.at_once + 1)
        return 0
    if given.command == "table":
        tried.write_page()
        return 0
    if given.command == "sample":
        mistakes = list(_sample(given.seed, given.number))
    else:
        chosen = [each for each in risky() if any(fnmatch.fnmatch(each, p) for p in given.patterns)]
        mistakes = [mistake for file in chosen for mistake in of_file(file)]
    alive = try_all(mistakes, given.at_once)
    tried.write_page()
    for each in alive:
        print(f"--- {each.file}:{each.line}: {each.verdict}\n-  {each.was}\n+  {each.is_now}")
    print(f"{len(alive)} of {len(mistakes)} are not noticed")
    return int(bool(alive))


def risky() -> list[str]:
    """Return the modules of ``risky.toml``, each once, in the order of their names."""
    groups = tomllib.loads((HERE / "risky.toml").read_text()).values()
    patterns = [pattern for group in groups for pattern in group["files"]]
    found = {file for pattern in patterns for file in ROOT.glob(pattern)}
    return sorted(file.relative_to(ROOT).as_posix() for file in found)


@cache
def of_file(file: str) -> list[Mistake]:
    """Return the mistakes that can be made in a module."""
    text = (ROOT / file).read_text("utf-8")
    numbers: Counter[str] = Counter()
    found = []
    scopes = _scopes(file, text)
    for mutant in mutations.of_file(ROOT / file):
        scope = scopes[mutant.line - 1]
        found.append(Mistake(file, scope, numbers[scope], mutant))
        numbers[scope] += 1
    return found


def try_all(mistakes: list[Mistake], at_once: int) -> list[Tried]:
    """Try mistakes whose verdict is not known; returns those that are not noticed and do harm."""
    known = {each.key: each for each in tried.known()}
    killed = {key for key, each in known.items() if each.verdict == "killed"}
    waiting = [each for each in mistakes if each.key not in killed]
    print(f"{len(mistakes)} mistakes, {len(mistakes) - len(waiting)} known to be noticed")
    tests = nearest.Nearest()
    lanes: SimpleQueue[Path] = SimpleQueue()
    for number in range(at_once):
        lanes.put(lay_out(LANES / f"lane-{number}"))
    lock = threading.Lock()

    def attempt(mistake: Mistake) -> Tried:
        with lock:
            mutant = mistake.mutant
            order = tests.tests(mistake.file, mutant.line, mutant.last)
            changed = mutant.make()
        lane = lanes.get()
        try:
            found = _try(mistake, changed, order, tests, lane)
        finally:
            lanes.put(lane)
        with lock, tried.TRIED.open("a") as out:
            out.write(json.dumps(list(vars(found).values()), ensure_ascii=False) + "\n")
            print(f"{found.verdict} {found.file}:{found.line} {found.by}", flush=True)
        return found

    with ThreadPoolExecutor(at_once) as pool:
        known |= {each.key: each for each in pool.map(attempt, waiting)}
    spoilt = _failing_anyway({known[each.key].by for each in waiting} - {"", "hung"}, lanes.get())
    for test in spoilt:
        print(f"{test} fails without a mistake too: its verdicts do not count")
    harmless = tried.harmless()
    alive = [known[each.key] for each in mistakes]
    return [
        each
        for each in alive
        if (each.verdict != "killed" or each.by in spoilt) and not tried.is_harmless(each, harmless)
    ]


def lay_out(lane: Path) -> Path:
    """Copy the project into a folder; files that are equal stay, with their time and what is compiled."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    names = set(listed.stdout.splitlines())
    for name in names:
        source, copied = ROOT / name, lane / name
        if not source.exists() or (copied.exists() and copied.read_bytes() == source.read_bytes()):
            continue
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, copied)
    for copied in [*lane.rglob("*.py"), *lane.rglob("*.html"), *lane.rglob("*.toml")]:
        if copied.relative_to(lane).as_posix() not in names:
            copied.unlink()
    shared = lane.parent / "shared"
    if (ROOT.parent / "shared").exists() and not shared.exists():
        shared.symlink_to(ROOT.parent / "shared")
    subprocess.run(
        [sys.executable, "-m", "compileall", "-q", *PACKAGES, "tests"], cwd=lane, check=False
    )
    return lane


def _sample(seed: int, number: int) -> Iterator[Mistake]:
    """Yield mistakes at random: a module first, so that a long one has no more of them than a short one."""
    chance = random.Random(seed)
    files = risky()
    taken: set[tuple[str, str, int]] = set()
    while len(taken) < number:
        # Some modules have nothing to get wrong.
        if not (possible := of_file(chance.choice(files))):
            continue
        mistake = chance.choice(possible)
        if mistake.key not in taken:
            taken.add(mistake.key)
            yield mistake


def _try(
    mistake: Mistake, changed: str, order: list[str], tests: nearest.Nearest, lane: Path
) -> Tried:
    if not order:
        return mistake.judged("untested")
    place = lane / mistake.file
    original, before = place.read_bytes(), place.stat()
    place.write_text(changed, "utf-8")
    done: set[str] = set()
    try:
        for budget, most in ROUNDS:
            chosen = _within([each for each in order if each not in done], tests, budget, most)
            if chosen and (by := _first_failed(chosen, tests.seconds, lane)):
                return mistake.judged("killed", by)
            done.update(chosen)
    finally:
        place.write_bytes(original)
        # The time says that the compiled file is this one.
        os.utime(place, ns=(before.st_atime_ns, before.st_mtime_ns))
    return mistake.judged("survived")


def _within(order: list[str], tests: nearest.Nearest, budget: float, most: int) -> list[str]:
    """Return the first tests of an order that take so many seconds, of so many files at most.

    One that takes longer, with the parts that the tests of its file share, is left out; the first stays if
    all do.
    """
    chosen: list[str] = []
    files: set[str] = set()
    order = [each for each in order if (ROOT / each.partition("::")[0]).exists()]
    for test in order:
        file = test.partition("::")[0]
        if len(files | {file}) > most:
            continue
        takes = tests.seconds.get(test, 0.0)
        if file not in files:
            takes = max(takes, tests.first.get(file, 0.0))
        if takes <= budget:
            budget -= takes
            chosen.append(test)
            files.add(file)
    return chosen or order[:1]


def _first_failed(chosen: list[str], known: Iterable[str], lane: Path) -> str:
    """Run tests in a lane; returns the first that fails, `hung`, or nothing."""
    given, failed = lane / "build" / "chosen.json", lane / "build" / "failed"
    given.parent.mkdir(exist_ok=True)
    failed.unlink(missing_ok=True)
    given.write_text(json.dumps({"chosen": chosen, "known": list(known)}))
    files = list(dict.fromkeys(test.partition("::")[0] for test in chosen))
    status = _pytest(lane, given, failed, "-x", *files)
    if status == HUNG:
        return "hung"
    if failed.exists():
        return failed.read_text()
    # 2 is a file of tests that cannot be imported, 5 says that none was found.
    return {0: "", 5: ""}.get(status, f"pytest ends with status {status}")


def _pytest(lane: Path, given: Path, failed: Path, *arguments: str) -> int:
    path = [*(str(lane / each) for each in PACKAGES), str(HERE)]
    environment = {
        "PYTHONPATH": os.pathsep.join(path),
        "PYTHONDONTWRITEBYTECODE": "1",
        "MUTANT_TESTS": str(given),
        "MUTANT_FAILED": str(failed),
        "TMPDIR": str(_temporary(lane)),
    }
    options = (
        *("-q", "-pchosen", "-pno:cacheprovider", "-pno:langsmith_plugin", "--assert=plain"),
        *("--timeout=60", "--timeout-method=thread", "-m", "not long and not documents"),
    )
    run = {
        "folder": str(lane),
        "environment": environment,
        "path": path,
        "arguments": [*options, *arguments],
        "limit": LIMIT,
    }
    process = _warm(lane)
    assert process.stdin and process.stdout
    process.stdin.write(json.dumps(run) + "\n")
    process.stdin.flush()
    answer = process.stdout.readline()
    shutil.rmtree(_temporary(lane), ignore_errors=True)
    return int(answer)


@cache
def _warm(lane: Path) -> subprocess.Popen[str]:
    """Return the process that runs the tests of a lane; it ends with this one."""
    command = [sys.executable, "-B", str(HERE / "warm.py")]
    return subprocess.Popen(
        command, cwd=lane, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def _temporary(lane: Path) -> Path:
    place = (MEMORY if MEMORY.is_dir() else lane / "build") / f"mutants-{lane.name}"
    place.mkdir(parents=True, exist_ok=True)
    return place


def _failing_anyway(tests: set[str], lane: Path) -> set[str]:
    """Return those of the tests that fail without any mistake."""
    failing: set[str] = set()
    left = sorted(tests)
    while left:
        found = _first_failed(left, left, lane)
        if not found:
            break
        failing.add(found)
        left = [each for each in left if each != found]
    return failing


def _scopes(file: str, text: str) -> list[str]:
    """Return for each line the hash of the function, or else of the statement, that it is in."""
    lines = text.splitlines() or [""]
    found = [_hash(line) for line in lines]
    if not file.endswith(".py"):
        return found
    for node in sorted(
        (each for each in ast.walk(ast.parse(text)) if isinstance(each, ast.stmt)),
        key=lambda each: (isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef)), -each.lineno),
    ):
        if not isinstance(node, ast.ClassDef):
            begin, end = node.lineno - 1, node.end_lineno or node.lineno
            found[begin:end] = [_hash("\n".join(lines[begin:end]))] * (end - begin)
    return found


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


@cache
def _commit() -> str:
    command = ["git", "rev-parse", "--short", "HEAD"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
