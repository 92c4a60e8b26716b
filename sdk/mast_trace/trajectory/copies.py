"""Duplicates: work that another tool has recorded too, in the same trace. Our span counts.

With two instrumentations of one framework on the same provider, each wraps the other's call: their
span encloses our span of the same turn, call or execution, or is enclosed by it. Tools that listen
to a framework's callbacks have a tree of their own instead, in which the same work lies at the same
time.

Nested spans of one tool call, recorded by several instrumentations: they count as one call.

A call that goes through the Model Context Protocol is a span of the framework, around one of the
protocol's client, around one of its server; each says ``execute_tool``. The outermost counts;
attributes that only an inner one has are read from there.

A tool that truly calls a tool makes two calls. Two spans are of one call where no turn of an agent
and no call of a model lies between them, neither their calls' ids nor their arguments differ, their
names are the same, and they come from two instrumentations, or the inner one is a request of the
protocol. Spans of one instrumentation, which records a call once, must have an id or arguments, and
equal ones. A name may have a prefix on the outer span, if that is not of the protocol itself.

Two instrumentations that listen to one framework have a tree each. Equal works of both at the same
time are one: as many of them as the instrumentation saw that saw most; see `twins`.
"""

from __future__ import annotations

import dataclasses
import json
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from mast_trace import semconv
from mast_trace.trajectory import vocabulary
from mast_trace.trajectory.span_messages import key
from mast_trace.trajectory.span_tree import LEVELS, above, lifted
from mast_trace.trajectory.vocabulary import text

if TYPE_CHECKING:
    from mast_trace.trajectory.model import SpanRecord

TURNS = frozenset({semconv.INVOKE_AGENT, semconv.INVOKE_WORKFLOW, semconv.CHAT})
"""Operations that separate the calls below them from those above."""
_ACTS = TURNS | {semconv.EXECUTE_TOOL}
_FILLED = {
    "tool": semconv.TOOL_NAME,
    "tool_call_id": semconv.TOOL_CALL_ID,
    "arguments": semconv.TOOL_CALL_ARGUMENTS,
    "result": semconv.TOOL_CALL_RESULT,
}
_NO_ID = frozenset({"", "unknown"})

Inner = dict[str, "list[SpanRecord]"]

# Attributes that distinguish two nested works of one kind; calls of models never nest.
_NAMED_BY = {semconv.INVOKE_AGENT: "agent", semconv.EXECUTE_TOOL: "tool", semconv.CHAT: ""}
_SHARED = 0.8
"""Share of the shorter span that must lie in the longer one, for spans of the same work."""
_NEAREST = 64
"""Number of spans of about one length, the nearest in time, that are compared with a span."""


def one_span_per_call(spans: Sequence[SpanRecord]) -> tuple[list[SpanRecord], Inner]:
    """Return the spans with one for each tool call, and the other spans of a call by its span's id.

    Args:
        spans: of a run, in our words; a span of a call that is left out is not copied.
    """
    calls = [span for span in spans if span.operation == semconv.EXECUTE_TOOL]
    if len(calls) < 2:
        return list(spans), {}
    by_id = {span.span_id: span for span in spans if span.span_id}
    inner: Inner = {}
    left_out: dict[str, str] = {}
    for call in calls:
        outer = _outermost(call, by_id)
        if outer is not None:
            left_out[call.span_id] = call.parent_span_id
            if not _is_look_up(call):
                inner.setdefault(outer.span_id, []).append(call)
    for call, first in twins([c for c in calls if c.span_id not in left_out], _call, by_id):
        left_out[call.span_id] = first.span_id
        found = [call, *inner.pop(call.span_id, ())]
        inner.setdefault(first.span_id, []).extend(found)
    if not left_out:
        return list(spans), {}
    kept = (lifted(span, left_out) for span in spans if span.span_id not in left_out)
    return [completed(span, inner.get(span.span_id, ())) for span in kept], inner


def twins(
    spans: Sequence[SpanRecord],
    fact: Callable[[SpanRecord], Hashable],
    by_id: Mapping[str, SpanRecord],
) -> list[tuple[SpanRecord, SpanRecord]]:
    """Return the spans of work that another instrumentation recorded at the same time, each with the one that counts.

    Args:
        spans: by start time.
        fact: equal for equal works; None for a span of which too little is known.
        by_id: all spans of the run. A span inside of another is none of its twins.
    """
    if len({span.scope for span in spans}) < 2:
        return []
    seen: Counter[tuple[str, Hashable]] = Counter()
    alike: dict[tuple[Hashable, int], list[SpanRecord]] = defaultdict(list)
    for span in spans:
        if (told := fact(span)) is not None:
            alike[told, seen[span.scope, told]].append(span)
            seen[span.scope, told] += 1
    return [
        (span, first)
        for first, *others in alike.values()
        for span in others
        if _are_at_once(first, span) and not _is_inside(span, first, by_id)
    ]


def _call(span: SpanRecord) -> Hashable:
    """Return a value that is equal for spans of one call of a tool; None where too little is known."""
    identity = str(vocabulary.read(span.attributes, "tool_call_id") or "")
    given = arguments_of_call(span) or ("" if identity in _NO_ID else identity)
    return (_name(span), given) if _name(span) and given else None


def _work(span: SpanRecord) -> Hashable:
    """Return the same for spans of one turn of an agent, or of one call of a model that tells its answer."""
    if span.operation == semconv.CHAT:
        said = text(span.attributes, semconv.MESSAGE_ID)
        return (span.operation, said) if said else None
    named = vocabulary.agent(span.attributes)
    return (span.operation, named) if named and span.operation == semconv.INVOKE_AGENT else None


def _are_at_once(one: SpanRecord, other: SpanRecord) -> bool:
    """Return whether two spans overlap, and neither their calls' ids nor their tokens differ."""
    ids = {str(vocabulary.read(span.attributes, "tool_call_id") or "") for span in (one, other)}
    if len(ids - _NO_ID) > 1 or _agree(_tokens(one), _tokens(other)) is False:
        return False
    shorter = min(one.end - one.start, other.end - other.start)
    return min(one.end, other.end) - max(one.start, other.start) >= min(1, shorter)


def _is_inside(span: SpanRecord, other: SpanRecord, by_id: Mapping[str, SpanRecord]) -> bool:
    return any(
        around.span_id == outer.span_id
        for inner, outer in ((span, other), (other, span))
        for around in islice(above(inner, by_id), LEVELS)
    )


def completed(call: SpanRecord, inner: Sequence[SpanRecord]) -> SpanRecord:
    """Return a call's span, completed by attributes that only other spans of the same call have.

    A call has failed where its last attempt has, even if the framework made a text of the error.
    """
    if not inner:
        return call
    attributes = dict(call.attributes)
    for field, name in _FILLED.items() if is_open(call) else ():
        if vocabulary.read(attributes, field) is None:
            known = (vocabulary.read(span.attributes, field) for span in inner)
            value = next((each for each in known if each is not None), None)
            if value is not None:
                attributes[name] = value
    last = max(inner, key=lambda span: (span.end, -span.start))
    if call.status == "Error" or last.status != "Error":
        return dataclasses.replace(call, attributes=attributes)
    attributes.setdefault(semconv.ERROR_TYPE, text(last.attributes, semconv.ERROR_TYPE))
    return dataclasses.replace(
        call, attributes=attributes, status="Error", status_message=last.status_message
    )


def is_open(call: SpanRecord) -> bool:
    """Return whether other spans may complete a call's own; not so if its result is a message of ours."""
    return semconv.MESSAGE_ID not in call.attributes


def arguments_of_call(span: SpanRecord) -> str:
    """Return the arguments of a tool call in one spelling; empty if unknown."""
    loaded = vocabulary.loaded(vocabulary.read(span.attributes, "arguments"))
    if not isinstance(loaded, dict):
        return ""
    given = {name: value for name, value in loaded.items() if value is not None}
    return json.dumps(given, sort_keys=True, default=str) if given else ""


def _outermost(call: SpanRecord, by_id: Mapping[str, SpanRecord]) -> SpanRecord | None:
    """Return the outermost other span of the same call."""
    found = None
    inside = call
    for around in islice(above(call, by_id), LEVELS):
        if around.operation in TURNS:
            break
        if around.operation != semconv.EXECUTE_TOOL:
            continue
        if _is_look_up(call) or _is_same_call(around, inside):
            found = inside = around
    return found if key(call) == call.span_id else None


def _is_look_up(call: SpanRecord) -> bool:
    """True if a tool's run is a look-up in a store; inside of a tool it is an implementation detail."""
    return vocabulary.read(call.attributes, "tool") in vocabulary.LOOK_UPS


def _is_same_call(outer: SpanRecord, inner: SpanRecord) -> bool:
    ids = {str(vocabulary.read(span.attributes, "tool_call_id") or "") for span in (outer, inner)}
    given = {arguments_of_call(span) for span in (outer, inner)}
    if len(ids - _NO_ID) > 1 or len(given - {""}) > 1 or not _is_named_alike(outer, inner):
        return False
    if _is_request(inner) or inner.scope != outer.scope:
        return True
    return not ids & _NO_ID or "" not in given


def _is_named_alike(outer: SpanRecord, inner: SpanRecord) -> bool:
    one, other = (_name(span) for span in (outer, inner))
    if not one or not other or one == other:
        return True
    prefix = one.removesuffix(other)
    is_prefixed = prefix != one and not prefix[-1].isalnum()
    return is_prefixed and _is_request(inner) and not _is_request(outer)


def _name(span: SpanRecord) -> str:
    return str(vocabulary.read(span.attributes, "tool") or "")


def _is_request(span: SpanRecord) -> bool:
    """Return whether a span is a request of the Model Context Protocol, of its client or its server."""
    value: Any = span.attributes.get(semconv.MCP_METHOD_NAME)
    return bool(value == vocabulary.MCP_CALL)


def is_ours(span: SpanRecord) -> bool:
    """Return whether mast-trace made the span: of a framework, or of hand-made agents."""
    return span.scope.split(".")[0] == "mast_trace" or semconv.FRAMEWORK in span.attributes


def without_copies(spans: Sequence[SpanRecord]) -> list[SpanRecord]:
    """Return the spans without other tools' spans of work that we recorded too.

    Children of a span that is left out move to the span above it.
    """
    return split_copies(spans)[0]


def split_copies(
    spans: Sequence[SpanRecord],
) -> tuple[list[SpanRecord], dict[str, SpanRecord]]:
    """Return the spans `without_copies`, and the span that completes a call's by the id of the call's."""
    by_id = {span.span_id: span for span in spans if span.span_id}
    ours = {key(span) for span in spans if is_ours(span)}
    if len(ours) == len(spans):
        return list(spans), {}
    copies: set[str] = set()
    for span in spans:
        for around in islice(above(span, by_id), LEVELS):
            if (key(span) in ours) != (key(around) in ours) and _same_work(span, around):
                copies.add(key(around) if key(span) in ours else key(span))
        parent = by_id.get(span.parent_span_id)
        if parent is not None and key(span) in ours and _is_run_as_turn(span, parent):
            copies.update({key(parent)} - ours)
    copies |= _beside([span for span in spans if key(span) not in copies], ours)
    nested = _nested_calls([span for span in spans if key(span) not in copies | ours], by_id)
    copies |= nested.keys()
    told = {key(kept): span for span in spans for kept in nested.get(key(span), ())}
    found = twins([s for s in spans if key(s) not in copies | ours], _work, by_id)
    copies |= {key(span) for span, _ in found}
    for span, first in found:
        if span.operation == semconv.CHAT:
            told.setdefault(key(first), span)
    parents = {span.span_id: span.parent_span_id for span in spans if key(span) in copies}
    parents |= {span.span_id: first.span_id for span, first in found}
    parents.pop("", None)  # nothing lies below a span without an id
    left = [lifted(span, parents) for span in spans if key(span) not in copies]
    return [completed_by(span, told.get(key(span))) for span in left], told


def completed_by(span: SpanRecord, other: SpanRecord | None) -> SpanRecord:
    """Return the span of a model's call with what another span of the call tells besides."""
    if other is None:
        return span
    return dataclasses.replace(span, attributes={**other.attributes, **span.attributes})


def _nested_calls(
    spans: Sequence[SpanRecord], by_id: Mapping[str, SpanRecord]
) -> dict[str, list[SpanRecord]]:
    """Return the spans of a model's call that a client and a framework have recorded, but the one that tells more.

    Each comes with that one, which its attributes complete, where the two are alone.
    """
    inner: Inner = defaultdict(list)
    kept = {key(span) for span in spans}
    for span in spans:
        if span.operation == semconv.CHAT:
            around = (
                each for each in islice(above(span, by_id), LEVELS) if each.operation in _ACTS
            )
            outer = next(around, None)
            if outer is not None and outer.operation == semconv.CHAT and key(outer) in kept:
                inner[key(outer)].append(span)
    copies: dict[str, list[SpanRecord]] = {}
    for span in spans:
        if found := inner.get(key(span)):
            more = min(map(_told, found)) >= _told(span)
            left, stays = ([span], found) if more else (found, [span])
            alone = stays if len(found) == 1 else []
            copies |= {key(each): alone for each in left}
    return copies


def _told(call: SpanRecord) -> tuple[bool, bool]:
    """Return whether the call of a model has an answer and tokens."""
    return semconv.MESSAGE_ID in call.attributes, _tokens(call) is not None


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
