"""Passes OTLP requests to ClickHouse unparsed; see ``schema/004_mast_otlp_inlet.sql``."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from mast_trace.exceptions import StorageError
from mast_trace_collector.storage.store import (
    PERMANENT,
    WRITE_SETTINGS,
    deduplication,
    error_code,
    readable_path,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence
    from pathlib import Path

    from mast_trace_collector.storage.store import Store

_TABLE = "mast_otlp_inlet"
_PROJECT_TAG = bytes([0xC2, 0x3E])
"""Field 1000, length-delimited: ``mast_project`` of ``schema/otlp.proto``."""
_UNABLE = frozenset({48, 60, 73, 115})
"""Not supported, no such table, format or setting: this database cannot parse OTLP at all."""


class OtlpTable:
    """Inserts OTLP requests that ClickHouse parses itself."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._able = True

    def write(self, requests: Sequence[bytes], projects: Sequence[str | None], token: str) -> bool:
        """Store every span of ``requests``; return False if ClickHouse cannot read them.

        If it returns False, nothing has been stored. A batch is one block, so a value that cannot
        be rendered rejects it as a whole.

        Raises:
            StorageError: the database refused for now.
        """
        if not self._able:
            return False
        embedded = bool(self._store.embedded_path)
        parts = _delimited_parts(requests, projects)
        # Joining would copy tens of megabytes once more; but over the network a request may have to
        # be sent again.
        data = parts if embedded else b"".join(parts)
        settings = {**_settings(embedded=embedded), **deduplication(token)}
        return self._try(
            lambda: self._store.raw_insert(_TABLE, data, "Protobuf", settings=settings)
        )

    def reads(self, path: Path) -> bool:
        """Return whether ClickHouse can read a file of requests: the engine in this process can."""
        return self._able and bool(self._store.embedded_path) and readable_path(path)

    def write_file(self, path: Path, token: str) -> bool:
        """Store every span of a file of requests that it `reads`, as `write` does.

        Raises:
            StorageError: as for `write`, or ClickHouse found nothing in the file.
        """
        settings = {**_settings(embedded=True), **deduplication(token)}

        def insert() -> None:
            if not self._store.file_insert(_TABLE, path, "Protobuf", settings=settings):
                raise StorageError(f"ClickHouse finds no requests in {path}")

        return self._try(insert)

    def _try(self, insert: Callable[[], None]) -> bool:
        try:
            insert()
        except StorageError as error:
            code = error_code(error)
            if code in _UNABLE:
                self._able = False
            elif code not in PERMANENT:
                raise
            return False
        return True


@cache
def _settings(*, embedded: bool) -> dict[str, str | int]:
    schema = resources.files("mast_trace_collector.storage") / "schema" / "otlp.proto"
    one_block = 10**9
    settings: dict[str, str | int] = {
        **WRITE_SETTINGS,
        "input_format_protobuf_oneof_presence": 1,
        # Without this setting the view would hold each request whole at each of its spans; where
        # the engine lacks it, requests are laid out in Python.
        "enable_lazy_columns_replication": 1,
        "output_format_json_escape_forward_slashes": 0,
        "max_insert_block_size": one_block,
        "max_block_size": one_block,
    }
    if embedded:
        # The embedded engine would keep a text in a file of the working directory.
        return {**settings, "format_schema": f"{schema}:Request"}
    return {
        **settings,
        "format_schema_source": "string",
        "format_schema": schema.read_text("utf-8"),
        "format_schema_message_name": "Request",
    }


def _delimited_parts(
    requests: Sequence[bytes], projects: Sequence[str | None]
) -> Generator[bytes, None, None]:
    """Yield each request with its length before it and its project after it."""
    for request, project in zip(requests, projects, strict=True):
        tag = _project(project)
        yield _length(len(request) + len(tag))
        yield request
        yield tag


def _project(project: str | None) -> bytes:
    """The field with the project; always present, so that a sender's own is never the last."""
    value = b"\0" if project is None else project.encode("utf-8", "replace")
    return _PROJECT_TAG + _length(len(value)) + value


def _length(size: int) -> bytes:
    """Return a length in Protobuf's encoding."""
    prefix = bytearray()
    while size > 0x7F:
        prefix.append(size & 0x7F | 0x80)
        size >>= 7
    prefix.append(size)
    return bytes(prefix)
