"""Folders in which mutmut works, one for each target, and what it finds there."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tomllib

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build" / "mutants"
# What tests read beside their own folder.
BESIDE = ("examples", "tests", "docs", "benchmarks", "README.md", "constraints.txt")
KILLED = {"killed", "timeout", "segfault"}


@dataclass(frozen=True)
class Target:
    """Modules that are mutated together.

    Attributes:
        name: by which it is asked for.
        folder: of the import package, such as ``judge/mast_trace_judge``.
        modules: patterns of the mutated files below it.
        tests: what judges them.
        at_import: functions that run only while a module is imported, and what judges each; their
            mutants are tried in processes of their own, because mutmut imports everything once.
    """

    name: str
    folder: str
    modules: tuple[str, ...]
    tests: tuple[str, ...]
    at_import: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def workplace(self) -> Path:
        """Where its mutants live."""
        return BUILD / self.name


def lay_out(target: Target) -> Path:
    """Lay out what mutmut expects: package and tests side by side, and its own settings."""
    place = target.workplace
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
    _follow_modules(target, place / "mutants" / package.name)
    for name in BESIDE:
        link = place / name
        if not link.is_symlink():
            link.symlink_to(ROOT / name)
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    settings["timeout"] = 60
    mutmut = {
        "source_paths": [package.name],
        "only_mutate": [f"{package.name}/{pattern}" for pattern in target.modules],
        "also_copy": list(BESIDE),
        "pytest_add_cli_args": [
            *("-p", "quick_first", "-p", "no:cacheprovider", "-p", "no:xdist"),
            *("-m", "not slow and not long"),
        ],
        "pytest_add_cli_args_test_selection": list(target.tests),
        # The engine's threads do not live through a fork.
        "process_isolation": "forkserver",
        # A mutant that hangs is waited for so many times as long as its tests take.
        "timeout_multiplier": 6.0,
        "timeout_constant": 5.0,
        "mutate_only_covered_lines": False,
    }
    (place / "pyproject.toml").write_text(
        _toml("tool.pytest.ini_options", settings) + _toml("tool.mutmut", mutmut)
    )
    return place


def _follow_modules(target: Target, copied: Path) -> None:
    """Have modules mutated that were not, and forget those that are a target's no more."""
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
        # Nobody has yet seen which tests run them.
        (copied.parent / "mutmut-stats.json").unlink(missing_ok=True)


def forget_survivors(place: Path) -> None:
    """Have the tests measured anew, and the mutants tried that none of them killed."""
    (place / "mutants" / "mutmut-stats.json").unlink(missing_ok=True)
    for meta in (place / "mutants").rglob("*.py.meta"):
        kept = json.loads(meta.read_text())
        for name, code in kept["exit_code_by_key"].items():
            if _status(code) not in KILLED:
                kept["exit_code_by_key"][name] = None
        meta.write_text(json.dumps(kept, indent=4))


def _toml(section: str, values: dict[str, Any]) -> str:
    lines = [f"{name} = {json.dumps(value)}" for name, value in values.items()]
    return "\n".join([f"[{section}]", *lines, ""])


def statuses(place: Path) -> dict[str, str]:
    """Return what became of each mutant, by its name."""
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
