"""Decodes a request body into the form that the spool keeps: checked, counted, of one project."""

from __future__ import annotations

import time
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from google.protobuf.message import DecodeError

from mast_trace import semconv
from mast_trace_collector.otlp.density import check_values
from mast_trace_collector.otlp.errors import RequestError
from mast_trace_collector.otlp.json_decoding import parse_json
from mast_trace_collector.otlp.signals import TRACES

if TYPE_CHECKING:
    from mast_trace_collector.otlp.signals import Signal


_PARTS = ("events", "links")
_ATTRIBUTES = attrgetter("attributes")
_END = attrgetter("end_time_unix_nano")
_LATE_NANOSECONDS = 60 * 10**9
_AT_A_TIME = 4096


@dataclass(frozen=True)
class RequestLimits:
    """Limits of a request's content.

    Attributes:
        max_nesting: depth of attribute values in JSON.
        max_attributes: attributes of one span, event, link, scope or resource, and events or links
            of one span.
        max_values: values of the whole request.
    """

    max_nesting: int
    max_attributes: int
    max_values: int = 1_000_000


@dataclass(frozen=True)
class Decoded:
    """A request that can be stored.

    Attributes:
        payload: the request in protobuf; the sender's own bytes wherever nothing had to change.
        items: spans (or log records) in it.
        rejected: number of items left out; `message` has the reason.
        late: spans that ended more than a minute before they arrived.
    """

    payload: bytes
    items: int
    rejected: int = 0
    message: str = ""
    late: int = 0


def decode(
    body: bytes,
    signal: Signal,
    limits: RequestLimits,
    *,
    json: bool = False,
    project: str | None = None,
) -> Decoded:
    """Check a request.

    Args:
        body: the decompressed body.
        signal: of the request.
        limits: of its content.
        json: the body is OTLP/JSON, not protobuf.
        project: replaces the project that the sender names; None keeps that.

    Raises:
        RequestError: it is no such request, or none of its items is within the limits.
        TooLarge: it holds too many values.
    """
    check_values(body, signal, limits.max_values, json=json)
    request = parse_json(body, signal, limits.max_nesting) if json else _parse(body, signal)
    items, excessive = _count(request, signal, limits.max_attributes)
    message = ""
    if excessive:
        message = f"more than {limits.max_attributes} attributes"
        items -= _leave_out(request, signal, limits.max_attributes)
        if not items:
            raise RequestError(f"everything in the request has {message}")
    if project is not None:
        _set_project(request, signal, project)
    # An unchanged request keeps its bytes: that costs nothing, and a request sent again has the
    # same digest.
    changed = json or excessive or project is not None
    payload: bytes = request.SerializeToString() if changed else body
    return Decoded(payload, items, excessive, message, _late(request) if signal is TRACES else 0)


def _parse(body: bytes, signal: Signal) -> Any:
    try:
        return signal.request.FromString(body)
    except DecodeError as error:
        raise RequestError(f"the body is no OTLP {signal.name} request: {error}") from error


def _count(request: Any, signal: Signal, most: int) -> tuple[int, int]:
    """Return the number of items, and the number of those with too many attributes."""
    items = excessive = 0
    for resource in getattr(request, signal.resources):
        resource_excessive = len(resource.resource.attributes) > most
        for scope in getattr(resource, signal.scopes):
            all_items = getattr(scope, signal.items)
            items += len(all_items)
            if resource_excessive or len(scope.scope.attributes) > most:
                excessive += len(all_items)
                continue
            for start in range(0, len(all_items), _AT_A_TIME):
                # Kept in a list, because each pass would make Python's view of every item anew; not
                # for a million items, because a view takes more memory than an empty span.
                found = all_items[start : start + _AT_A_TIME]
                if _any_excessive(found, most):
                    excessive += sum(_excessive(item, most) for item in found)
    return items, excessive


def _any_excessive(found: Any, most: int) -> bool:
    """Return whether an item is `_excessive`. Hardly any is, and this test takes few steps of Python."""
    if max(map(len, map(_ATTRIBUTES, found)), default=0) > most:
        return True
    fields = found[0].DESCRIPTOR.fields_by_name if found else ()
    return any(
        _excessive(item, most)
        for name in _PARTS
        if name in fields
        for item in filter(attrgetter(name), found)
    )


def _excessive(item: Any, most: int) -> bool:
    """Return whether a span or a log record exceeds the limits of attributes, events or links."""
    if len(item.attributes) > most:
        return True
    parts = [part for name in _PARTS for part in getattr(item, name, ())]
    return len(parts) > most or any(len(part.attributes) > most for part in parts)


def _late(request: Any) -> int:
    """Count the spans that ended long ago; a run's verdict may have been given without them."""
    then = time.time_ns() - _LATE_NANOSECONDS
    return sum(
        sum(map(then.__gt__, map(_END, scope.spans)))
        for resource in request.resource_spans
        for scope in resource.scope_spans
    )


def _leave_out(request: Any, signal: Signal, most: int) -> int:
    """Remove the items with too many attributes."""
    removed = 0
    for resource in getattr(request, signal.resources):
        resource_excessive = len(resource.resource.attributes) > most
        for scope in getattr(resource, signal.scopes):
            found = getattr(scope, signal.items)
            all_excessive = resource_excessive or len(scope.scope.attributes) > most
            for index in reversed(range(len(found))):
                if all_excessive or _excessive(found[index], most):
                    del found[index]
                    removed += 1
            if all_excessive:
                scope.ClearField("scope")
        if resource_excessive:
            resource.ClearField("resource")
    return removed


def _set_project(request: Any, signal: Signal, project: str) -> None:
    for resource in getattr(request, signal.resources):
        attributes = resource.resource.attributes
        for index in reversed(range(len(attributes))):
            if attributes[index].key == semconv.PROJECT:
                del attributes[index]
        attributes.add(key=semconv.PROJECT).value.string_value = project
