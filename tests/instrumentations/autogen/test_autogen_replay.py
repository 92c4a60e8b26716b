"""A recorded run of the example program on AG2 classic answers the program itself."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("autogen.agentchat.group", reason="needs AG2 classic (`import autogen`)")

from replays import EXAMPLES, check_earlier, check_person, check_replay

pytestmark = pytest.mark.framework("autogen")


@pytest.mark.parametrize("script", ["refunded", "wrong-policy"])
def test_the_example_is_identical(script: str, tmp_path: Path) -> None:
    """Replays in a child and here, and a replay of a replay, are identical, without live calls."""
    check_replay(EXAMPLES / "autogen_group_chat.py", script, folder=tmp_path)


def test_an_earlier_record_is_identical(tmp_path: Path) -> None:
    """A run that was recorded before there were replays is replayed, and its replay is, too."""
    check_earlier("autogen", EXAMPLES / "autogen_group_chat.py", "wrong-policy", folder=tmp_path)


def test_a_person_is_asked_again(tmp_path: Path) -> None:
    """A replay is given the text that a person typed, and is identical."""
    check_person(Path(__file__).parent / "autogen_person.py", "A red one.\n\nexit\n", tmp_path)
