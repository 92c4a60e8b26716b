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
    """Replays in a child and here, and a replay of a replay, are identical, without live calls."""
    check_replay(EXAMPLES / "ag2_group_chat.py", script, folder=tmp_path)
