"""The table of operators on the command line, and which of them a self-test plants."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mast_trace.exceptions import ConfigurationError
from mast_trace_dashboards.cli.app import run
from mast_trace_lab.inject.command import planted_operators
from mast_trace_lab.inject.operators import OPERATORS

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def marked(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Marks other operators as uncertain than the table does."""
    name = "mast_trace_judge.planted.UNCERTAIN"
    return lambda *names: monkeypatch.setattr(name, frozenset(names))


def test_the_table_is_shown_without_a_run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    assert run(["inject", "--operator", "list"]) == 0
    told = capsys.readouterr().out
    for name, each in OPERATORS.items():
        (row,) = (line for line in told.splitlines() if line.startswith(f"{name} "))
        for cell in (each.fault, each.applies, each.certain, each.level, each.to_blame):
            assert cell in row
        assert ("(uncertain)" in row) == bool(each.uncertain)
        assert not each.uncertain or each.uncertain in told


def test_a_self_test_plants_uncertain_operators_only_if_asked(marked: Callable[..., None]) -> None:
    marked("2.6-number", "tool-error")
    names, left = planted_operators(())
    assert set(left) == {"2.6-number", "tool-error"}
    assert set(names) == OPERATORS.keys() - set(left)
    assert planted_operators(("2.6",))[0] == ("2.6-computed", "2.6-arguments")
    assert planted_operators(("2.6-number",)) == (("2.6-number",), ())
    marked("2.2-assume")
    with pytest.raises(
        ConfigurationError, match=r"labels of 2\.2-assume are uncertain: name an op"
    ):
        planted_operators(("2.2",))
