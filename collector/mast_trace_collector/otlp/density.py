"""The number of values in a request, counted before it is parsed.

A parser makes an object of every value, 30 to 700 bytes for the two of an empty one: 64 MiB of
them, a few kilobytes when compressed, would take it many gigabytes.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

from mast_trace_collector.otlp.errors import TooLarge
from mast_trace_collector.otlp.signals import BYTES, Signal, after, varint

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor


_STRUCTURE = (b"{", b"[", b",")
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_QUICK_JSON = 32 * 1024
_QUICK_SAMPLE = 128
_STRIDE = 61  # no length of a value that occurs often
_LOOKED_AT = 32 * 1024
_DEEPEST = 101  # depth at which the parser gives up

_UNKNOWN: Any = object()

_Fields = dict[int, "Descriptor | None"]


def check_values(body: bytes, signal: Signal, most: int, *, json: bool) -> None:
    """Refuse a request with too many values: everything that is not a single number or text.

    Raises:
        TooLarge: it has more than ``most``.
    """
    if len(body) <= most:
        return
    count = _in_json(body, most) if json else _in_protobuf(body, signal, most)
    if count > most:
        raise TooLarge(f"the request has more than {most} values; send it in smaller ones")


def takes_long(body: bytes, signal: Signal, *, json: bool) -> bool:
    """Return whether decoding may take more than some milliseconds, as JSON and empty values do.

    Only a sample of bytes is examined: fewer than a third of those of a usual request could be
    tags.
    """
    if json:
        return len(body) > _QUICK_JSON
    sample = body[::_STRIDE]
    request: Any = signal.request.DESCRIPTOR
    tags = len(sample) - len(sample.translate(None, _tags(request)))
    return tags * 3 > len(sample) > _QUICK_SAMPLE


def _in_json(body: bytes, most: int) -> int:
    # An upper bound, found quickly: texts contain these characters, too.
    if sum(map(body.count, _STRUCTURE)) <= most:
        return 0
    count = end = 0
    for text in _STRING.finditer(body):
        between = body[end : text.start()]
        count += sum(map(between.count, _STRUCTURE))
        end = text.end()
        if count > most:
            return count
    return count + sum(map(body[end:].count, _STRUCTURE))


def _in_protobuf(body: bytes, signal: Signal, most: int) -> int:
    request: Any = signal.request.DESCRIPTOR
    return _walk(body, request, most) if _may_hold_more(body, _tags(request), most) else 0


def _walk(body: bytes, request: Descriptor, most: int) -> int:
    """Count values as a parser would find them, until there are too many."""
    count = position = 0
    end, fields = len(body), _fields(request)
    outer: list[tuple[int, _Fields]] = []
    while count <= most and len(outer) < _DEEPEST:
        if position >= end:
            if not outer:
                break
            end, fields = outer.pop()
            continue
        tag, position = varint(body, position)
        if tag & 7 != BYTES:
            position = after(body, position, tag & 7)
            continue
        size, position = varint(body, position)
        inner = fields.get(tag >> 3, _UNKNOWN)
        count += inner is not _UNKNOWN
        if inner is _UNKNOWN or inner is None or not size:
            position += size
        else:
            outer.append((end, fields))
            end, fields = min(position + size, end), _fields(inner)
    return count


def _may_hold_more(body: bytes, tags: bytes, most: int) -> bool:
    """Return whether a body has enough tags for more values; quickly, so that few bodies are parsed.

    A value takes two bytes at least, so usually a part of the body is enough.
    """
    count = 0
    for position in range(0, len(body), _LOOKED_AT):
        if count + (len(body) - position) // 2 <= most:
            return False
        part = body[position : position + _LOOKED_AT]
        count += len(part) - len(part.translate(None, tags))
    return count > most


@cache  # one entry for each message type of OTLP
def _fields(descriptor: Descriptor) -> _Fields:
    """Numbers of the fields that are counted, with the message type of each."""
    return {
        field.number: field.message_type
        for field in descriptor.fields
        if field.message_type is not None or field.default_value == []
    }


@cache  # one entry for each signal
def _tags(request: Descriptor) -> bytes:
    """Bytes with one of which the tag of every counted field ends.

    A tag that is longer than it must be ends with a zero.
    """
    found, waiting, seen = {0}, [request], {request}
    while waiting:
        for number, inner in _fields(waiting.pop()).items():
            found.add(number << 3 | BYTES if number < 16 else number >> 4)
            if inner is not None and inner not in seen:
                seen.add(inner)
                waiting.append(inner)
    return bytes(found)
