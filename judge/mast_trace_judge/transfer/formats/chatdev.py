"""The log of ChatDev: who said what to whom in which phase, the reports of tests, and the tokens of each call."""

from __future__ import annotations

import dataclasses
import re
from collections import deque
from collections.abc import Iterator
from typing import Any

from mast_trace.trajectory.span_messages import objects
from mast_trace_judge.local.texts import says_failed
from mast_trace_judge.transfer.formats.conversation import Entry, Result, transcript_of
from mast_trace_judge.transfer.formats.kinds import (
    Format,
    TextLog,
    Transcript,
    is_record,
    moment_or_zero,
)

_SAID = re.compile(r"(?:([^\n:*|]{1,80}): )?\*\*\[?([^\n*]+?)\]?\*\*:?")
_TURN = re.compile(r"(.+?)<->(.+?) on : .+, turn \d+")
_PLAYS = re.compile(r"\| \*\*assistant_role_name\*\* \| ([^|\n]+?) \|")
_SPENT = re.compile(r"^(prompt_tokens|completion_tokens): (\d{1,15})$", re.MULTILINE)


def _value(head: re.Match[str], text: str) -> dict[str, str] | None:
    """Return an entry; None for a line of the program that nobody said."""
    said = _SAID.match(text)
    if said is None:
        return None
    year, day, month, time = head.groups()
    return {
        "chatdev_heading": said[2],
        "speaker": said[1] or "",
        "content": text[said.end() :].strip(),
        "timestamp": f"{year}-{month}-{day} {time}",
    }


def _read(value: Any, name: str) -> Iterator[Transcript]:
    entries: list[Entry] = []
    task, assistant = "", ""
    spent: deque[tuple[int, int]] = deque()
    for line in objects(value):
        heading, role, text = line["chatdev_heading"], line["speaker"], line["content"]
        time = moment_or_zero(line["timestamp"])
        turn = _TURN.fullmatch(heading)
        if heading == "Preprocessing":
            asked = text.partition("**task_prompt**: ")[2]
            task = asked.partition("\n\n**project_name**")[0].strip()
            entries.append(Entry("user", "user", task, time=time))
        elif heading == "chatting" and (plays := _PLAYS.search(text)):
            assistant = plays[1]
        elif heading == "OpenAI_Usage_Info Receive":
            told = dict(_SPENT.findall(text))
            if len(told) == 2:
                spent.append((int(told["prompt_tokens"]), int(told["completion_tokens"])))
        elif turn is not None:
            usage = spent.popleft() if spent else None
            other = turn[2] if role == turn[1] else turn[1]
            said = _unprompted(text)
            entries.append(
                Entry("assistant", role, said, recipients=(other,), time=time, usage=usage)
            )
        elif heading == "Start Chat":
            to = (assistant,) if assistant else ()
            said = _unprompted(text)
            entries.append(Entry("assistant", role, said, recipients=to, synthetic=True, time=time))
        elif heading == "Test Reports":
            failed = says_failed(text)
            result = Result(text, tool="test", error=failed[0] if failed else None)
            entries.append(Entry("tool", "ChatDev", results=(result,), time=time))
        elif heading == "User Provided Comments":
            entries.append(Entry("user", "user", text, time=time))
    yield transcript_of(_with_rest(entries, spent), name, framework="chatdev", task=task)


def _unprompted(text: str) -> str:
    """Return what was said, without the system prompt that stands in brackets before it."""
    before, ends, said = text.partition("]\n\n")
    return said if ends and before.startswith("[") else text


def _with_rest(entries: list[Entry], rest: deque[tuple[int, int]]) -> list[Entry]:
    """Return the entries; tokens of calls that nobody's words followed are those of the last that spoke."""
    place = next((n for n in reversed(range(len(entries))) if entries[n].usage), None)
    if place is not None:
        told = [*rest, entries[place].usage or (0, 0)]
        usage = (sum(each for each, _ in told), sum(each for _, each in told))
        entries[place] = dataclasses.replace(entries[place], usage=usage)
    return entries


_STAMP = r"\[(\d{4})-(\d\d)-(\d\d) (\d\d:\d\d:\d\d) [A-Z]+\] "
"""ChatDev writes the day before the month."""

CHATDEV = Format(
    name="chatdev",
    title="ChatDev log",
    recognised="text whose first entry is `**[Preprocessing]**` after a time in brackets",
    read=_read,
    message=lambda value: is_record(value, "chatdev_heading", "content"),
    text=TextLog(
        begin=re.compile(_STAMP + r"\*\*\[Preprocessing\]\*\*"),
        head=re.compile(_STAMP),
        value=_value,
    ),
)
