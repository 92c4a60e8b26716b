"""The collector's settings."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final, Literal

from pydantic import Field, PositiveFloat, PositiveInt, model_validator

from mast_trace_collector.settings import ProcessSettings

if TYPE_CHECKING:
    from typing_extensions import Self

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB
DEFAULT_RUN_IDLE: Final = 600.0
RUN_IDLE_SECONDS: Final[float] = Field(
    DEFAULT_RUN_IDLE, description="A run without a root is finished after this long without a span."
)
"""The setting that the collector's metrics and the judge's worker share."""


def default_data_dir() -> Path:
    """The folder for the user's data, by the XDG base directory specification."""
    base = os.environ.get("XDG_DATA_HOME", "")
    return (Path(base) if base else Path.home() / ".local" / "share") / "mast-trace"


class CollectorConfig(ProcessSettings):
    """The collector's settings: `[collector]` in the configuration file."""

    table: ClassVar[str] = "collector"
    fallback_table: ClassVar[str] = "worker"
    moved: ClassVar[frozenset[str]] = frozenset({"run_quiet_seconds"})

    data_dir: Path = Field(
        default_factory=default_data_dir,
        description="Folder of the spool, the dead letters and the embedded database.",
    )
    database_url: str = Field(
        "",
        description="Store of the spans: chdb:///folder (embedded), http(s)://user:password@"
        "host:8123/database or clickhouse://...; empty means embedded, under data_dir.",
    )

    host: str = Field("127.0.0.1", description="Address that the receivers listen on.")
    http_port: int = Field(
        4318, ge=0, le=65535, description="Port of OTLP over HTTP; 0 takes a free one."
    )
    grpc_port: int = Field(
        4317, ge=0, le=65535, description="Port of OTLP over gRPC; 0 takes a free one."
    )
    grpc_enabled: bool = Field(default=True, description="Turns the receiver of OTLP over gRPC on.")

    keys_file: Path | None = Field(
        None,
        description="File of hashed bearer keys, one 'project sha256:... write,read' a line. With "
        "it, every request needs a key, and the key decides the project and what may be done.",
    )
    allow_insecure_bind: bool = Field(
        default=False,
        description="Listen beyond loopback although there are no keys. Anyone who reaches the "
        "port may then write.",
    )
    tls_cert_file: Path | None = Field(None, description="PEM certificate chain of the receivers.")
    tls_key_file: Path | None = Field(None, description="PEM private key to the certificate.")

    max_body_bytes: PositiveInt = Field(
        64 * MIB, le=GIB, description="Largest request as sent; beyond it the answer is 413."
    )
    max_decompressed_bytes: PositiveInt = Field(
        64 * MIB, le=GIB, description="Largest request after decompression."
    )
    max_inflight_bytes: PositiveInt = Field(
        256 * MIB,
        description="Bytes of requests held in memory before senders are asked to wait. While another "
        "waits, no key (without keys: no address) has more than half of them.",
    )
    max_decompression_seconds: PositiveFloat = Field(
        10.0, description="CPU time that decompressing a request may take; beyond it: 413."
    )
    max_values: PositiveInt = Field(
        1_000_000,
        description="Most values (spans, events, attributes, elements of arrays) in a request; beyond "
        "it: 413.",
    )
    max_nesting: PositiveInt = Field(
        24,
        le=30,
        description="Deepest nesting of attribute values in OTLP/JSON. The protobuf decoder itself "
        "refuses messages deeper than 100.",
    )
    max_attributes: PositiveInt = Field(
        8192,
        description="Most attributes of one span, event, link, scope or resource, and most events "
        "and links of one span; others are refused.",
    )
    max_connections: PositiveInt = Field(1024, description="Most HTTP connections at a time.")
    max_header_bytes: PositiveInt = Field(
        64 * KIB,
        ge=1024,
        description="Most bytes of a request beside its body: request line, headers, sizes and "
        "extensions of chunks, trailers; beyond it: 431.",
    )
    max_headers: PositiveInt = Field(
        100, description="Most headers and trailers of a request; beyond it: 431."
    )
    header_timeout_seconds: PositiveFloat = Field(
        10.0, description="Time that a connection has to send a request's headers."
    )
    request_timeout_seconds: PositiveFloat = Field(
        30.0, description="Time that a connection has to send a request's body."
    )
    body_grace_seconds: PositiveFloat = Field(
        10.0,
        description="Time in which a body must have come on by min_body_bytes_per_second, again and "
        "again; otherwise: 408.",
    )
    min_body_bytes_per_second: int = Field(
        1024, ge=0, description="Least speed of a request's body; 0 asks for none."
    )
    keep_alive_seconds: PositiveInt = Field(75, description="Time that an idle connection is kept.")

    spool_max_bytes: PositiveInt = Field(
        4 * GIB,
        description="Most bytes of spans on disk that wait for the database; log records may take "
        "a quarter of that beside them.",
    )
    spool_min_free_bytes: int = Field(
        256 * MIB,
        ge=0,
        description="Free disk space left to the database; below it requests are refused, so that "
        "what waits can still be stored.",
    )
    batch_max_bytes: PositiveInt = Field(
        64 * MIB,
        description="Size at which a spool segment is closed; it is one insert where ClickHouse "
        "parses it.",
    )
    batch_max_spans: PositiveInt = Field(
        100_000, description="Spans at which it is closed, too: small ones need more memory."
    )
    insert_threads: PositiveInt = Field(
        2,
        description="Segments of spans that are inserted at a time. Each takes some 300 MiB while "
        "the embedded engine works on it.",
    )
    batch_max_age_seconds: PositiveFloat = Field(
        0.5, description="Longest time that spans wait for others before they are inserted."
    )
    duplicate_window: PositiveInt = Field(
        65_536,
        description="Latest accepted requests that are remembered, so that one sent again is "
        "acknowledged and not stored twice.",
    )
    retry_initial_seconds: PositiveFloat = Field(
        0.5, description="First pause after the database failed; it doubles from there."
    )
    retry_max_seconds: PositiveFloat = Field(
        30.0, description="Longest pause between attempts to store."
    )
    drain_timeout_seconds: PositiveFloat = Field(
        30.0,
        description="Time to store what waits when stopping; the rest stays in the spool.",
    )
    shutdown_timeout_seconds: PositiveFloat = Field(
        40.0,
        description="Time after which a process that is asked to stop ends, whatever it still waits "
        "for. Acknowledged requests are on disk, and are stored after the next start.",
    )

    run_idle_seconds: PositiveFloat = RUN_IDLE_SECONDS

    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="Least severe log entries that are written."
    )
    log_format: Literal["text", "json"] = Field("text", description="Shape of the log entries.")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.tls_cert_file is None) != (self.tls_key_file is None):
            raise ValueError("tls_cert_file and tls_key_file are set together or not at all")
        if self.max_inflight_bytes < self.max_body_bytes:
            raise ValueError("max_inflight_bytes must hold at least one request of max_body_bytes")
        return self

    @property
    def store_url(self) -> str:
        """The database's URL, with the embedded one filled in."""
        return self.database_url or f"chdb://{(self.data_dir / 'clickhouse').absolute()}"

    @property
    def spool_dir(self) -> Path:
        """Folder of the spool segments."""
        return self.data_dir / "spool"

    @property
    def log_spool_dir(self) -> Path:
        """Folder of the spool segments of log records."""
        return self.data_dir / "spool-logs"

    @property
    def dead_letter_dir(self) -> Path:
        """Folder of the requests that cannot be stored."""
        return self.data_dir / "dead-letters"

    @property
    def dead_log_letter_dir(self) -> Path:
        """Folder of the requests with log records that cannot be stored."""
        return self.dead_letter_dir / "logs"
