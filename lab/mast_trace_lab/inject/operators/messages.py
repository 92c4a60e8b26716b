"""Operators that change a message on its way from one agent to another.

The sender's recorded answer stays as it is; the receiver is shown another text, once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mast_trace_lab.inject.changes import Change, OtherRequest
from mast_trace_lab.inject.operators.operator import Operator
from mast_trace_lab.inject.operators.texts import with_number_changed, without_a_fact
from mast_trace_lab.inject.sites import answers_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from mast_trace_lab.inject.sites import Answer

SHORTEST: Final = 10
"""Characters of a message from which it is told from a word of another text."""


def _arriving(site: Answer) -> list[str]:
    """Return the messages of other agents that the model is shown for the first time here, in order."""
    answers = answers_of(site.run)[: site.place]
    before = [
        message.content
        for each in answers
        if each.agent == site.agent
        for message in each.shown
        if message.role not in {"system", "developer"}
    ]
    shown = [
        message.content
        for message in site.shown
        if message.role in {"user", "assistant"} and not message.tool_calls
    ]
    sent = [
        each.said.content.strip()
        for each in answers
        if each.agent != site.agent and not each.said.tool_calls
    ]
    return [
        text
        for text in dict.fromkeys(sent)
        if len(text) >= SHORTEST
        and any(text in each for each in shown)
        and not any(text in each for each in (site.task, *before))
    ]


def _changed(
    site: Answer, rng: Random, other: Callable[[str, Random], str | None]
) -> Change | None:
    """Return the change of one arriving message by a function that returns another text, or None for no change."""
    arriving = _arriving(site)
    for number in rng.sample(range(len(arriving)), len(arriving)):
        sent = arriving[number]
        received = other(sent, rng)
        if received is not None and received != sent:
            request = OtherRequest(sent=sent, received=received)
            return Change(site.step, "message", request=request)
    return None


def _garbled(site: Answer, rng: Random) -> Change | None:
    return _changed(site, rng, with_number_changed)


def _cut(site: Answer, rng: Random) -> Change | None:
    return _changed(site, rng, without_a_fact)


_SENT: Final = "The sender's answer, which is recorded, held another text."
_ARRIVES: Final = (
    "The model is shown an answer of another agent for the first time, word for word, and it"
)

MESSAGES: Final = (
    Operator("message-number", "A message arrives with another number than was sent.", _SENT, _garbled,
             applies=f"{_ARRIVES} holds a number."),
    Operator("message-cut", "A message arrives without one of its sentences that hold a number.", _SENT, _cut,
             applies=f"{_ARRIVES} has several sentences, one of them with a number."),
)  # fmt: skip
"""Operators at the level of messages. Nobody of the agents is to blame for them."""
