"""The facts of interventions in replays of a framework's team: operators, and planted errors found again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
import stock
from confirmed_planted import check_confirmed
from interventions import Stage, check_operators, check_planted, check_tools
from scripted_llm import ScriptedLLM

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class PlantedContract(ABC):
    """The facts of a team's replays.

    Attributes:
        errors: the planted errors.
        confirmed: those that are confirmed, too: the first agent's call and the last one's answer.
        recording: the frameworks that are recorded; all that are installed if absent.
        has_tools: whether the team calls tools.
    """

    errors: ClassVar[Sequence[stock.Error]] = stock.ERRORS
    confirmed: ClassVar[Sequence[stock.Error]] = (stock.ERRORS[0], stock.ERRORS[-1])
    recording: ClassVar[Sequence[str] | None] = None
    has_tools: ClassVar[bool] = True

    @abstractmethod
    def program(self, server: Any) -> str:
        """Run the team once; return the last one's words."""

    @contextmanager
    def serving(self) -> Iterator[Any]:
        """Serve the model of the team."""
        with ScriptedLLM(stock.policy) as server:
            yield server

    @pytest.fixture(scope="class")
    @classmethod
    def stage(cls) -> Iterator[Stage]:
        """The team and its model."""
        team = cls()
        with team.serving() as server:
            yield Stage(lambda: team.program(server), server)

    def pytest_generate_tests(self, metafunc: Any) -> None:
        """Give each test its errors."""
        values = {"error": self.errors, "confirmed_error": self.confirmed}
        for name, given in values.items():
            if name in metafunc.fixturenames:
                metafunc.parametrize(name, given, ids=[error.name for error in given])

    def test_a_planted_error_is_the_earliest_that_flips(self, stage: Stage, error: Any) -> None:
        """Held replays flip at the planted error alone; naive ones at the first answer, wherever it is."""
        check_planted(stage, error)

    def test_a_planted_error_is_confirmed(self, stage: Stage, confirmed_error: Any) -> None:
        """The experiment of `mast-trace confirm` proves the planted step, and no earlier one."""
        check_confirmed(stage, confirmed_error, frameworks=self.recording)

    def test_operators(self, stage: Stage) -> None:
        """Each operator serves, changes and asks what it says; a call's result and arguments are changed."""
        check_operators(stage)
        if self.has_tools:
            check_tools(stage)
