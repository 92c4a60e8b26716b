"""Canonical form of a model request: equal for requests that differ in generated ids and times only.

Each execution of a program generates new ids of tool calls and new UUIDs, and reads another time. Ids
are renamed by first appearance, so that equal ids stay equal, and times are masked. Transport options
(streaming, metadata) are not part of the form.
"""

from __future__ import annotations

import difflib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import Any, Final

from mast_trace.content import content_hash
from mast_trace.messages import Message, parsed

Item = tuple[str, ...]
"""``(role, text)``, ``("call", id, name, arguments)`` or ``("result", id, text)``."""

_THOUGHT = "reasoning"
_OF_CALLS = ("call", "result")
_OWN: Final = frozenset({"system", "developer", "user"})
"""Roles of the texts that a program writes itself; all others stand in the record."""
_UUID = re.compile(
    r"\b[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}\b", re.IGNORECASE
)
_TIME = re.compile(
    r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?(?!\d)"
)


MASKS: Final[list[tuple[re.Pattern[str], str]]] = []
"""Patterns of a program's own that are masked in requests, with the names in their place; see `normalize`."""
_LOOSE = re.compile(
    # An id first: it may begin with digits. No word is eight letters from a to f, but one id in some thousands is.
    r"\b(?:(?=[a-z]*\d)[0-9a-f]{4,}|[a-f]{8,})\b|\d+"
    r"|\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b|\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\b|\b[ap]m\b",
    re.IGNORECASE,
)
"""Parts of a text that change from day to day."""


def normalize(pattern: str | re.Pattern[str], name: str) -> None:
    r"""Mask what a program draws anew each time, wherever replays compare requests of it.

    Call it before the program asks a model; outside of a replay it does nothing. Answers, steps, and calls of tools are
    compared as they are.

    Args:
        pattern: a regular expression, such as ``r"session \w{8}"``.
        name: stands in the place of what it matches.
    """
    mask = mask_of(pattern, name)
    if mask not in MASKS:
        MASKS.append(mask)


@contextmanager
def masking(masks: Iterable[tuple[str, str]]) -> Iterator[None]:
    """Mask requests while a block runs, besides the program's own masks."""
    before = [*MASKS]
    for pattern, name in masks:
        normalize(pattern, name)
    try:
        yield
    finally:
        MASKS[:] = before


def mask_of(pattern: str | re.Pattern[str], name: str) -> tuple[re.Pattern[str], str]:
    """Return an entry of `MASKS`."""
    return re.compile(pattern), f"<{name}>"


def masked(items: Sequence[Item]) -> tuple[Item, ...]:
    """Return a canonical request with the program's own masks."""
    return (
        tuple((kind, *(masked_text(field, MASKS) for field in fields)) for kind, *fields in items)
        if MASKS
        else tuple(items)
    )


def used_masks(items: Sequence[Item]) -> set[str]:
    """Return the patterns of the program's own masks that stand in a request."""
    texts = [text for _, *fields in items for text in fields]
    return {pattern.pattern for pattern, _ in MASKS if any(map(pattern.search, texts))}


def masked_text(text: str, masks: Iterable[tuple[re.Pattern[str], str]]) -> str:
    """Return a text with masks."""
    for pattern, name in masks:
        text = pattern.sub(name, text)
    return text


def alike(recorded: Sequence[Item], asked: Sequence[Item]) -> bool:
    """Return whether two requests differ at most in what the program itself has written into its prompts."""
    return len(recorded) == len(asked) and all(
        one == other or (one[0] == other[0] and one[0] in _OWN)
        for one, other in zip(recorded, asked, strict=True)
    )


def likeness(recorded: Sequence[Item], asked: Sequence[Item]) -> tuple[bool, int]:
    """Return a sort key: greater for a request that differs in prompts alone, then for more words in common."""
    one, other = (
        Counter(word for item in each for word in _words(item)) for each in (recorded, asked)
    )
    return alike(recorded, asked), (one & other).total()


def remedy(recorded: Sequence[Item], asked: Sequence[Item]) -> str:
    """Return a sentence on what would make two requests equal; empty if they differ in more than that."""
    if [_loosely(item) for item in recorded] == [_loosely(item) for item in asked]:
        return (
            "They differ in dates, numbers or ids alone. With time-machine installed a replay's clock starts when "
            "the recorded run did; mast_trace.seed() makes `random` draw the same; "
            "mast_trace.replay.normalize(PATTERN, NAME) masks the rest."
        )
    if [_words(item) for item in recorded] == [_words(item) for item in asked]:
        return "They differ in the order of words alone: set PYTHONHASHSEED where you record, and replays get the same."
    return ""


def _loosely(item: Item) -> str:
    return _LOOSE.sub("", " ".join(item))


def _words(item: Item) -> list[str]:
    return sorted(re.findall(r"\w+", " ".join(item)))


def canonical_request(messages: Iterable[Message]) -> tuple[Item, ...]:
    """Return the messages of a request in the form that replays compare.

    A message's text comes before its tool calls, and an empty system prompt is left out, as are
    the thoughts of a model that a program sends back: they are not recorded with its answers. An assistant
    turn becomes one sequence of items, whether the provider's API divides it into messages or not. A
    tool's result without an id answers the first call that has no result yet. Results come in the order
    of their calls: tools that a program calls in parallel end in any order.
    """
    names: dict[str, str] = {}
    calls: dict[str, str] = {}
    unanswered: list[str] = []
    items: list[Item] = []
    shown = (message for message in messages if not _is_thought(message))
    for kind, *fields in _texts_first(item for message in shown for item in _items(message)):
        if kind in _OF_CALLS and fields[0]:
            fields[0] = calls.setdefault(fields[0], f"<call {len(calls) + 1}>")
        if kind == "call":
            unanswered.append(fields[0])
        elif kind == "result" and unanswered:
            # Where a program calls its tools itself, the record has no ids of their results.
            fields[0] = fields[0] or unanswered[0]
            if fields[0] in unanswered:
                unanswered.remove(fields[0])
        items.append((kind, *fields))
    places = {name: place for place, name in enumerate(calls.values())}
    return tuple(
        (kind, *(_renamed(field, names) for field in fields))
        for kind, *fields in _by_call(items, places)
    )


def request_key(items: Sequence[Item]) -> str:
    """Return the hash under which a canonical request is looked up."""
    return content_hash(json.dumps(items, ensure_ascii=False))


def canonical_arguments(arguments: Any) -> str:
    """Return the arguments of a tool call as sorted JSON, ids renamed and times masked."""
    return _renamed(_json(arguments), {})


def canonical_text(text: str) -> str:
    """Return a text with ids renamed by first appearance and times masked."""
    return _renamed(text, {})


def difference(recorded: Sequence[Item], asked: Sequence[Item]) -> str:
    """Return the unified diff of two canonical requests."""
    lines = difflib.unified_diff(
        _lines(recorded), _lines(asked), "recorded", "asked", "", "", 1, ""
    )
    return "\n".join(lines)


def _is_thought(message: Message) -> bool:
    """Return whether a message is a reasoning item of OpenAI's Responses API, as JSON."""
    if not (message.content.startswith("{") and _THOUGHT in message.content):
        return False
    item = parsed(message.content)
    return isinstance(item, dict) and item.get("type") == _THOUGHT


def _items(message: Message) -> Iterator[Item]:
    if message.role == "tool":
        yield ("result", message.tool_call_id or "", message.content)
        return
    if message.content or not (message.tool_calls or message.role == "system"):
        yield (message.role, message.content)
    for call in message.tool_calls:
        yield ("call", call.id or "", call.name, _json(call.arguments))


def _texts_first(items: Iterable[Item]) -> list[Item]:
    ordered: list[Item] = []
    for item in items:
        place = len(ordered)
        while item[0] == "assistant" and place and ordered[place - 1][0] == "call":
            place -= 1
        ordered.insert(place, item)
    return ordered


def _by_call(items: Sequence[Item], places: Mapping[str, int]) -> Iterator[Item]:
    """Yield items, the results that follow each other in the order of their calls."""
    for is_result, block in groupby(items, key=lambda item: item[0] == "result"):
        if is_result:
            yield from sorted(block, key=lambda item: places.get(item[1], len(places)))
        else:
            yield from block


def _json(arguments: Any) -> str:
    value = parsed(arguments)
    return json.dumps(
        {} if value is None else value, sort_keys=True, ensure_ascii=False, default=str
    )


def _renamed(text: str, names: dict[str, str]) -> str:
    def name(found: re.Match[str]) -> str:
        return names.setdefault(found.group().lower(), f"<id {len(names) + 1}>")

    return _TIME.sub("<time>", _UUID.sub(name, text))


def _lines(items: Sequence[Item]) -> list[str]:
    return [line for item in items for line in ": ".join(item).splitlines() or [""]]
