"""Duplicates: work that another tool has recorded too, in the same trace. Our span counts.

With two instrumentations of one framework on the same provider, each wraps the other's call: their
span encloses our span of the same turn, call or execution, or is enclosed by it. Tools that listen
to a framework's callbacks have a tree of their own instead, in which the same work lies at the same
time.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from itertools import islice
from typing import TYPE_CHECKING, Any

from mast_trace import semconv
from mast_trace.trajectory import vocabulary
from mast_trace.trajectory.span_messages import key
from mast_trace.trajectory.span_tree import LEVELS, above, lifted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mast_trace.trajectory.model import SpanRecord

# Attributes that distinguish two nested works of one kind; calls of models never nest.
_NAMED_BY = {semconv.INVOKE_AGENT: "agent", semconv.EXECUTE_TOOL: "tool", semconv.CHAT: ""}

_SHARED = 0.8
"""Share of the shorter span that must lie in the longer one, for spans of the same work."""
_NEAREST = 64
"""Number of spans of about one length, the nearest in time, that are compared with a span."""


def is_ours(span: SpanRecord) -> bool:
    """Return whether mast-trace made the span: of a framework, or of hand-made agents."""
    return span.scope.split(".")[0] == "mast_trace" or semconv.FRAMEWORK in span.attributes


def without_copies(spans: Sequence[SpanRecord]) -> list[SpanRecord]:
    """Return the spans without other tools' spans of work that we recorded too.

    Children of a span that is left out move to the span above it.
    """
    by_id = {span.span_id: span for span in spans if span.span_id}
    ours = {key(span) for span in spans if is_ours(span)}
    if len(ours) == len(spans):
        return list(spans)
    copies: set[str] = set()
    for span in spans:
        for around in islice(above(span, by_id), LEVELS):
            if (key(span) in ours) != (key(around) in ours) and _same_work(span, around):
                copies.add(key(around) if key(span) in ours else key(span))
        parent = by_id.get(span.parent_span_id)
        if parent is not None and key(span) in ours and _is_run_as_turn(span, parent):
            copies.update({key(parent)} - ours)
    copies |= _beside([span for span in spans if key(span) not in copies], ours)
    parents = {span.span_id: span.parent_span_id for span in spans if key(span) in copies}
    parents.pop("", None)  # nothing lies below a span without an id
    return [lifted(span, parents) for span in spans if key(span) not in copies]


def _same_work(one: SpanRecord, other: SpanRecord) -> bool:
    operation = one.operation
    if operation not in _NAMED_BY or other.operation != operation:
        return False
    field = _NAMED_BY[operation]
    names = {vocabulary.read(span.attributes, field) for span in (one, other)} if field else set()
    # Some tools record a turn for the unnamed: for a task, or for the whole crew.
    return len(names - {None}) <= 1


def _is_run_as_turn(span: SpanRecord, around: SpanRecord) -> bool:
    """Return whether another tool's turn is in truth a run of ours, named after the agent that began it."""
    return span.operation == semconv.INVOKE_WORKFLOW and around.operation == semconv.INVOKE_AGENT


def _beside(spans: Sequence[SpanRecord], ours: set[str]) -> set[str]:
    """Return other tools' spans that cover the same work as one of ours at the same time."""
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
    """Return whether two spans are of the same work, judging by their times and attributes."""
    shared = min(theirs.end, own.end) - max(theirs.start, own.start)
    shorter = min(theirs.end - theirs.start, own.end - own.start)
    if shared < min(1, shorter):  # spans that only touch are one after the other
        return False
    if own.operation == semconv.INVOKE_WORKFLOW:
        name = vocabulary.read(theirs.attributes, "agent")
        return name is not None and bool(name == vocabulary.workflow(own.attributes))
    if own.operation == semconv.CHAT:
        # Two calls of equal length in the same moment cannot be told from one call.
        alike = _agree(_tokens(theirs), _tokens(own))
    else:
        field = _NAMED_BY[own.operation]
        alike = _agree(*(vocabulary.read(span.attributes, field) for span in (theirs, own)))
    if alike is None:  # one lacks it: then the shorter must lie in the longer
        alike = shared >= _SHARED * shorter
    return alike


def _agree(one: Any, other: Any) -> bool | None:
    """Return whether two facts are equal; None where one of them is unknown."""
    return None if one is None or other is None else bool(one == other)


def _tokens(span: SpanRecord) -> int | None:
    return vocabulary.integer(vocabulary.read(span.attributes, "input_tokens"))
