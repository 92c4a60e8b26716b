"""A recorded run of the example program on AG2 1.x answers the program itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

pytest.importorskip("ag2.network", reason="needs AG2 1.x (`import ag2`)")

from replays import EXAMPLES, check_replay

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.framework("ag2")


@pytest.mark.parametrize("script", ["verified", "misread-price", "early-end"])
def test_the_example_is_identical(script: str, tmp_path: Path) -> None:
    """The replay is identical, without calls of a model or a tool."""
    check_replay(EXAMPLES / "ag2_group_chat.py", script, folder=tmp_path)
