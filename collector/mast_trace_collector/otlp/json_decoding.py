"""OTLP/JSON -> protobuf messages.

OTLP's JSON is protobuf's with exceptions (ids in hexadecimal), and senders deviate from it (ids in
base64, enums by name, snake_case names); all of these forms are accepted. The conversion is driven
by the message descriptors and hands whole dictionaries to the protobuf library, which is several
times faster than `google.protobuf.json_format`.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

import orjson
from google.protobuf.descriptor import FieldDescriptor

from mast_trace_collector.otlp.errors import RequestError
from mast_trace_collector.otlp.salvage import UNREADABLE, Opened

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor

    from mast_trace_collector.otlp.signals import Signal

_MOST_DIGITS = 4000
"""Longer numbers are none for Python."""
_HALF_CHARACTER = re.compile("[\\ud800-\\udfff]")

_ID_LENGTHS = {"trace_id": 16, "span_id": 8, "parent_span_id": 8}
_FLOATS = {FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT}
_INTEGERS = {
    FieldDescriptor.CPPTYPE_INT32,
    FieldDescriptor.CPPTYPE_INT64,
    FieldDescriptor.CPPTYPE_UINT32,
    FieldDescriptor.CPPTYPE_UINT64,
}
# Name of the field, converter of its value, the converter's argument, whether it is repeated.
_Field = tuple[str, "Callable[[_Reader, Any, Any, int], Any]", Any, bool]


def read_json(body: bytes) -> tuple[Any, bool]:
    """Return a document, and whether it is JSON by the standard; if not, texts may be invalid.

    Raises:
        RequestError: it is no JSON by any reading.
    """
    try:
        return orjson.loads(body), True
    except orjson.JSONDecodeError as error:
        try:
            return _read_leniently(body), False
        except (ValueError, RecursionError):
            raise RequestError(f"the body is no JSON: {error}") from error


def _read_leniently(body: bytes) -> Any:
    """Parse JSON in which a number may be NaN, and a byte no text; that becomes half a character."""
    return json.loads(
        body.decode("utf-8-sig", "surrogateescape"),
        # OTLP writes such numbers as texts.
        parse_constant=str,
        parse_int=lambda digits: int(digits) if len(digits) < _MOST_DIGITS else float(digits),
        strict=False,
    )


def with_valid_texts(value: Any) -> Any:
    """Return a value with U+FFFD in place of each half of a character."""
    if isinstance(value, str):
        return _HALF_CHARACTER.sub("\ufffd", value)
    if isinstance(value, list):
        return [with_valid_texts(item) for item in value]
    if isinstance(value, dict):
        return {key: with_valid_texts(item) for key, item in value.items()}
    return value


def parse_json(body: bytes, signal: Signal, max_nesting: int) -> Any:
    """Read an export request as a whole.

    Unknown fields are ignored, as OTLP requires; unknown attributes are kept.

    Raises:
        RequestError: the body is no JSON, or not of the request's shape.
    """
    encoding = JSONEncoding(body, signal, max_nesting)
    try:
        return encoding.whole()
    except UNREADABLE as error:
        raise RequestError(f"the body is no OTLP {signal.name} request: {error}") from error


class JSONEncoding:
    """Reads a request in JSON, or parts of it; see `Encoding`.

    Args:
        body: the request.
        signal: of the request.
        max_nesting: depth of attribute values.

    Raises:
        RequestError: it is no JSON.
    """

    def __init__(self, body: bytes, signal: Signal, max_nesting: int) -> None:
        self._signal = signal
        self._reader = _Reader(max_nesting)
        self.raw, self._strict = read_json(body)

    def whole(self) -> Any:
        """Return the request, or raise one of `UNREADABLE`."""
        request = self._signal.request
        descriptor: Any = request.DESCRIPTOR
        return request(**self._reader.message(self.raw, descriptor, 0))

    def open(self, raw: Any, descriptor: Descriptor, field: str) -> Opened:
        """Separate the messages of a field from their object."""
        if not isinstance(raw, dict):
            raise TypeError(f"{descriptor.name} must be an object")
        names = {field, descriptor.fields_by_name[field].json_name}
        own = {key: value for key, value in raw.items() if key not in names}
        found = [value for key, value in raw.items() if key in names and value is not None]
        parts = [part for some in found if isinstance(some, list) for part in some]
        return Opened(own, parts, not all(isinstance(some, list) for some in found))

    def add(self, messages: Any, own: Any, descriptor: Descriptor) -> bool:
        """Convert an object and append it; what is no text in a text becomes U+FFFD."""
        mended = own if self._strict else with_valid_texts(own)
        messages.add(**self._reader.message(mended, descriptor, 0))
        return not self._strict and bool(mended != own)


class _Reader:
    """Converts one document within the limit of its depth."""

    def __init__(self, max_nesting: int) -> None:
        self._max_nesting = max_nesting

    def message(self, value: Any, descriptor: Descriptor, depth: int) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise TypeError(f"{descriptor.name} must be an object")
        if descriptor.name == "AnyValue":
            depth += 1
            if depth > self._max_nesting:
                raise ValueError(f"values are nested deeper than {self._max_nesting}")
        known = _fields(descriptor)
        out: dict[str, Any] = {}
        for key, given in value.items():
            field = known.get(key)
            if field is None or given is None:
                continue
            name, convert, inner, repeated = field
            if not repeated:
                out[name] = convert(self, given, inner, depth)
            elif isinstance(given, list):
                out[name] = [convert(self, element, inner, depth) for element in given]
            else:
                raise TypeError(f"{key} must be an array")
        return out

    def plain(self, value: Any, kind: type, _: int) -> Any:
        if type(value) is not kind:
            raise TypeError(f"a {kind.__name__} is expected, not a {type(value).__name__}")
        return value

    def integer(self, value: Any, _: Any, __: int) -> int:
        if isinstance(value, bool):
            raise TypeError("a boolean is no integer")
        if isinstance(value, float) and not value.is_integer():
            raise ValueError(f"{value} is no integer")
        try:
            return int(value)
        except (ValueError, TypeError):
            raise ValueError(f"{str(value)[:40]!r} is no integer") from None

    def number(self, value: Any, _: Any, __: int) -> float:
        if isinstance(value, bool):
            raise TypeError("a boolean is no number")
        try:
            return float(value)
        except ValueError:
            raise ValueError(f"{str(value)[:40]!r} is no number") from None

    def enumeration(self, value: Any, numbers: Mapping[str, int], _: int) -> int:
        if isinstance(value, str) and value in numbers:
            return numbers[value]
        return self.integer(value, None, 0)

    def binary(self, value: Any, _: Any, __: int) -> bytes:
        if not isinstance(value, str):
            raise TypeError("bytes must be a base64 string")
        # Both alphabets, with or without padding.
        text = value.replace("-", "+").replace("_", "/").rstrip("=")
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)

    def identity(self, value: Any, length: int, _: int) -> bytes:
        if not isinstance(value, str):
            raise TypeError("an id must be a hexadecimal string")
        try:
            return binascii.unhexlify(value)
        except (binascii.Error, ValueError):
            data = self.binary(value, None, 0)
        if len(data) != length:
            raise ValueError("an id is neither hexadecimal nor base64")
        return data


@cache  # one entry for each message type of OTLP
def _fields(descriptor: Descriptor) -> dict[str, _Field]:
    fields: dict[str, _Field] = {}
    for field in descriptor.fields:
        entry: _Field
        repeated = field.default_value == []
        if field.message_type is not None:
            entry = (field.name, _Reader.message, field.message_type, repeated)
        elif field.enum_type is not None:
            # A table of our own: asked for half a character, protobuf's leaves an error behind.
            numbers = {each.name: each.number for each in field.enum_type.values}
            entry = (field.name, _Reader.enumeration, numbers, repeated)
        elif field.name in _ID_LENGTHS:
            entry = (field.name, _Reader.identity, _ID_LENGTHS[field.name], repeated)
        elif field.type == FieldDescriptor.TYPE_BYTES:
            entry = (field.name, _Reader.binary, None, repeated)
        elif field.cpp_type in _INTEGERS:
            entry = (field.name, _Reader.integer, None, repeated)
        elif field.cpp_type in _FLOATS:
            entry = (field.name, _Reader.number, None, repeated)
        else:
            kind = bool if field.type == FieldDescriptor.TYPE_BOOL else str
            entry = (field.name, _Reader.plain, kind, repeated)
        fields[field.name] = fields[field.json_name] = entry
    return fields
