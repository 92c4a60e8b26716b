"""OTLP/protobuf -> messages, part by part, also where a sender's texts are not UTF-8."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError

from mast_trace_collector.otlp.salvage import Opened
from mast_trace_collector.otlp.wire import BYTES, encoded, fields

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor

    from mast_trace_collector.otlp.signals import Signal

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
