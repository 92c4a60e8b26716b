"""Sends one OTLP request and says what became of it; when to try again is `SpanQueue`'s business.

The exporters of the OpenTelemetry SDK answer success or failure only. Here the difference between
"too large", "try later" and "never" is needed, so the requests that they encode are sent directly.
"""

from __future__ import annotations

import gzip
import zlib
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol

import requests
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from mast_trace.exceptions import ConfigurationError
from mast_trace.retry_after import retry_after
from mast_trace.urls import check_proxies, conceal, parse_url

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mast_trace._settings import SDKSettings

_GRPC_METHOD = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
_COMPRESS: Mapping[str, Callable[[bytes], bytes]] = {
    "gzip": lambda data: gzip.compress(data, compresslevel=1),
    "deflate": lambda data: zlib.compress(data, 1),
}


class Fate(Enum):
    """What became of a request."""

    ACCEPTED = "accepted"
    UNFIT = "unfit"
    """Not acceptable as it is: too large, or some span of it is malformed."""
    LATER = "later"
    UNREACHABLE = "unreachable"
    """Nobody answered: as `LATER`, but nothing is there to recover."""
    REFUSED = "refused"


# 400 and 413 are about what is in the request: some of its spans may well be accepted alone.
_HTTP_FATES = {
    **dict.fromkeys((400, 413), Fate.UNFIT),
    **dict.fromkeys((408, 429, 502, 503, 504), Fate.LATER),
}


@dataclass(frozen=True)
class ExportResult:
    """The answer to one request.

    Attributes:
        fate: what became of it.
        detail: the reason, for people.
        retry_after: seconds after which the collector wants it again, if it said so.
        rejected: spans that were not accepted of a request that was.
    """

    fate: Fate
    detail: str = ""
    retry_after: float | None = None
    rejected: int = 0


class Transport(Protocol):
    """A way to the collector."""

    def send(self, request: bytes, timeout: float) -> ExportResult:
        """Send an encoded ``ExportTraceServiceRequest``; does not raise for a failing network."""
        ...

    def close(self) -> None:
        """Give up the connection."""
        ...


def open_transport(settings: SDKSettings) -> Transport:
    """Return the transport of the configured protocol; it connects when it first sends.

    Raises:
        ConfigurationError: the protocol needs a package that is not installed, or a proxy of the
            environment cannot be read.
    """
    if settings.protocol.value == "grpc":
        return GRPCTransport(settings)
    return HTTPTransport(settings)


class HTTPTransport:
    """OTLP/HTTP with protobuf."""

    def __init__(self, settings: SDKSettings) -> None:
        self._url = settings.endpoint.value
        self._compress = _COMPRESS.get(settings.compression.value)
        self._session = requests.Session()
        # A proxy of the environment does not lead to this machine's own collector.
        self._session.trust_env = not _is_loopback(self._url)
        if self._session.trust_env:
            check_proxies()
        self._session.headers.update(settings.headers.value)
        self._session.headers["Content-Type"] = "application/x-protobuf"
        self._session.headers["User-Agent"] = "mast-trace"
        if self._compress:
            self._session.headers["Content-Encoding"] = settings.compression.value
        self._session.verify = settings.certificate.value or True
        if settings.client_certificate.value:
            self._session.cert = (
                (settings.client_certificate.value, settings.client_key.value)
                if settings.client_key.value
                else settings.client_certificate.value
            )

    def send(self, request: bytes, timeout: float) -> ExportResult:
        """See `Transport`."""
        data = self._compress(request) if self._compress else request
        try:
            response = self._session.post(
                self._url, data=data, timeout=timeout, allow_redirects=False
            )
        except requests.Timeout:
            return ExportResult(Fate.LATER, f"no answer within {timeout:.1f} s")
        except requests.ConnectionError as error:
            return ExportResult(Fate.UNREACHABLE, conceal(_cause(error), self._url))
        except requests.RequestException as error:
            return ExportResult(Fate.REFUSED, conceal(str(error), self._url))
        if 200 <= response.status_code < 300:
            return _accepted(response.content)
        return ExportResult(
            _HTTP_FATES.get(response.status_code, Fate.REFUSED),
            f"HTTP {response.status_code} {response.reason}",
            retry_after(response.headers),
        )

    def close(self) -> None:
        """See `Transport`."""
        self._session.close()


class GRPCTransport:
    """OTLP/gRPC."""

    def __init__(self, settings: SDKSettings) -> None:
        try:
            import grpc
        except ImportError:
            raise ConfigurationError(
                f"{settings.protocol.origin}=grpc needs grpcio: pip install 'mast-trace[grpc]', "
                "or use 'http/protobuf'."
            ) from None
        self._grpc = grpc
        self._settings = settings
        self._channel: Any = None
        self._export: Any = None
        self._metadata = tuple((k.lower(), v) for k, v in settings.headers.value.items())
        status = grpc.StatusCode
        self._fates = {
            status.RESOURCE_EXHAUSTED: Fate.UNFIT,
            status.INVALID_ARGUMENT: Fate.UNFIT,
            status.CANCELLED: Fate.LATER,
            status.DEADLINE_EXCEEDED: Fate.LATER,
            status.ABORTED: Fate.LATER,
            status.OUT_OF_RANGE: Fate.LATER,
            status.DATA_LOSS: Fate.LATER,
            status.UNAVAILABLE: Fate.UNREACHABLE,
        }

    def send(self, request: bytes, timeout: float) -> ExportResult:
        """See `Transport`."""
        if self._export is None:
            # Not before the first span: gRPC's threads do not survive a fork.
            self._connect()
        try:
            response = self._export(request, timeout=timeout, metadata=self._metadata)
        except self._grpc.RpcError as error:
            retry_after = _retry_info(error.trailing_metadata() or ())
            fate = self._fates.get(error.code(), Fate.REFUSED)
            if retry_after is not None:
                fate = Fate.LATER
            return ExportResult(fate, f"{error.code().name}: {error.details()}", retry_after)
        return _accepted(response)

    def close(self) -> None:
        """See `Transport`."""
        if self._channel is not None:
            self._channel.close()

    def _connect(self) -> None:
        grpc, settings = self._grpc, self._settings
        url = parse_url(settings.endpoint.value)
        compression = {
            "gzip": grpc.Compression.Gzip,
            "deflate": grpc.Compression.Deflate,
        }.get(settings.compression.value, grpc.Compression.NoCompression)
        if url.scheme == "http":
            self._channel = grpc.insecure_channel(url.place, compression=compression)
        else:
            credentials = grpc.ssl_channel_credentials(
                _read(settings.certificate.value),
                _read(settings.client_key.value),
                _read(settings.client_certificate.value),
            )
            self._channel = grpc.secure_channel(url.place, credentials, compression=compression)
        self._export = self._channel.unary_unary(_GRPC_METHOD)


def _accepted(response: bytes) -> ExportResult:
    """Read a success: the collector may say that it took only a part."""
    try:
        partial = ExportTraceServiceResponse.FromString(response).partial_success
    except Exception:  # noqa: BLE001  # a proxy's page is no protobuf, but it came with a success
        return ExportResult(Fate.ACCEPTED)
    return ExportResult(Fate.ACCEPTED, partial.error_message, rejected=partial.rejected_spans)


def _retry_info(metadata: Any) -> float | None:
    """Read the delay from gRPC's details of an error, where there is one."""
    for key, value in metadata:
        if key == "google.rpc.retryinfo-bin":
            from google.rpc.error_details_pb2 import RetryInfo

            delay = RetryInfo.FromString(value).retry_delay
            return float(delay.seconds + delay.nanos / 1e9)
    return None


def _cause(error: BaseException) -> str:
    """Return the innermost reason of a failed connection: the outer ones repeat the address."""
    reason: Any = error.args[0] if error.args else error
    reason = getattr(reason, "reason", reason)
    inner = getattr(reason, "__cause__", None) or getattr(reason, "__context__", None)
    return str(inner or reason)


def _is_loopback(url: str) -> bool:
    host = parse_url(url).host.lower()
    return host in {"localhost", "::1"} or host.startswith("127.")


def _read(path: str) -> bytes | None:
    if not path:
        return None
    with open(path, "rb") as file:  # noqa: PTH123  # the path is the user's, as text
        return file.read()
