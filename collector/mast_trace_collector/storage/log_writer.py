"""`LogWriter`: stores received log records and events, each batch once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from mast_trace.exceptions import StorageError
from mast_trace.semconv import SERVICE_NAME
from mast_trace_collector.storage.span_columns import (
    LATEST_TIME,
    attributes_text,
    identity,
    value_text,
)
from mast_trace_collector.storage.span_writer import PoisonError
from mast_trace_collector.storage.store import PERMANENT, WRITE_SETTINGS, Store, error_code

if TYPE_CHECKING:
    from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord


_TABLE = "otel_logs"
LOG_COLUMNS = (
    "Timestamp",
    "TraceId",
    "SpanId",
    "TraceFlags",
    "SeverityText",
    "SeverityNumber",
    "ServiceName",
    "Body",
    "ResourceSchemaUrl",
    "ResourceAttributes",
    "ScopeSchemaUrl",
    "ScopeName",
    "ScopeVersion",
    "ScopeAttributes",
    "LogAttributes",
    "EventName",
)
"""The exporter's columns, in its order."""


class UnwritableBatch(Exception):
    """The database can never accept a batch as a whole; written one by one, most of it can be."""


class LogWriter:
    """Writes OTLP log requests into ``otel_logs``. Safe to use from any number of threads.

    Args:
        store: the database.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def write(self, requests: Sequence[bytes], *, token: str, **_: Any) -> int:
        """Store every record of ``requests`` and return their number.

        Args:
            requests: serialized ``ExportLogsServiceRequest`` messages.
            token: the deduplication token: written again under it, nothing is stored twice.

        Raises:
            PoisonError: one request can never be stored; write the others without it.
            UnwritableBatch: one request can never be stored, and it is not known which.
            StorageError: the database refused for now; write the same batch again later.
        """
        rows = [row for index, data in enumerate(requests) for row in _rows(_parse(index, data))]
        if not rows:
            return 0
        columns = [list(column) for column in zip(*rows, strict=True)]
        try:
            self._store.insert_columns(
                _TABLE, LOG_COLUMNS, columns, token=token, settings=WRITE_SETTINGS
            )
        except StorageError as error:
            if error_code(error) not in PERMANENT:
                raise
            if len(requests) == 1:
                raise PoisonError(0, str(error)) from error
            raise UnwritableBatch(str(error)) from error
        return len(rows)

    def write_file(self, path: Path, *, size: int, token: str) -> None:  # noqa: ARG002
        """Return None: log records are few, and are laid out in Python."""
        return None  # noqa: RET501


def _parse(index: int, data: bytes) -> ExportLogsServiceRequest:
    try:
        return ExportLogsServiceRequest.FromString(data)
    except DecodeError as error:
        raise PoisonError(index, f"it is no OTLP logs request: {error}") from error


def _rows(request: ExportLogsServiceRequest) -> Iterator[tuple[Any, ...]]:
    for resource_logs in request.resource_logs:
        resource = attributes_text(resource_logs.resource.attributes)
        service = resource.get(SERVICE_NAME, "")
        for scope_logs in resource_logs.scope_logs:
            scope = scope_logs.scope
            scope_columns = (scope_logs.schema_url, scope.name, scope.version)
            scope_attributes = attributes_text(scope.attributes)
            for record in scope_logs.log_records:
                yield (
                    *_told(record),
                    service,
                    value_text(record.body),
                    resource_logs.schema_url,
                    resource,
                    *scope_columns,
                    scope_attributes,
                    attributes_text(record.attributes),
                    record.event_name,
                )


def _told(record: LogRecord) -> tuple[Any, ...]:
    """Return time, span and severity; a record without a time gets that of its observation."""
    return (
        min(record.time_unix_nano or record.observed_time_unix_nano, LATEST_TIME),
        identity(record.trace_id),
        identity(record.span_id),
        record.flags & 0xFF,
        record.severity_text,
        record.severity_number if 0 <= record.severity_number <= 0xFF else 0,
    )
