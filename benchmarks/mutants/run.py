"""Puts one-line mistakes into important modules, one at a time, and sees whether a test fails.

The mutants are made by mutmut. ``targets.toml`` says which modules are mutated and which tests judge
them, ``judged.toml`` what was found of each mutant that no test kills. A run can be broken off and
taken up again: what is known stays in ``build/mutants``, until the mutated function or its tests
change. Results are written to ``results.json``, from which the table in ``README.md`` is made.

::

    python benchmarks/mutants/run.py                # all targets
    python benchmarks/mutants/run.py rules alerts   # these
    python benchmarks/mutants/run.py --table        # only the page, from stored results
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomllib

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
BUILD = ROOT / "build" / "mutants"
RESULTS, PAGE = HERE / "results.json", HERE / "README.md"
# What tests read beside their own folder.
BESIDE = ("examples", "tests", "docs", "benchmarks", "README.md", "constraints.txt")
# What looks for garbage takes as long as a quick test.
PLUGINS = ("no:cacheprovider", "no:xdist", "no:unraisableexception", "quick_verdict")
# Where a sync takes no time; most of what the spool's tests take elsewhere.
MEMORY = Path("/dev/shm")
BEGIN, END = "<!-- results -->\n", "<!-- end of results -->\n"
KILLED, SURVIVED = {"killed", "timeout", "segfault"}, {"survived", "no tests"}
LEAST = 90.0
"""Percent of the mutants of a target that must be killed, those judged harmless left out."""


@dataclass(frozen=True)
class Target:
    """Modules that are mutated together.

    Attributes:
        name: by which it is asked for.
        folder: of the import package, such as ``judge/mast_trace_judge``.
        modules: patterns of the mutated files below it.
        tests: what judges them.
        left_out: patterns of lines that stay as they are.
        environment: that of a framework which cannot live beside the others, a file of
            ``tests/environments`` without its suffix.
    """

    name: str
    folder: str
    modules: tuple[str, ...]
    tests: tuple[str, ...]
    left_out: tuple[str, ...] = ()
    environment: str = ""

    @property
    def workplace(self) -> Path:
        """Where its mutants live."""
        return BUILD / self.name


def main() -> int:
    """Run what is asked for; the status is 1 where a mutant survives that nobody has judged."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("targets", nargs="*", help="names in targets.toml; all if none is given")
    parser.add_argument("--table", action="store_true", help="write the page from stored results")
    given = parser.parse_args()
    targets = {name: Target(name, **values) for name, values in _read("targets.toml").items()}
    if unknown := set(given.targets) - targets.keys():
        parser.error(f"no target {', '.join(sorted(unknown))}; there are {', '.join(targets)}")
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    failed = False
    for name in [] if given.table else given.targets or targets:
        results[name] = result = _run(targets[name])
        RESULTS.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")
        failed |= bool(result["open"]) or result["percent"] < LEAST
    before, _, rest = PAGE.read_text().partition(BEGIN)
    PAGE.write_text(before + BEGIN + table(results) + END + rest.partition(END)[2])
    return int(failed)


def table(results: dict[str, Any]) -> str:
    """Return the table of results in Markdown."""
    lines = ["| modules | mutants | killed | harmless | open | killed of the harmful | measured |"]
    lines.append("|---|---|---|---|---|---|---|")
    for name, r in sorted(results.items()):
        lines.append(
            f"| {name} | {r['mutants']} | {r['killed']} | {r['harmless']} | {len(r['open'])} | "
            f"{r['percent']} % | {r['date']}, {r['commit']} |"
        )
    return "\n".join([*lines, ""])


def _run(target: Target) -> dict[str, Any]:
    place = target.workplace
    _copy(target, place)
    _try_again(target, place)
    environment = {
        **os.environ,
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": str(HERE),
        "MAST_TRACE_DATA": os.environ.get("MAST_TRACE_DATA", str(ROOT / ".." / "shared" / "data")),
    }
    children = os.environ.get("MUTANTS_AT_ONCE", "2")
    command = [_python(target), "-m", "mutmut", "run", "--max-children", children]
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        environment["TMPDIR"] = folder
        done = subprocess.run(command, cwd=place, env=environment, check=False)
    # Broken off, mutmut may leave half a file behind; the next run makes it anew.
    found = {} if done.returncode else _statuses(place)
    if not found or "not checked" in found.values():
        raise SystemExit(f"mutmut did not finish {target.name}: run it again to go on")
    judged = _read("judged.toml").get(target.name, {})
    alive = {name for name, status in found.items() if status not in KILLED}
    counted = Counter(found.values())
    killed = sum(counted[status] for status in KILLED)
    harmless = alive & judged.keys()
    print(f"{target.name}: {dict(counted)}")
    for name in sorted(alive - harmless):
        print(f"--- {name}: {found[name]}\n{_difference(place, name)}")
    return {
        "mutants": len(found),
        "killed": killed,
        "harmless": len(harmless),
        "open": sorted(alive - harmless),
        "percent": round(100 * killed / max(1, len(found) - len(harmless)), 1),
        "date": dt.datetime.now(dt.timezone.utc).date().isoformat(),
        "commit": _commit(),
    }


def _python(target: Target) -> str:
    """The interpreter that has what the target's tests need; made as `nox -s framework` makes it."""
    if not target.environment:
        return sys.executable
    place = BUILD / "environments" / target.environment
    python = str(place / "bin" / "python")
    listed = ROOT / "tests" / "environments" / f"{target.environment}.txt"
    overrides = listed.with_suffix(".overrides")
    if not place.exists():
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        subprocess.run(["uv", "venv", "-q", "--python", version, str(place)], check=True)
    install = ["uv", "pip", "install", "-q", "--python", python, "-e", ".", "-r", str(listed)]
    install += ["--group", "test", "--group", "mutants"]
    install += ["--overrides", str(overrides)] if overrides.exists() else []
    subprocess.run(install, cwd=ROOT, check=True)
    return python


def _copy(target: Target, place: Path) -> None:
    """Lay out what mutmut expects: package and tests side by side, and its own settings."""
    package = ROOT / target.folder
    for file in package.rglob("*"):
        copied = place / package.name / file.relative_to(package)
        if file.is_dir() or file.suffix == ".pyc":
            continue
        copied.parent.mkdir(parents=True, exist_ok=True)
        # A file that is as before keeps its time, by which mutmut knows what to make again.
        if not copied.exists() or copied.read_bytes() != file.read_bytes():
            shutil.copy(file, copied)
            (place / "mutants" / package.name / file.relative_to(package)).unlink(missing_ok=True)
    for name in BESIDE:
        link = place / name
        if not link.is_symlink():
            link.symlink_to(ROOT / name)
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    settings["timeout"] = 30
    # At once: by a signal, the test's fixtures would wait for the same thing again.
    settings["timeout_method"] = "thread"
    settings["tmp_path_retention_policy"] = "none"
    mutmut = {
        "source_paths": [package.name],
        "do_not_mutate_patterns": list(target.left_out),
        "only_mutate": [f"{package.name}/{pattern}" for pattern in target.modules],
        "also_copy": list(BESIDE),
        "pytest_add_cli_args": [f"-p{plugin}" for plugin in PLUGINS],
        "pytest_add_cli_args_test_selection": list(target.tests),
        # The engine's threads do not live through a fork.
        "process_isolation": "forkserver",
        "mutate_only_covered_lines": False,
        # Seconds a mutant may take more than its tests do, and how often all that: a test that
        # waits for ever ends by itself before.
        "timeout_constant": 5.0,
        "timeout_multiplier": 4.0,
    }
    (place / "pyproject.toml").write_text(
        _toml("tool.pytest.ini_options", settings) + _toml("tool.mutmut", mutmut)
    )


def _try_again(target: Target, place: Path) -> None:
    """Forget what survived tests that have changed since."""
    tests = [ROOT / each for each in target.tests]
    files = [file for each in tests for file in (each.rglob("*.py") if each.is_dir() else [each])]
    changed = max(file.stat().st_mtime for file in files)
    for path in (place / "mutants").rglob("*.py.meta"):
        if path.stat().st_mtime < changed:
            meta = json.loads(path.read_text())
            for name, status in _named(meta).items():
                if status in SURVIVED:
                    meta["exit_code_by_key"][name] = None
            path.write_text(json.dumps(meta))


def _toml(section: str, values: dict[str, Any]) -> str:
    lines = [f"{name} = {json.dumps(value)}" for name, value in values.items()]
    return "\n".join([f"[{section}]", *lines, ""])


def _statuses(place: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    for path in (place / "mutants").rglob("*.py.meta"):
        found |= _named(json.loads(path.read_text()))
    return found


def _named(meta: dict[str, Any]) -> dict[str, str]:
    from mutmut.stats import status_by_exit_code

    codes = meta["exit_code_by_key"]
    return {name: status_by_exit_code[code] for name, code in codes.items()}


def _difference(place: Path, mutant: str) -> str:
    command = [sys.executable, "-m", "mutmut", "show", mutant]
    shown = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
    changed = [line for line in shown.stdout.splitlines() if line[:1] in {"+", "-"}]
    return "\n".join(line for line in changed if line[:3] not in {"+++", "---"})


def _commit() -> str:
    command = ["git", "rev-parse", "--short", "HEAD"]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()


def _read(name: str) -> dict[str, Any]:
    path = HERE / name
    return tomllib.loads(path.read_text()) if path.exists() else {}


if __name__ == "__main__":
    sys.exit(main())
