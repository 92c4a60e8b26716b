"""Mutants that a test has killed, kept in the repository: a new checkout tries what has changed since.

``history/TARGET.json`` has for each function a hash of its text, as mutmut makes it, and the numbers of
the mutants that were killed, as ranges: ``{"package.module.x_function": ["1290c796a231", "1-7 9"]}``.
"""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

from mutmut.stats import status_by_exit_code

FOLDER = Path(__file__).parent / "history"
KILLED = {"killed", "timeout", "segfault"}
_NUMBER = "__mutmut_"


def path_of(target: str) -> Path:
    """Return the file of a target."""
    return FOLDER / f"{target}.json"


def write(target: str, place: Path) -> None:
    """Write mutmut's results in a target's workplace, whether it has finished or not."""
    killed: defaultdict[str, list[int]] = defaultdict(list)
    hashes: dict[str, str] = {}
    for meta in (place / "mutants").rglob("*.py.meta"):
        found = json.loads(meta.read_text())
        hashes |= _hashes(found)
        for name, code in found["exit_code_by_key"].items():
            if status_by_exit_code[code] in KILLED:
                function, _, number = name.rpartition(_NUMBER)
                killed[function].append(int(number))
    known = {name: [hashes[name], _ranges(numbers)] for name, numbers in sorted(killed.items())}
    if known:
        lines = ",\n".join(
            f"{json.dumps(name, ensure_ascii=False)}: {json.dumps(value)}"
            for name, value in known.items()
        )
        FOLDER.mkdir(exist_ok=True)
        path_of(target).write_text(f"{{\n{lines}\n}}\n")


def read(path: Path, mutants: Path) -> set[str]:
    """Return the names of mutants that were killed, of unchanged functions.

    Args:
        path: a target's file; it need not exist.
        mutants: folder in which mutmut has just written its plan.
    """
    known = json.loads(path.read_text()) if path.exists() else {}
    hashes: dict[str, str] = {}
    for meta in mutants.rglob("*.py.meta"):
        hashes |= _hashes(json.loads(meta.read_text()))
    return {
        f"{function}{_NUMBER}{number}"
        for function, (known_hash, ranges) in known.items()
        if hashes.get(function) == known_hash
        for part in ranges.split()
        for first, _, last in [part.partition("-")]
        for number in range(int(first), int(last or first) + 1)
    }


def _hashes(meta: dict[str, dict[str, str]]) -> dict[str, str]:
    functions = {name.rpartition(_NUMBER)[0] for name in meta["exit_code_by_key"]}
    hashes = meta["hash_by_function_name"]
    return {name: hashes[name.rpartition(".")[2]] for name in functions}


def _ranges(numbers: list[int]) -> str:
    numbers = sorted(numbers)
    begins = [numbers[0], *(after for before, after in pairwise(numbers) if after > before + 1)]
    ends = [*(before for before, after in pairwise(numbers) if after > before + 1), numbers[-1]]
    return " ".join(
        f"{begin}-{end}" if end > begin else str(begin)
        for begin, end in zip(begins, ends, strict=True)
    )
