"""A pytest plugin that tries many mutants in one process, which keeps its fixtures.

An engine takes seconds to start and a test milliseconds: a process for each mutant would mostly
start engines. Names of mutants, each with its tests, come in a file that ``MUTANTS_TO_TRY`` names;
verdicts go out as lines of JSON to the descriptor in ``VERDICTS_TO``.
"""

from __future__ import annotations

import gc
import json
import os
from functools import _lru_cache_wrapper
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from mutmut.mutation.trampoline import set_mutant_under_test

if TYPE_CHECKING:
    from collections.abc import Sequence

KILLED, ALIVE, SPOILT = "killed", "alive", "spoilt"


class Lasting:
    """Runs a file's tests for one mutant after another.

    A verdict is `spoilt` where a test fails without the mutant too, because an earlier one has left
    something behind: nothing is known then, and the process ends.
    """

    def __init__(self, mutants: Sequence[tuple[str, Sequence[str]]], verdicts: int) -> None:
        self._mutants = mutants
        self._verdicts = verdicts
        self._failed = False
        self._mutant = ""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run all tests as they are, then those of each mutant until one fails."""
        items = session.items
        for item in items:
            if self._fails("", item):
                raise pytest.UsageError(f"{item.nodeid} fails without a mutant")
        for number, (mutant, tests) in enumerate(self._mutants):
            self._tell(mutant, "")
            verdict = self._try(mutant, [item for item in items if item.nodeid in set(tests)])
            # The first mutant in a process cannot be affected by an earlier one.
            self._tell(mutant, KILLED if verdict == SPOILT and number == 0 else verdict)
            if verdict == SPOILT:
                break
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Remember that a test or its fixtures failed."""
        self._failed |= report.failed

    def _try(self, mutant: str, items: Sequence[pytest.Item]) -> str:
        for item in items:
            if self._fails(mutant, item):
                return SPOILT if self._fails("", item) else KILLED
        return ALIVE

    def _fails(self, mutant: str, item: pytest.Item) -> bool:
        self._failed = False
        if mutant != self._mutant:
            self._mutant = mutant
            _forget_results()
        set_mutant_under_test(mutant)
        try:
            # Only module fixtures are kept: class fixtures are torn down.
            item.config.hook.pytest_runtest_protocol(
                item=item, nextitem=item.getparent(pytest.Module)
            )
        finally:
            set_mutant_under_test("")
        return self._failed

    def _tell(self, mutant: str, verdict: str) -> None:
        os.write(self._verdicts, json.dumps([mutant, verdict]).encode() + b"\n")


def _forget_results() -> None:
    """Clear our functions' caches: they may hold results of the last mutant."""
    for each in gc.get_objects():
        # Proxies of libraries may raise anything when their type is inspected.
        if type(each) is _lru_cache_wrapper and each.__module__.startswith("mast_trace"):
            each.cache_clear()


def pytest_configure(config: pytest.Config) -> None:
    """Take over the loop of tests where mutants are given."""
    if given := os.environ.get("MUTANTS_TO_TRY"):
        mutants = json.loads(Path(given).read_text())
        config.pluginmanager.register(Lasting(mutants, int(os.environ["VERDICTS_TO"])))
