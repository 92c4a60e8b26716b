"""`SpanWriter`: stores received requests, each batch once."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from functools import cache
from importlib import resources
from itertools import accumulate, groupby
from pathlib import Path

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from mast_trace.exceptions import StorageError
from mast_trace_collector.storage.span_columns import SPAN_COLUMNS, SpanColumns, columns_of
from mast_trace_collector.storage.store import (
    PERMANENT,
    WRITE_SETTINGS,
    Store,
    deduplication,
    error_code,
    readable_path,
)

_INLET = "mast_otlp_inlet"
_PROJECT_TAG = bytes([0xC2, 0x3E])
"""Field 1000, length-delimited: ``mast_project`` of ``schema/otlp.proto``."""
_UNABLE = frozenset({48, 60, 73, 115})
"""Not supported, no such table, format or setting: this database cannot parse OTLP at all."""

_TABLE = "otel_traces"
_PROBE_TABLE = "mast_probe"
DEFAULT_PARSE_FROM = 2 * 1024 * 1024
"""Below this size, planning the parsing statement costs more than it saves."""
COLUMNS_BYTES = 8 * 1024 * 1024
"""Size at which a piece is closed: column form takes about twenty times the memory of the encoded
requests.
"""


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
            lambda: self._store.raw_insert(_INLET, data, "Protobuf", settings=settings)
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
            if not self._store.file_insert(_INLET, path, "Protobuf", settings=settings):
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


class PoisonError(StorageError):
    """A request that can never be stored.

    The rows of its batch that were already written are deduplicated by the batch's token.

    Attributes:
        index: of the request in the batch.
        reason: the cause.
    """

    def __init__(self, index: int, reason: str) -> None:
        super().__init__(f"request {index} cannot be stored: {reason}")
        self.index = index
        self.reason = reason


class SpanWriter:
    """Writes OTLP trace requests into ``otel_traces``. Safe to use from any number of threads.

    Large batches are parsed by ClickHouse itself, which is faster and leaves Python free; small
    ones and those with nested values are laid out in columns here. The rows are the same. A batch
    always takes the same path, because deduplication by token works on one path only.

    Args:
        store: the database.
        parse_from: size in bytes from which on a batch is passed to ClickHouse unparsed.
    """

    def __init__(self, store: Store, *, parse_from: int = DEFAULT_PARSE_FROM) -> None:
        self._store = store
        self._parse_from = parse_from
        self._otlp_table = OtlpTable(store)

    def write(
        self,
        requests: Sequence[bytes],
        *,
        token: str,
        project_of: Callable[[int], str] | None = None,
        spans: int | None = None,
        refused: bool = False,
        size: int | None = None,
        offsets: Sequence[int] | None = None,
    ) -> int:
        """Store every span of ``requests`` and return their number.

        Args:
            requests: serialized ``ExportTraceServiceRequest`` messages.
            token: the deduplication token: written again under it, nothing is stored twice.
            project_of: returns the project of the request with an index; None keeps the senders'
                projects.
            spans: their number, where the requests are known to be well formed; otherwise they are
                parsed and counted.
            refused: True if ClickHouse already rejected this batch, or a poison request was removed
                from it. Rows written so far came from the Python path, so deduplication works only
                on that path.
            size: bytes of the batch with everything ever written under the token, which decides on
                the path; None if these are all.
            offsets: byte position of each request in that batch; None if these are all.

        Raises:
            PoisonError: one request can never be stored; write the others without it, as refused.
            StorageError: the database refused for now; write the same batch again later.
        """
        projects = [project_of(index) if project_of else None for index in range(len(requests))]
        if spans is None:
            spans = sum(_spans_in(_parse(index, data)) for index, data in enumerate(requests))
        if not spans:
            return 0
        *places, total = accumulate(map(len, requests), initial=0)
        large = (total if size is None else size) >= self._parse_from
        if not (large and not refused and self._otlp_table.write(requests, projects, token)):
            self._write_columns(requests, projects, token, places if offsets is None else offsets)
        return spans

    def write_file(self, path: Path, *, size: int, token: str) -> bool | None:
        """Store the requests of a length-delimited Protobuf file, without parsing them here.

        Args:
            path: the file.
            size: as for `write`.
            token: as for `write`.

        Returns:
            Whether they are stored. If not, none is: None if this was not tried, False if
            ClickHouse cannot read them.

        Raises:
            StorageError: the database refused for now; write the same file again later.
        """
        if size < self._parse_from or not self._otlp_table.reads(path):
            return None
        return self._otlp_table.write_file(path, token)

    def _write_columns(
        self,
        requests: Sequence[bytes],
        projects: Sequence[str | None],
        token: str,
        offsets: Sequence[int],
    ) -> None:
        """Write piece by piece, each under a token of its own.

        A request's piece depends on its position alone: if requests are left out, no other request
        moves into a stored piece.
        """
        indices = range(len(requests))
        for number, group in groupby(indices, lambda index: offsets[index] // COLUMNS_BYTES):
            piece = list(group)
            try:
                parsed = [_parse(index, requests[index]) for index in piece]
                columns = columns_of(parsed, [projects[index] for index in piece])
                if columns:
                    self._insert(_TABLE, columns, f"{token}+{number}" if number else token)
            except StorageError as error:
                if error_code(error) in PERMANENT:
                    self._find_poison(requests, piece)
                raise
            except Exception:
                # A defect of ours, triggered by one of them.
                self._find_poison(requests, piece)
                raise

    def _insert(self, table: str, columns: SpanColumns, token: str | None) -> None:
        self._store.insert_columns(
            table, SPAN_COLUMNS, columns.columns, token=token, settings=WRITE_SETTINGS
        )

    def _find_poison(self, requests: Sequence[bytes], piece: Sequence[int]) -> None:
        """Raise for the first request that a table without storage refuses as well."""
        self._store.command(f"CREATE TABLE IF NOT EXISTS {_PROBE_TABLE} AS {_TABLE} ENGINE = Null")
        try:
            for index in piece:
                self._probe(index, requests[index])
        finally:
            self._store.command(f"DROP TABLE IF EXISTS {_PROBE_TABLE}")

    def _probe(self, index: int, data: bytes) -> None:
        try:
            columns = columns_of([_parse(index, data)], [None])
            if columns:
                self._insert(_PROBE_TABLE, columns, None)
        except StorageError as error:
            if error_code(error) in PERMANENT:
                raise PoisonError(index, str(error)) from error
            raise
        except Exception as error:
            raise PoisonError(index, repr(error)) from error


def _parse(index: int, data: bytes) -> ExportTraceServiceRequest:
    try:
        return ExportTraceServiceRequest.FromString(data)
    except DecodeError as error:
        raise PoisonError(index, f"it is no OTLP trace request: {error}") from error


def _spans_in(request: ExportTraceServiceRequest) -> int:
    return sum(
        len(scope_spans.spans)
        for resource_spans in request.resource_spans
        for scope_spans in resource_spans.scope_spans
    )
