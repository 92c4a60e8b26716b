"""The generated faults cover all failure modes, and each differs from its twin at a step of the agent that erred."""

from __future__ import annotations

from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mast_trace.taxonomy import FAILURE_MODES

if TYPE_CHECKING:
    from mast_trace.trajectory import Trajectory

FOLDER = Path(__file__).parents[1] / "benchmarks" / "faults"


@pytest.fixture
def cases(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(FOLDER))
    return import_module("generate").cases


def words(run: Trajectory) -> list[tuple[str, str, str, str, str | None]]:
    return [(each.agent, each.tool, each.arguments, each.text, each.error) for each in run.steps]


def test_sixty_runs_show_all_modes_and_name_the_step_that_erred(cases: Any) -> None:
    made = list(cases(1))
    assert Counter(case.team for case in made) == dict.fromkeys(
        ("travel", "research", "repair", "support"), 15
    )
    assert {code for case in made for code in case.modes} == set(FAILURE_MODES)
    for case in made:
        assert case.failing.steps[case.step].agent == case.agent, case.id
        assert words(case.failing) != words(case.healthy), case.id
        assert case.failing.task == case.healthy.task, case.id
        assert not case.failing.outcome, case.id


def test_a_seed_gives_the_same_words_and_another_one_others(cases: Any) -> None:
    first, again, other = (words(next(cases(seed)).failing) for seed in (1, 1, 2))
    assert first == again
    assert first != other
