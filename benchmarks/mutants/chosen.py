"""A pytest plugin that runs chosen tests, in a given order, and tells which one failed first.

``MUTANT_TESTS`` names a file: ``{"chosen": [ids in order], "known": [ids of the record]}``. Tests that are
not in the record are younger than it: they run as well, last. The id of a file stands for all its tests. The failed one goes into
``MUTANT_FAILED``.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import Phase, settings

# A failing example suffices: it need not be the smallest one, nor be remembered.
settings.register_profile(
    "mutants", derandomize=True, database=None, phases=(Phase.explicit, Phase.generate)
)
settings.load_profile("mutants")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Choose tests; those of one file stay together, since they may share an engine."""
    given = json.loads(Path(os.environ["MUTANT_TESTS"]).read_text())
    rank = {test: place for place, test in enumerate(given["chosen"])}
    known = set(given["known"])
    whole = {test for test in rank if "::" not in test}
    left = [
        item
        for item in items
        if item.nodeid in rank
        or item.nodeid not in known
        or item.nodeid.partition("::")[0] in whole
    ]
    config.hook.pytest_deselected(items=[item for item in items if item not in left])
    best: dict[Path, int] = {}
    for item in left:
        own = rank.get(item.nodeid, len(rank))
        best[item.path] = min(own, best.get(item.path, own))
    left.sort(key=lambda item: (best[item.path], str(item.path), rank.get(item.nodeid, len(rank))))
    items[:] = left


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Write down the first that fails."""
    place = Path(os.environ["MUTANT_FAILED"])
    if report.failed and not place.exists():
        place.write_text(report.nodeid)
