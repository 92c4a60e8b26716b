"""Operators that change the messages that a model is shown, once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mast_trace_lab.inject.changes import Change, OtherRequest
from mast_trace_lab.inject.operators.operator import Operator
from mast_trace_lab.inject.sites import Answer, answers_of

if TYPE_CHECKING:
    from random import Random

_LONG: Final = 4
"""Messages besides system prompt and task from which a history can lose its oldest ones."""


def _talk(site: Answer) -> int:
    """Return the number of messages besides system prompt and task."""
    return sum(each.role not in {"system", "developer"} for each in site.shown) - 1


def _other_role(site: Answer, rng: Random) -> Change | None:
    others = sorted(
        {each.prompt for each in answers_of(site.run) if each.agent != site.agent and each.prompt}
        - {site.prompt}
    )
    if not others or not site.prompt:
        return None
    number = rng.randrange(len(others))
    return Change(
        site.step, "request", request=OtherRequest(system=others[number]), phrasing=number
    )


def _lose_oldest(site: Answer, rng: Random) -> Change | None:
    if _talk(site) < _LONG:
        return None
    lost = rng.randint(1, _talk(site) // 2)
    return Change(site.step, "request", request=OtherRequest(oldest=lost), phrasing=lost)


def _restart(site: Answer, rng: Random) -> Change | None:  # noqa: ARG001  # nothing is chosen
    if _talk(site) < 2:
        return None
    return Change(site.step, "request", request=OtherRequest(restart=True))


def _ignore_peer(site: Answer, rng: Random) -> Change | None:  # noqa: ARG001  # nothing is chosen
    last = site.shown[-1] if site.shown else None
    if last is None or last.role not in {"user", "assistant"} or last.tool_calls or _talk(site) < 1:
        return None
    return Change(site.step, "request", request=OtherRequest(latest=1))


REQUESTS: Final = (
    Operator("1.2-other-role", "The agent acts by the system prompt of another agent.",
             "The model was shown another agent's prompt.", _other_role,
             applies="The agent has a system prompt, and another agent has another one."),
    Operator("1.4-lose-oldest", "The agent has lost the beginning of the conversation.",
             "The oldest messages were left out of the request.", _lose_oldest,
             applies="The model was shown four messages or more besides system prompt and task."),
    Operator("2.1-restart", "The conversation begins again in the middle of the run.",
             "Everything but system prompt and task was left out of the request.", _restart,
             applies="The model was shown two messages or more besides system prompt and task."),
    Operator("2.5-ignore-peer", "The agent answers without the last message of its peer.",
             "The last message was left out of the request.", _ignore_peer,
             applies="The last message that the model was shown is one of a person or an agent, and not the task."),
)  # fmt: skip
"""Operators at the level of requests."""
