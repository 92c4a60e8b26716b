"""Substitution of values for a statement's parameters.

A view and a statement take parameters in different forms, so values become literals before the view
is created.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mast_trace_collector.clickhouse_http.errors import QueryError, denied
from mast_trace_collector.clickhouse_http.rendering import literal_of_bytes
from mast_trace_collector.storage.span_sql import literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mast_trace_collector.clickhouse_http.engine import Handle
    from mast_trace_collector.clickhouse_http.rendering import Token

_ESCAPED = frozenset("\\\t\n\r\0'")


def literals(
    handle: Handle, places: Sequence[Token], params: Mapping[str, str]
) -> list[tuple[Token, str]]:
    """Return the literal for each ``{name:Type}``.

    Args:
        handle: a connection, which reads values with escapes in them.
        places: tokens of parameters.
        params: values by name, escaped as ClickHouse reads them.

    Raises:
        QueryError: one is missing, cannot be read as its type, or stands for a name.
    """
    changes, escaped = [], []
    for place in places:
        name, _, kind = (part.strip() for part in place.text[1:-1].partition(":"))
        if kind.lower() == "identifier":
            raise denied(
                "a parameter may not stand for the name of a table or a column "
                f"({{{name}:Identifier}}): write the name into the statement"
            )
        if name not in params:
            raise QueryError(456, f"Substitution `{name}` is not set", "UNKNOWN_QUERY_PARAMETER")
        if _ESCAPED.isdisjoint(params[name]):
            changes.append((place, _cast(literal(params[name]), kind)))
        else:
            escaped.append((place, kind))
    if escaped:
        changes += _read(handle, escaped, params)
    return sorted(changes, key=lambda change: change[0].start)


def _read(
    handle: Handle, places: Sequence[tuple[Token, str]], params: Mapping[str, str]
) -> list[tuple[Token, str]]:
    """Let the engine read values with escapes in them."""
    # In hexadecimal, because they may hold any bytes.
    values = ", ".join(f"ifNull(hex(toString({place.text})), 'NULL')" for place, _ in places)
    read = handle.text(f"SELECT {values}", params).rstrip("\n").split("\t")
    return [
        (place, _cast("NULL" if value == "NULL" else literal_of_bytes(bytes.fromhex(value)), kind))
        for (place, kind), value in zip(places, read, strict=True)
    ]


def _cast(value: str, kind: str) -> str:
    return value if kind == "String" else f"_CAST({value}, {literal(kind)})"
