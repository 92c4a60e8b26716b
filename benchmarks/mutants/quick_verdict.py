"""A pytest plugin that makes the verdict on a mutant quick and deterministic."""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import Phase, settings

if TYPE_CHECKING:
    import pytest

STATS = Path("mutmut-stats.json")
"""Written by mutmut into the folder in which it runs the tests."""

# A failing example suffices: it need not be the smallest one, nor be remembered.
settings.register_profile(
    "mutants", derandomize=True, database=None, phases=(Phase.explicit, Phase.generate)
)
settings.load_profile("mutants")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the quickest tests first, file by file, since a file may share an engine."""
    known = _durations() if STATS.exists() else {}
    seconds = {item.nodeid: known.get(item.nodeid, 0.0) for item in items}
    files: Counter[Path] = Counter()
    for item in items:
        files[item.path] += seconds[item.nodeid]
    items.sort(key=lambda item: (files[item.path], item.path, seconds[item.nodeid]))


@cache
def _durations() -> dict[str, float]:
    """Seconds that each test took; read once, before mutants are forked off."""
    found: dict[str, float] = json.loads(STATS.read_text())["duration_by_test"]
    return found
