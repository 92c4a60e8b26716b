"""Decodes a request body into the form that the spool keeps: checked, counted, of one project."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError

from mast_trace import semconv
from mast_trace_collector.otlp.checking import Survey, survey
from mast_trace_collector.otlp.density import check_values
from mast_trace_collector.otlp.errors import RequestError
from mast_trace_collector.otlp.json_decoding import JSONEncoding
from mast_trace_collector.otlp.salvage import UNREADABLE, Encoding, Opened, Salvage
from mast_trace_collector.otlp.signals import BYTES, Signal, encoded, fields

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor


_DEEPEST = 100


class ProtobufEncoding:
    """Reads parts of a request in protobuf; see `Encoding`.

    Args:
        body: the request.
        signal: of the request.
    """

    def __init__(self, body: bytes, signal: Signal) -> None:
        self.raw = body
        self._request = signal.request
        descriptor: Any = signal.request.DESCRIPTOR
        self._around: dict[Descriptor, tuple[int, ...]] = {descriptor: ()}
        for name in (signal.resources, signal.scopes, signal.items):
            field = descriptor.fields_by_name[name]
            above, descriptor = self._around[descriptor], field.message_type
            self._around[descriptor] = (field.number << 3 | BYTES, *above)

    def whole(self) -> Any:
        """Return the request, or raise one of `UNREADABLE`."""
        return self._request.FromString(self.raw)

    def open(self, raw: bytes, descriptor: Descriptor, field: str) -> Opened:
        """Separate the messages of a field from the bytes of their message."""
        wanted = descriptor.fields_by_name[field].number << 3 | BYTES
        own: list[bytes] = []
        parts: list[bytes] = []
        broken = False
        try:
            for begin, tag, content, end in fields(raw):
                if tag == wanted:
                    parts.append(raw[content:end])
                else:
                    own.append(raw[begin:end])
        except ValueError:
            broken = True
        return Opened(b"".join(own), parts, broken)

    def add(self, messages: Any, own: bytes, descriptor: Descriptor) -> bool:
        """Parse a message and append it; a text that is no UTF-8 gets U+FFFD in place of bad bytes."""
        mended = own
        try:
            self._parse_in_place(own, descriptor)
        except DecodeError:
            mended = with_valid_texts(own, descriptor)
            if mended == own:
                raise
            self._parse_in_place(mended, descriptor)
        messages.add().MergeFromString(mended)
        return mended is not own

    def _parse_in_place(self, own: bytes, descriptor: Descriptor) -> None:
        """Parse a message where it stands in a request: the parser's limit of depth counts from there."""
        for tag in self._around[descriptor]:
            own = encoded(tag) + encoded(len(own)) + own
        self._request.FromString(own)


def with_valid_texts(data: bytes, descriptor: Descriptor, depth: int = 0) -> bytes:
    """Return a message whose texts are UTF-8.

    Args:
        data: the message, in protobuf.
        descriptor: its type.
        depth: number of messages around it.

    Raises:
        ValueError: the bytes are no message, or nested deeper than the parser reads.
    """
    if depth > _DEEPEST:
        raise ValueError("values are nested too deep")
    inside = _texts_and_messages(descriptor)
    out = []
    for begin, tag, content, end in fields(data):
        if tag not in inside:
            out.append(data[begin:end])
            continue
        value, kind = data[content:end], inside[tag]
        if kind is None:
            value = value.decode("utf-8", "replace").encode()
        else:
            value = with_valid_texts(value, kind, depth + 1)
        out += (encoded(tag), encoded(len(value)), value)
    return b"".join(out)


@cache  # one entry for each message type of OTLP
def _texts_and_messages(descriptor: Descriptor) -> dict[int, Descriptor | None]:
    """Tags of the inner messages of a message with the type of each, and of its texts with None."""
    return {
        field.number << 3 | BYTES: field.message_type
        for field in descriptor.fields
        if field.message_type is not None or field.type == FieldDescriptor.TYPE_STRING
    }


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
