"""A recorded run of the example program on CrewAI answers the program itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from installed import installed

if not installed("crewai.crew"):
    pytest.skip("needs CrewAI; `nox -s framework` has environments", allow_module_level=True)

import crewai
import crewai_programs  # noqa: F401  # sets CrewAI's surroundings
from replays import EXAMPLES, check_earlier, check_person, check_replay

pytestmark = pytest.mark.framework("crewai")


@pytest.mark.skipif(crewai.__version__.startswith("0."), reason="the script calls tools natively")
@pytest.mark.parametrize("script", ["ordered", "ignored-stock"])
def test_the_example_is_identical(script: str, tmp_path: Path) -> None:
    """Replays in a child and here, and a replay of a replay, are identical, without live calls."""
    check_replay(EXAMPLES / "crewai_stock.py", script, folder=tmp_path)


@pytest.mark.skipif(
    not crewai.__version__.startswith("1.15."), reason="recorded with another version's prompts"
)
def test_an_earlier_record_is_identical(tmp_path: Path) -> None:
    """A run that was recorded before there were replays is replayed, and its replay is, too."""
    check_earlier("crewai", EXAMPLES / "crewai_stock.py", "ignored-stock", folder=tmp_path)


def test_a_person_is_asked_again(tmp_path: Path) -> None:
    """A replay is given the text that a person typed, and is identical."""
    check_person(Path(__file__).parent / "crewai_person.py", "Be shorter.\n\n", tmp_path)
