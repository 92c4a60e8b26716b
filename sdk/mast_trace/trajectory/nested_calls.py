"""Nested spans of one tool call, recorded by several instrumentations: they count as one call.

A call that goes through the Model Context Protocol is a span of the framework, around one of the
protocol's client, around one of its server; each says ``execute_tool``. The outermost counts;
attributes that only an inner one has are read from there.

A tool that truly calls a tool makes two calls. Two spans are of one call where no turn of an agent
and no call of a model lies between them, neither their calls' ids nor their arguments differ, their
names are the same, and they come from two instrumentations, or the inner one is a request of the
protocol. Spans of one instrumentation, which records a call once, must have an id or arguments, and
equal ones. A name may have a prefix on the outer span, if that is not of the protocol itself.
"""

from __future__ import annotations

import dataclasses
import json
from itertools import islice
from typing import TYPE_CHECKING, Any

from mast_trace import semconv
from mast_trace.trajectory import vocabulary
from mast_trace.trajectory.span_messages import key
from mast_trace.trajectory.span_tree import LEVELS, above, lifted
from mast_trace.trajectory.vocabulary import text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mast_trace.trajectory.model import SpanRecord

TURNS = frozenset({semconv.INVOKE_AGENT, semconv.INVOKE_WORKFLOW, semconv.CHAT})
"""Operations that separate the calls below them from those above."""
_FILLED = {
    "tool": semconv.TOOL_NAME,
    "tool_call_id": semconv.TOOL_CALL_ID,
    "arguments": semconv.TOOL_CALL_ARGUMENTS,
    "result": semconv.TOOL_CALL_RESULT,
}
_NO_ID = frozenset({"", "unknown"})

Inner = dict[str, "list[SpanRecord]"]


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
    if not left_out:
        return list(spans), {}
    kept = (lifted(span, left_out) for span in spans if span.span_id not in left_out)
    return [completed(span, inner.get(span.span_id, ())) for span in kept], inner


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
