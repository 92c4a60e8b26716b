"""Folders in which mutmut works, one for each target, and its results there."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomllib
from history import KILLED

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build" / "mutants"
# Files that tests read beside their own folder.
BESIDE = ("examples", "tests", "docs", "benchmarks", "README.md", "constraints.txt")
# A check for garbage takes as long as a quick test.
PLUGINS = ("quick_verdict", "no:cacheprovider", "no:xdist", "no:unraisableexception")


@dataclass(frozen=True)
class Target:
    """Modules that are mutated together.

    Attributes:
        name: of the target, on the command line.
        folder: of the import package, such as ``judge/mast_trace_judge``.
        modules: patterns of the mutated files below it.
        tests: those that judge them.
        left_out: patterns of lines that stay as they are.
        environment: of a framework that cannot be installed beside the others, a file of
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
        """The folder of its mutants."""
        return BUILD / self.name


def lay_out(target: Target) -> Path:
    """Lay out the folder that mutmut expects: package and tests side by side, and its own settings."""
    place = target.workplace
    package = ROOT / target.folder
    for file in package.rglob("*"):
        copied = place / package.name / file.relative_to(package)
        if file.is_dir() or file.suffix == ".pyc":
            continue
        copied.parent.mkdir(parents=True, exist_ok=True)
        # An unchanged file keeps its time, by which mutmut decides on regenerating mutants.
        if not copied.exists() or copied.read_bytes() != file.read_bytes():
            shutil.copy(file, copied)
            (place / "mutants" / package.name / file.relative_to(package)).unlink(missing_ok=True)
    _follow_modules(target, place / "mutants" / package.name)
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
        "pytest_add_cli_args": [
            *(f"-p{plugin}" for plugin in PLUGINS),
            *("-m", "not slow and not long"),
        ],
        "pytest_add_cli_args_test_selection": list(target.tests),
        # The engine's threads do not live through a fork.
        "process_isolation": "forkserver",
        # Seconds a mutant may take more than its tests do, and how often all that: a test that
        # waits for ever ends by itself before.
        "timeout_constant": 5.0,
        "timeout_multiplier": 4.0,
        "mutate_only_covered_lines": False,
    }
    (place / "pyproject.toml").write_text(
        _toml("tool.pytest.ini_options", settings) + _toml("tool.mutmut", mutmut)
    )
    return place


def _follow_modules(target: Target, copied: Path) -> None:
    """Have added modules mutated, and forget removed ones."""
    package = ROOT / target.folder
    wanted = {
        copied / file.relative_to(package)
        for pattern in target.modules
        for file in package.glob(pattern)
    }
    known = {meta.with_suffix(""): meta for meta in copied.rglob("*.py.meta")}
    for file, meta in known.items():
        if file not in wanted:
            meta.unlink()
            file.unlink(missing_ok=True)
    for file in wanted - known.keys():
        file.unlink(missing_ok=True)
        # mutmut does not know yet which tests run them.
        (copied.parent / "mutmut-stats.json").unlink(missing_ok=True)


def try_again(target: Target) -> None:
    """Forget the survivors of tests that have changed, and the duration of tests."""
    place = target.workplace / "mutants"
    tests = [ROOT / each.partition("::")[0] for each in target.tests if each[0] != "-"]
    files = [file for each in tests for file in (each.rglob("*.py") if each.is_dir() else [each])]
    texts = b"".join(file.read_bytes() for file in sorted(files))
    # Taken before the tests run: those that are edited meanwhile are others at the next run.
    tried, now = target.workplace / "tests.sha256", hashlib.sha256(texts).hexdigest()
    if tried.exists() and tried.read_text() == now:
        return
    tried.write_text(now)
    (place / "mutmut-stats.json").unlink(missing_ok=True)
    for path in place.rglob("*.py.meta"):
        meta = json.loads(path.read_text())
        for name, code in meta["exit_code_by_key"].items():
            if _status(code) not in KILLED:
                meta["exit_code_by_key"][name] = None
        path.write_text(json.dumps(meta))


def python_of(target: Target) -> str:
    """Return the interpreter of a target's tests; made as by `nox -s framework`."""
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


def _toml(section: str, values: dict[str, Any]) -> str:
    lines = [f"{name} = {json.dumps(value)}" for name, value in values.items()]
    return "\n".join([f"[{section}]", *lines, ""])


def statuses(place: Path) -> dict[str, str]:
    """Return the result of each mutant, by its name."""
    found: dict[str, str] = {}
    for meta in (place / "mutants").rglob("*.py.meta"):
        codes = json.loads(meta.read_text())["exit_code_by_key"]
        found |= {name: _status(code) for name, code in codes.items()}
    return found


def _status(code: int | None) -> str:
    from mutmut.stats import status_by_exit_code

    return status_by_exit_code[code]


def difference(place: Path, mutant: str) -> str:
    """Return the lines that a mutant changes, before and after."""
    command = [sys.executable, "-m", "mutmut", "show", mutant]
    shown = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
    changed = [line for line in shown.stdout.splitlines() if line[:1] in {"+", "-"}]
    return "\n".join(line for line in changed if line[:3] not in {"+++", "---"})
