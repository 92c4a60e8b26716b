"""Operators that change a message on its way from one agent to another.

The sender's recorded answer stays as it is; the receiver is shown another text, once.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from mast_trace_lab.inject.operators.operator import Operator, with_number_changed, without_a_fact
from mast_trace_lab.inject.sites import (
    Change,
    OtherRequest,
    RecordedAnswer,
    RecordedResult,
    answers_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random


_ERRORS: Final = (
    "ConnectionError: the service is unavailable",
    "PermissionError: access denied",
    "ValueError: unexpected format of the response",
)
_TIMEOUTS: Final = ("TimeoutError: no answer within 30 s", "TimeoutError: the request timed out")
_EMPTY: Final = ("", "[]", "No results.")
_FAILED: Final = re.compile(r"\b(fail\w*|false|wrong|invalid|mismatch|error)\b", re.IGNORECASE)
_PASSED: Final = ("passed", "ok: all checks passed", "true")

_SEEN: Final = "The recorded result was another one."
_LONG: Final = 4
"""Messages besides system prompt and task from which a history can lose its oldest ones."""
SHORTEST: Final = 10
"""Characters of a message from which it is told from a word of another text."""
_SENT: Final = "The sender's answer, which is recorded, held another text."
_ARRIVES: Final = (
    "The model is shown an answer of another agent for the first time, word for word, and it"
)


def _error(site: RecordedResult, rng: Random) -> Change | None:
    number = rng.randrange(len(_ERRORS))
    return Change(site.step.index, "result", error=_ERRORS[number], phrasing=number)


def _timeout(site: RecordedResult, rng: Random) -> Change | None:
    number = rng.randrange(len(_TIMEOUTS))
    return Change(site.step.index, "result", error=_TIMEOUTS[number], phrasing=number)


def _stale(site: RecordedResult, rng: Random) -> Change | None:  # noqa: ARG001  # nothing is chosen
    return Change(site.step.index, "result", site.earlier) if site.earlier else None


def _empty(site: RecordedResult, rng: Random) -> Change | None:
    number = rng.randrange(len(_EMPTY))
    if site.step.text == _EMPTY[number]:
        return None
    return Change(site.step.index, "result", _EMPTY[number], phrasing=number)


def _wrong(site: RecordedResult, rng: Random) -> Change | None:
    text = with_number_changed(site.step.text, rng)
    return None if text is None else Change(site.step.index, "result", text)


def _passes(site: RecordedResult, rng: Random) -> Change | None:
    if not _FAILED.search(site.step.text):
        return None
    number = rng.randrange(len(_PASSED))
    return Change(site.step.index, "result", _PASSED[number], phrasing=number)


RESULTS: Final = (
    Operator("tool-error", "A tool raises an exception.", _SEEN, _error,
             applies="Every tool result, hand-overs excluded."),
    Operator("tool-timeout", "A tool does not answer in time.", _SEEN, _timeout,
             applies="Every tool result, hand-overs excluded."),
    Operator("tool-stale", "A tool returns its earlier result.", _SEEN, _stale,
             applies="The tool has returned another result before."),
    Operator("tool-empty", "A tool returns nothing.", _SEEN, _empty,
             applies="A tool result that is not empty."),
    Operator("tool-wrong", "A tool returns a wrong number.", _SEEN, _wrong,
             applies="The result holds a number."),
    Operator("tool-passes", "A check passes that had failed.", _SEEN, _passes,
             applies="The result says that something failed or is wrong."),
)  # fmt: skip
"""Operators at the level of tool results. Nobody of the agents is to blame for them."""


def _talk(site: RecordedAnswer) -> int:
    """Return the number of messages besides system prompt and task."""
    return sum(each.role not in {"system", "developer"} for each in site.shown) - 1


def _other_role(site: RecordedAnswer, rng: Random) -> Change | None:
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


def _lose_oldest(site: RecordedAnswer, rng: Random) -> Change | None:
    if _talk(site) < _LONG:
        return None
    lost = rng.randint(1, _talk(site) // 2)
    return Change(site.step, "request", request=OtherRequest(oldest=lost), phrasing=lost)


def _restart(site: RecordedAnswer, rng: Random) -> Change | None:  # noqa: ARG001  # nothing is chosen
    if _talk(site) < 2:
        return None
    return Change(site.step, "request", request=OtherRequest(restart=True))


def _ignore_peer(site: RecordedAnswer, rng: Random) -> Change | None:  # noqa: ARG001  # nothing is chosen
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


def _arriving(site: RecordedAnswer) -> list[str]:
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
    site: RecordedAnswer, rng: Random, other: Callable[[str, Random], str | None]
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


def _garbled(site: RecordedAnswer, rng: Random) -> Change | None:
    return _changed(site, rng, with_number_changed)


def _cut(site: RecordedAnswer, rng: Random) -> Change | None:
    return _changed(site, rng, without_a_fact)


MESSAGES: Final = (
    Operator("message-number", "A message arrives with another number than was sent.", _SENT, _garbled,
             applies=f"{_ARRIVES} holds a number."),
    Operator("message-cut", "A message arrives without one of its sentences that hold a number.", _SENT, _cut,
             applies=f"{_ARRIVES} has several sentences, one of them with a number."),
)  # fmt: skip
"""Operators at the level of messages. Nobody of the agents is to blame for them."""
