"""Renders OTLP values as the text that the OpenTelemetry Collector's exporters store.

The rules are those of the Collector's ``pcommon.Value.AsString``.
"""

from __future__ import annotations

import math
from base64 import b64encode
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

_SMALLEST_PLAIN = 1e-6
_LARGEST_PLAIN = 1e21
"""JSON writes numbers outside of these with an exponent."""


def attributes_text(attributes: Iterable[KeyValue]) -> dict[str, str]:
    """Return each attribute as text; of duplicate keys the last wins."""
    out = {}
    for attribute in attributes:
        value = attribute.value
        # The common case first: nine of ten.
        text = value.string_value
        out[attribute.key] = text or value_text(value)
    return out


def value_text(value: AnyValue) -> str:
    """Return a value as text: scalars plain, bytes in base64, lists and maps as JSON."""
    render = _TEXTS.get(value.WhichOneof("value"))
    return render(value) if render else ""


def double_text(number: float) -> str:
    """Write a number as JavaScript does: shortest digits, no point after whole numbers."""
    if not math.isfinite(number):
        name = "NaN" if math.isnan(number) else "+Inf" if number > 0 else "-Inf"
        return f"json: unsupported value: {name}"
    text = repr(number)
    if number == 0 or _SMALLEST_PLAIN <= abs(number) < _LARGEST_PLAIN:
        return (format(Decimal(text), "f") if "e" in text else text).removesuffix(".0")
    mantissa, exponent = text.split("e")
    sign = "-" if exponent.startswith("-") else "+"
    return f"{mantissa}e{sign}{exponent.lstrip('+-0')}"


def _plain(value: AnyValue) -> Any:
    """Return a value in a form that `orjson` accepts."""
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_plain(item) for item in value.array_value.values]
    if kind == "kvlist_value":
        return {item.key: _plain(item.value) for item in value.kvlist_value.values}
    if kind == "double_value":
        number = value.double_value
        return int(number) if number.is_integer() and abs(number) < 2**63 else number
    if kind == "bytes_value":
        return b64encode(value.bytes_value).decode("ascii")
    return None if kind is None or kind not in _TEXTS else getattr(value, kind)


def _json(value: AnyValue) -> str:
    text = orjson.dumps(_plain(value), option=orjson.OPT_SORT_KEYS).decode("utf-8")
    # These end lines in JavaScript; the other writers of JSON escape them.
    return text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


# Other kinds are indexes into a dictionary that only profiles have.
_TEXTS: Mapping[str | None, Callable[[AnyValue], str]] = {
    "string_value": lambda value: value.string_value,
    "int_value": lambda value: str(value.int_value),
    "double_value": lambda value: double_text(value.double_value),
    "bool_value": lambda value: "true" if value.bool_value else "false",
    "bytes_value": lambda value: b64encode(value.bytes_value).decode("ascii"),
    "array_value": _json,
    "kvlist_value": _json,
}
