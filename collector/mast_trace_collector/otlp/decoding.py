"""Decodes a request body into the form that the spool keeps: checked, counted, of one project."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mast_trace import semconv
from mast_trace_collector.otlp.checking import Survey, survey
from mast_trace_collector.otlp.density import check_values
from mast_trace_collector.otlp.errors import RequestError
from mast_trace_collector.otlp.json_decoding import JSONEncoding
from mast_trace_collector.otlp.protobuf_decoding import ProtobufEncoding
from mast_trace_collector.otlp.salvage import UNREADABLE, Salvage

if TYPE_CHECKING:
    from mast_trace_collector.otlp.salvage import Encoding
    from mast_trace_collector.otlp.signals import Signal


class TakesLong(Exception):
    """The request cannot be decoded in passing."""


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
        late: spans that ended more than a minute before they arrived.
        rejected: items left out, by reason.
        mended: items of which something was replaced, by kind.
        message: both in words; empty if every item is kept as it came.
    """

    payload: bytes
    items: int
    late: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    mended: Counter[str] = field(default_factory=Counter)
    message: str = ""


def decode(
    body: bytes,
    signal: Signal,
    limits: RequestLimits,
    *,
    json: bool = False,
    project: str | None = None,
    patient: bool = True,
) -> Decoded:
    """Check a request, and read what can be stored of it.

    Args:
        body: the decompressed body.
        signal: of the request.
        limits: of its content.
        json: the body is OTLP/JSON, not protobuf.
        project: replaces the project that the sender names; None keeps that.
        patient: False if a request that must be read item by item is to be decoded elsewhere.

    Raises:
        TakesLong: it is such a request.
        RequestError: it is no such request, or none of its items can be stored.
        TooLarge: it holds too many values.
    """
    check_values(body, signal, limits.max_values, json=json)
    encoding: Encoding
    if json:
        encoding = JSONEncoding(body, signal, limits.max_nesting)
    else:
        encoding = ProtobufEncoding(body, signal)
    salvage = Salvage(encoding, signal, limits.max_attributes)
    request, found = _request(salvage, patient=patient)
    if project is not None:
        _set_project(request, signal, project)
    # An unchanged request keeps its bytes: that costs nothing, and a request sent again has the
    # same digest.
    changed = json or salvage.used or project is not None
    payload: bytes = request.SerializeToString() if changed else body
    return Decoded(
        payload, found.items, found.late, salvage.rejected, salvage.mended, salvage.told()
    )


def _request(salvage: Salvage, *, patient: bool) -> tuple[Any, Survey]:
    """Parse a request: as a whole where that is possible, else what can be stored of it."""
    signal, most = salvage.signal, salvage.most
    error: Exception | None = None
    try:
        request = salvage.encoding.whole()
    except UNREADABLE as unreadable:
        error = unreadable
    else:
        found = survey(request, signal, most)
        if found.sound:
            return request, found
        del request  # before the next is made
    if not patient:
        raise TakesLong
    try:
        request = salvage.read()
    except UNREADABLE as unreadable:
        error = unreadable
    else:
        found = survey(request, signal, most)
        if found.items or not (error or salvage.rejected):
            return request, found
    if error:
        raise RequestError(f"the body is no OTLP {signal.name} request: {error}") from error
    raise RequestError(f"nothing in the request can be stored: {salvage.told()}")


def _set_project(request: Any, signal: Signal, project: str) -> None:
    for resource in getattr(request, signal.resources):
        attributes = resource.resource.attributes
        for index in reversed(range(len(attributes))):
            if attributes[index].key == semconv.PROJECT:
                del attributes[index]
        attributes.add(key=semconv.PROJECT).value.string_value = project
