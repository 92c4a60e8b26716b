"""A replayed program that asks a person gets the recorded texts, and then the end of the input."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mast_trace.messages import Message
from mast_trace.replay.player import Player
from mast_trace.replay.tape import Exchange, Execution, Tape
from mast_trace_instrumentations.replay.interception import HumanInput

if TYPE_CHECKING:
    from collections.abc import Sequence

TYPED = (("yes", "of the tool"), ("kettle", ""), ("red", "of another"))
REFUSED = (
    "The program asks a person for input ({}), and the record has no text for it. Texts that are typed "
    "are recorded from this version on, with capture_content on."
)


@pytest.mark.parametrize(
    ("exchanges", "executions", "prompt", "refused"),
    [
        ((), (), "Which item? ", None),
        ((Exchange("a", (), Message("1")),), (), " Which item? ", "Which item?"),
        ((), (Execution("a", "look", "{}", "2"),), " ", "a prompt without text"),
    ],
    ids=["at the end", "a model is asked later", "a tool is called later"],
)
def test_recorded_texts_are_typed_once(
    exchanges: Sequence[Exchange],
    executions: Sequence[Execution],
    prompt: str,
    refused: str | None,
) -> None:
    """A question more is the first divergence, unless the program has made all its calls."""
    answered = Execution("a", "ask", "{}", "1", span_id="of the tool")
    tape = Tape("run", tuple(exchanges), (answered, *executions), inputs=TYPED)
    player = Player(tape)
    player.execution("ask", {}, "", "a")
    human, before = HumanInput(player), input
    human.start()
    try:
        assert [input(prompt), input(prompt)] == ["kettle", "red"]
        with pytest.raises(EOFError, match="the recorded run has no further input"):
            input(prompt)
    finally:
        human.stop()
    assert input is before
    found = player.report().divergence
    expected = refused and ("unsupported", REFUSED.format(refused))
    assert (found and (found.kind, found.text)) == expected
