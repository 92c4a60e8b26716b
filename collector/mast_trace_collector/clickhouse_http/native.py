"""The parts of the Native format that clickhouse-go expects and the engine does not write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mast_trace_collector.otlp.signals import encoded

if TYPE_CHECKING:
    from collections.abc import Sequence

BLOCK_INFO = bytes([1, 0, 2, 0xFF, 0xFF, 0xFF, 0xFF, 0])
"""Precedes every block for a client that names a protocol version: no overflow, bucket -1."""
PROTOCOL_WITH_BLOCK_INFO = 54454
"""Clients that name this version or a later one read `BLOCK_INFO`; older ones only probe."""
OUR_REVISION = 54453
"""The last revision whose blocks differ from the engine's only by `BLOCK_INFO`."""
HELLO = "SELECT displayName(), version(), revision(), timezone()"
"""The first query of clickhouse-go, whose answer it parses by its own revision."""


def header(columns: Sequence[tuple[str, str]]) -> bytes:
    """Return the block without rows that has the names and types of columns."""
    return encoded(len(columns)) + encoded(0) + b"".join(_text(n) + _text(t) for n, t in columns)


def hello(version: str) -> bytes:
    """Answer `HELLO`: one row, each column with the byte that says "no special serialisation"."""
    revision = OUR_REVISION.to_bytes(4, "little")
    columns = [
        ("displayName()", "String", _text("mast-trace")),
        ("version()", "String", _text(version)),
        ("revision()", "UInt32", revision),
        ("timezone()", "String", _text("UTC")),
    ]
    rows = b"".join(_text(name) + _text(kind) + b"\0" + value for name, kind, value in columns)
    return BLOCK_INFO + encoded(len(columns)) + encoded(1) + rows


def _text(text: str) -> bytes:
    # Names of columns may hold any bytes.
    data = text.encode("utf-8", "surrogateescape")
    return encoded(len(data)) + data
