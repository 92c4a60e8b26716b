"""A recorded run of the example program on MetaGPT answers the program itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from installed import installed

if not installed("metagpt.team"):
    pytest.skip("needs MetaGPT; `nox -s framework` has an environment", allow_module_level=True)

import metagpt_programs  # noqa: F401  # MetaGPT's settings, which it reads once
from replays import EXAMPLES, check_earlier, check_replay

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.framework("metagpt")

PROGRAM = EXAMPLES / "metagpt" / "leap_year_team.py"


@pytest.fixture(autouse=True)
def model_of_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """MetaGPT reads the model's name once: children ask the one that is set in this process."""
    monkeypatch.setenv("OPENAI_MODEL", "gpt-4o")


@pytest.mark.parametrize("script", ["never-fixed"])
def test_the_example_is_identical(
    script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Replays in a child and here, and a replay of a replay, are identical, without live calls."""
    # MetaGPT takes its settings from the home folder first, where other tests have theirs.
    monkeypatch.setenv("HOME", str(tmp_path))
    check_replay(PROGRAM, script, folder=tmp_path, keep="OPENAI_MODEL")


def test_an_earlier_record_is_identical(tmp_path: Path) -> None:
    """A run that was recorded before there were replays is replayed, and its replay is, too."""
    check_earlier("metagpt", PROGRAM, "fixed", folder=tmp_path)
