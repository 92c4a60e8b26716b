"""A plugin of pytest under which a mutant dies soon: quick tests first, examples as they are found.

Tests of one file stay together, because they may share what is expensive to start.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import Phase, settings

if TYPE_CHECKING:
    import pytest

STATS = Path("mutmut-stats.json")
"""Where mutmut keeps, among others, how long each test takes."""

# A smaller example of the same failure would help nobody here.
settings.register_profile("mutants", phases=[Phase.explicit, Phase.reuse, Phase.generate])
settings.load_profile("mutants")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order files, and the tests of each, by how long they took on the code as it is."""
    if not STATS.exists():
        return
    seconds: dict[str, float] = json.loads(STATS.read_text("utf-8"))["duration_by_test"]
    of_file: Counter[str] = Counter()
    for item in items:
        of_file[item.location[0]] += seconds.get(item.nodeid, 0.0)
    items.sort(
        key=lambda item: (
            of_file[item.location[0]],
            item.location[0],
            seconds.get(item.nodeid, 0.0),
        )
    )
