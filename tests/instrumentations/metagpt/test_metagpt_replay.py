"""A recorded run of the example program on MetaGPT answers the program itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from installed import installed

if not installed("metagpt.team"):
    pytest.skip("needs MetaGPT; `nox -s framework` has an environment", allow_module_level=True)

from replays import EXAMPLES, check_replay

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.framework("metagpt")


@pytest.mark.parametrize("script", ["never-fixed"])
def test_the_example_is_identical(
    script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The replay is identical, without calls of a model or a tool."""
    # MetaGPT takes its settings from the home folder first, where other tests have theirs.
    monkeypatch.setenv("HOME", str(tmp_path))
    check_replay(EXAMPLES / "metagpt/leap_year_team.py", script, folder=tmp_path)
