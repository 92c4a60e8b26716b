"""`SpanWriter`: stores received requests, each batch once."""

from __future__ import annotations

from itertools import accumulate, groupby
from typing import TYPE_CHECKING

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from mast_trace.exceptions import StorageError
from mast_trace_collector.storage.otlp_inlet import OtlpTable
from mast_trace_collector.storage.span_columns import SPAN_COLUMNS, SpanColumns, columns_of
from mast_trace_collector.storage.store import PERMANENT, WRITE_SETTINGS, error_code

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from mast_trace_collector.storage.store import Store

_TABLE = "otel_traces"
_PROBE_TABLE = "mast_probe"
DEFAULT_PARSE_FROM = 2 * 1024 * 1024
"""Below this size, planning the parsing statement costs more than it saves."""
COLUMNS_BYTES = 8 * 1024 * 1024
"""Size at which a piece is closed: column form takes about twenty times the memory of the encoded
requests.
"""


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
