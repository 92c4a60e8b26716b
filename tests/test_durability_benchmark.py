"""The table of the kills is what was recorded, and nothing that was recorded is a loss."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from types import ModuleType

FOLDER = Path(__file__).parents[1] / "benchmarks" / "durability"


@pytest.fixture(scope="module")
def cases() -> ModuleType:
    return loaded("cases")


@pytest.fixture(scope="module")
def report(cases: ModuleType) -> ModuleType:
    assert cases
    return loaded("report")


def loaded(name: str) -> ModuleType:
    """A module of the benchmark, whose modules import each other by their plain names."""
    sys.path.insert(0, str(FOLDER))
    try:
        spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(FOLDER))
    return module


def test_the_table_is_of_the_recorded_rounds(report: ModuleType, cases: ModuleType) -> None:
    text = (FOLDER / "README.md").read_text()
    assert f"{report.BEGIN}\n{report.table(cases.recorded())}\n{report.END}" in text


def test_every_case_was_killed_and_no_span_was_lost_or_doubled(cases: ModuleType) -> None:
    outcomes = cases.recorded()
    assert {each.case for each in outcomes} == set(cases.all_cases())
    assert sum(each.kills for each in outcomes) >= 1000
    assert sum(each.acknowledged for each in outcomes) > 100_000
    assert [each for each in outcomes if each.lost or each.doubled or each.failed_starts] == []


def test_a_loss_would_be_seen_in_the_table(report: ModuleType, cases: ModuleType) -> None:
    case = cases.all_cases()[0]
    shared = {"kind": case.kind, "command": case.command, "protocol": case.protocol}
    numbers = {"kills": 10, "starts": 11, "failed_starts": 1, "unanswered": 5, "doubled": 3}
    made = cases.Outcome(
        **shared, **numbers, seed=1, commit="c", acknowledged=100, lost=2, seconds=9.0
    )
    row = report.table([made]).splitlines()[2]
    assert row == "| under load | 10 | 11 | 100 | 5 | 2 | 3 | 1 |"


def test_the_case_with_the_fewest_kills_comes_next(cases: ModuleType) -> None:
    outcomes = cases.recorded()
    case = cases.least_tested(outcomes)
    assert case in cases.all_cases()
    assert cases.least_tested([]) == cases.all_cases()[0]
