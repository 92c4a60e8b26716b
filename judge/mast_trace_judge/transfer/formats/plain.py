"""Plain transcripts: lists of who said what, whatever the speakers are called."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mast_trace.trajectory import Step, StepKind, Trajectory
from mast_trace_judge.local.texts import says_failed
from mast_trace_judge.study.labelled import plain_name
from mast_trace_judge.transfer.formats.kinds import Format, Transcript

_RECIPIENT = re.compile(r"\(->\s*(.*?)\s*\)")
_EXECUTORS = frozenset({"computer_terminal", "computerterminal"})
"""Agents that run the code of the message before them and write nothing of their own."""


def recipient_of(name: str) -> str:
    """Return the addressee that Magentic-One adds to an agent's name; empty where there is none."""
    found = _RECIPIENT.search(name)
    return found[1] if found else ""


def plain_steps(entries: Sequence[Mapping[str, Any]]) -> tuple[Step, ...]:
    """Read a list of ``name``, ``role`` and ``content`` as steps, whose numbers are positions in the list.

    The agent is in ``name``, and in ``role`` where no name is given. Executors' entries become tool steps.
    """
    names = [str(entry.get("name") or entry.get("role") or "") for entry in entries]
    return tuple(
        _step(index, name, str(entry.get("content") or ""))
        for index, (name, entry) in enumerate(zip(names, entries, strict=True))
    )


def _step(index: int, name: str, text: str) -> Step:
    agent = plain_name(name)
    recipient = recipient_of(name)
    runs = agent.lower() in _EXECUTORS
    failed = says_failed(text) if runs else None
    return Step(
        index=index,
        kind=StepKind.TOOL if runs else StepKind.MESSAGE,
        agent=agent,
        text=text,
        role="user" if agent == "human" else "assistant",
        recipients=(recipient,) if recipient else (),
        tool=agent if runs else "",
        error=failed[0] if failed else None,
    )


def _read(value: Any, name: str) -> Iterator[Transcript]:
    if not isinstance(value, list) or not value:
        raise ValueError("it holds no messages")
    for number, entry in enumerate(value):
        try:
            _check(entry)
        except ValueError as error:
            raise ValueError(f"entry {number} is no message: {error}") from None
    steps = tuple(
        dataclasses.replace(step, role=str(entry.get("role") or step.role))
        for step, entry in zip(plain_steps(value), value, strict=True)
    )
    asked = (entry["content"] for entry in value if entry.get("role") in {"user", "human"})
    # A plain transcript does not record how it ended.
    yield Transcript(Trajectory(trace_id="", steps=steps, task=next(asked, "")), name)


def _check(entry: Any) -> None:
    if not isinstance(entry, dict):
        raise ValueError("expected an object")  # noqa: TRY004  # one error for what is read
    if not isinstance(entry.get("content"), str):
        raise ValueError("its content is no text")  # noqa: TRY004
    if not (entry.get("role") or entry.get("name")):
        raise ValueError("it has neither role nor name")


PLAIN = Format(
    name="transcript",
    title="plain transcript",
    recognised="a list of `name` or `role`, whatever they are called, and `content`",
    read=_read,
    entry=_check,
    message=lambda value: (
        isinstance(value, dict)
        and isinstance(value.get("content"), str)
        and bool(value.get("role") or value.get("name"))
    ),
)
