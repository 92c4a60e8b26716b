"""Work that another tool has recorded too, in the same trace: counted once, as ours.

With two instrumentations of one framework on the same provider, each wraps the other's call: a span
of theirs lies around or inside of one of ours that is about the same turn, call or execution. Tools
that listen to a framework's callbacks have a tree of their own instead, in which the same work lies
at the same time.
"""

from __future__ import annotations

import dataclasses
from bisect import bisect_left
from collections import defaultdict
from itertools import islice
from typing import TYPE_CHECKING, Any

from mast_trace import semconv
from mast_trace.trajectory import vocabulary
from mast_trace.trajectory.span_messages import key

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mast_trace.trajectory.model import SpanRecord

# What tells two works of one kind apart that lie inside of each other; calls of models never do.
_NAMED_BY = {semconv.INVOKE_AGENT: "agent", semconv.EXECUTE_TOOL: "tool", semconv.CHAT: ""}

_SHARED = 0.8
"""How much of the shorter of two spans lies in the longer, if they are about the same work."""
_LEVELS = 100
"""Spans around a span among which its copy is sought: tools wrap each other closely."""
_NEAREST = 64
"""Spans of about one length, the nearest in time, among which a span's copy is sought."""


def is_ours(span: SpanRecord) -> bool:
    """Whether mast-trace made the span: of a framework, or of hand-made agents."""
    return span.scope.split(".")[0] == "mast_trace" or semconv.FRAMEWORK in span.attributes


def without_copies(spans: Sequence[SpanRecord]) -> list[SpanRecord]:
    """Return the spans without those of other tools that are about the same work as one of ours.

    What lies below a span that is left out belongs to the span above it.
    """
    by_id = {span.span_id: span for span in spans if span.span_id}
    ours = {key(span) for span in spans if is_ours(span)}
    if len(ours) == len(spans):
        return list(spans)
    copies: set[str] = set()
    for span in spans:
        for above in islice(_above(span, by_id), _LEVELS):
            if (key(span) in ours) != (key(above) in ours) and _same_work(span, above):
                copies.add(key(above) if key(span) in ours else key(span))
        around = by_id.get(span.parent_span_id)
        if around is not None and key(span) in ours and _is_run_as_turn(span, around):
            copies.update({key(around)} - ours)
    copies |= _beside([span for span in spans if key(span) not in copies], ours)
    parents = {span.span_id: span.parent_span_id for span in spans if key(span) in copies}
    parents.pop("", None)  # nothing lies below a span without an id
    return [_lifted(span, parents) for span in spans if key(span) not in copies]


def _above(span: SpanRecord, by_id: Mapping[str, SpanRecord]) -> Iterator[SpanRecord]:
    seen = {span.span_id}
    above = by_id.get(span.parent_span_id)
    while above is not None and above.span_id not in seen:
        seen.add(above.span_id)
        yield above
        above = by_id.get(above.parent_span_id)


def _same_work(one: SpanRecord, other: SpanRecord) -> bool:
    operation = one.operation
    if operation not in _NAMED_BY or other.operation != operation:
        return False
    field = _NAMED_BY[operation]
    names = {vocabulary.read(span.attributes, field) for span in (one, other)} if field else set()
    # Some tools make a turn of what they do not name: of a task, or of the whole crew.
    return len(names - {None}) <= 1


def _is_run_as_turn(span: SpanRecord, around: SpanRecord) -> bool:
    """Whether another tool takes a run of ours for a turn of who began it."""
    return span.operation == semconv.INVOKE_WORKFLOW and around.operation == semconv.INVOKE_AGENT


def _beside(spans: Sequence[SpanRecord], ours: set[str]) -> set[str]:
    """Return the spans of others that are at the same time about the same work as one of ours."""
    works: dict[str, dict[int, list[SpanRecord]]] = defaultdict(lambda: defaultdict(list))
    for span in spans:
        if key(span) in ours:
            works[span.operation][(span.end - span.start).bit_length()].append(span)
    for lengths in works.values():
        for alike in lengths.values():
            alike.sort(key=_start)
    copies: set[str] = set()
    for span in spans:
        if key(span) in ours or span.operation not in _NAMED_BY:
            continue
        kinds = (span.operation, semconv.INVOKE_WORKFLOW)
        for kind in kinds if span.operation == semconv.INVOKE_AGENT else kinds[:1]:
            near = (own for made in works[kind].items() for own in _nearest(span, *made))
            if any(_same_moment(span, own) for own in near):
                copies.add(key(span))
    return copies


def _nearest(span: SpanRecord, bits: int, of_a_length: Sequence[SpanRecord]) -> list[SpanRecord]:
    """Return the spans of less than ``2**bits`` nanoseconds that may touch one, the nearest first."""
    first = bisect_left(of_a_length, span.start - 2**bits, key=_start)
    last = bisect_left(of_a_length, span.end, key=_start)
    if last - first > _NEAREST:
        place = bisect_left(of_a_length, span.start, first, last, key=_start)
        first, last = max(first, place - _NEAREST // 2), min(last, place + _NEAREST // 2)
    return sorted(of_a_length[first:last], key=lambda own: abs(own.start - span.start))


def _start(span: SpanRecord) -> int:
    return span.start


def _same_moment(theirs: SpanRecord, own: SpanRecord) -> bool:
    """Whether two spans are about one work, as their times and what they say of it tell."""
    shared = min(theirs.end, own.end) - max(theirs.start, own.start)
    shorter = min(theirs.end - theirs.start, own.end - own.start)
    if shared < min(1, shorter):  # spans that only touch are one after the other
        return False
    if own.operation == semconv.INVOKE_WORKFLOW:
        name = vocabulary.read(theirs.attributes, "agent")
        return name is not None and bool(name == own.attributes.get(semconv.WORKFLOW_NAME))
    if own.operation == semconv.CHAT:
        # Two calls of one length in the same moment are one call, as far as anybody can tell.
        alike = _agree(_tokens(theirs), _tokens(own))
    else:
        field = _NAMED_BY[own.operation]
        alike = _agree(*(vocabulary.read(span.attributes, field) for span in (theirs, own)))
    if alike is None:  # one of them does not say: then the shorter lies in the longer, about
        alike = shared >= _SHARED * shorter
    return alike


def _agree(one: Any, other: Any) -> bool | None:
    """Whether two facts are the same; None where one of them is unknown."""
    return None if one is None or other is None else bool(one == other)


def _tokens(span: SpanRecord) -> int | None:
    return vocabulary.integer(vocabulary.read(span.attributes, "input_tokens"))


def _lifted(span: SpanRecord, above: dict[str, str]) -> SpanRecord:
    """Return a span below the next one around it that is no copy.

    Args:
        span: that stays.
        above: the parent of each copy; what lies above a chain of them is remembered.
    """
    parent = span.parent_span_id
    passed: dict[str, None] = {}
    while parent in above:
        passed[parent] = None
        # Copies that lie in each other: nothing is above them.
        parent = "" if above[parent] in passed else above[parent]
    above.update(dict.fromkeys(passed, parent))
    return (
        span if parent == span.parent_span_id else dataclasses.replace(span, parent_span_id=parent)
    )
