"""SQL over OTLP messages that ClickHouse has parsed: the rules of `attribute_text`, in SQL."""

from __future__ import annotations

_KIND = (
    "Enum8('none' = 0, 'string_value' = 1, 'bool_value' = 2, 'int_value' = 3, 'double_value' = 4, "
    "'array_value' = 5, 'kvlist_value' = 6, 'bytes_value' = 7)"
)
# The column named after the oneof shows which member was sent.
_ITEM_TYPES = (
    f"value {_KIND}, string_value String, bool_value Bool, int_value Int64, "
    "double_value Float64, bytes_value String, kvlist_value String, array_value String"
)
# Numbers are read as text: the parser writes it faster than a function over every value does.
_VALUE_TYPES = (
    f"value {_KIND}, string_value String, bool_value String, int_value String, "
    "double_value String, bytes_value String, kvlist_value String, "
    f"array_value Tuple(values Array(Tuple({_ITEM_TYPES})))"
)

KEY_VALUES = f"Array(Tuple(key LowCardinality(String), value Tuple({_VALUE_TYPES})))"
"""The type of a list of attributes."""


def attributes_map(attributes: str) -> str:
    """Return attributes as Map(String, String)."""
    return f"mapFromArrays(({attributes}).key, arrayMap(v -> {_TEXT}, ({attributes}).value))"


def is_nested(attributes: str) -> str:
    """Return a condition: one of the attributes is a value that `attributes_map` cannot render.

    Such values are maps, lists in lists, bytes in lists, and values that writers of JSON render
    differently in lists: very large and very small numbers, and rare control characters.
    """
    return (
        "arrayExists(v -> v.value = 'kvlist_value' OR arrayExists(i -> "
        "i.value IN ('array_value', 'kvlist_value', 'bytes_value') "
        r"OR match(i.string_value, '[\\x0b\\x0e\\x0f\\x1a-\\x1f]') "
        "OR (i.value = 'double_value' AND i.double_value != 0 "
        "AND NOT (abs(i.double_value) BETWEEN 1e-4 AND 1e15)), v.array_value.values), "
        f"({attributes}).value)"
    )


def hex_id(data: str) -> str:
    """Return an id in hexadecimal; the all-zero id is no id."""
    return f"if(replaceAll({data}, '\\0', '') = '', '', lower(hex({data})))"


def time(nanoseconds: str) -> str:
    """Return nanoseconds as an integer in the range of DateTime64(9)."""
    return f"toInt64(least({nanoseconds}, 9223372036854775807))"


_NOT_JSON = "json: unsupported value: "
_DOUBLE = (
    r"transform(replaceRegexpOne(v.double_value, 'e(\\d)', 'e+\\1'), ['nan', 'inf', '-inf'], "
    f"['{_NOT_JSON}NaN', '{_NOT_JSON}+Inf', '{_NOT_JSON}-Inf'])"
)
_ITEM = (
    "multiIf(i.value = 'string_value', toJSONString(i.string_value), "
    "i.value = 'int_value', toString(i.int_value), "
    "i.value = 'bool_value', if(i.bool_value, 'true', 'false'), "
    # Adding 0 removes the sign of -0, which some writers of JSON do not know.
    "i.value = 'double_value', toString(i.double_value + 0), 'null')"
)
_LIST = f"concat('[', arrayStringConcat(arrayMap(i -> {_ITEM}, v.array_value.values), ','), ']')"
# Everything but a string's own text is short: joining it copies the long texts once.
_TEXT = (
    "concat(v.string_value, multiIf(v.value = 'int_value', v.int_value, "
    f"v.value = 'double_value', {_DOUBLE}, "
    "v.value = 'bool_value', v.bool_value, "
    f"v.value = 'array_value', {_LIST}, "
    "v.value = 'bytes_value', base64Encode(v.bytes_value), ''))"
)
