"""Sends one OTLP request and returns its result; `SpanQueue` decides when to try again.

The exporters of the OpenTelemetry SDK return success or failure only. Delivery has to distinguish
"too large", "try later" and "never", so this module sends the requests itself.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol

import requests
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceResponse,
)

from mast_trace import running_up
from mast_trace.delivery import advice
from mast_trace.exceptions import ConfigurationError
from mast_trace.retry_after import retry_after
from mast_trace.urls import check_proxies, conceal, masked, parse_url

if TYPE_CHECKING:
    from mast_trace._settings import SDKSettings

_TRACES_PATH = "/v1/traces"
_LOGS_PATH = "/v1/logs"
_WITH_DELAY = frozenset({"google.rpc.retryinfo-bin", "grpc-status-details-bin"})
"""Metadata of gRPC that may say when a request may come again."""
_LONGEST_REASON = 300
"""Characters of a refusal's reason that are kept."""
_COMPRESS: Mapping[str, Callable[[bytes], bytes]] = {
    "gzip": lambda data: gzip.compress(data, compresslevel=1),
    "deflate": lambda data: zlib.compress(data, 1),
}


class RequestSignal(Enum):
    """The content of a request; the value is the method of OTLP/gRPC that accepts it."""

    TRACES = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
    LOGS = "/opentelemetry.proto.collector.logs.v1.LogsService/Export"


class Fate(Enum):
    """The fate of a request."""

    ACCEPTED = "accepted"
    UNFIT = "unfit"
    """Not acceptable as it is: too large, or some span of it is malformed."""
    LATER = "later"
    UNREACHABLE = "unreachable"
    """Nobody answered: as `LATER`, but nothing is there that could recover."""
    REFUSED = "refused"


# The answer of Go's and nginx's servers to HTTP on a port for TLS.
_WANTS_TLS = re.compile(rb"http request .*https", re.IGNORECASE)
# 400 and 413 concern the content of the request: some of its spans may well be accepted alone.
_HTTP_FATES = {
    **dict.fromkeys((400, 413), Fate.UNFIT),
    **dict.fromkeys((408, 429, 502, 503, 504), Fate.LATER),
}


@dataclass(frozen=True)
class ExportResult:
    """The answer to one request.

    Attributes:
        fate: of the request.
        detail: the reason, for people.
        retry_after: seconds that the collector asks to wait before a retry; None if it asks for
            none.
        rejected: number of spans that were rejected from an accepted request.
        advice: a remedy, for people.
        reason: the collector's own words on a refusal; empty if it gave none.
    """

    fate: Fate
    detail: str = ""
    retry_after: float | None = None
    rejected: int = 0
    advice: str = ""
    reason: str = ""


class Transport(Protocol):
    """A connection to the collector."""

    def send(
        self, request: bytes, timeout: float, signal: RequestSignal = RequestSignal.TRACES
    ) -> ExportResult:
        """Send an encoded export request of a signal; network errors are returned, not raised."""
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
    if settings.endpoint.origin == running_up.ORIGIN:
        return AnnouncedTransport(settings)
    return HTTPTransport(settings)


class AnnouncedTransport:
    """OTLP/HTTP to the `mast-trace up` that runs at the moment; one that was started again may have another port."""

    def __init__(self, settings: SDKSettings) -> None:
        self._settings = settings
        self._inner = HTTPTransport(settings)

    def send(
        self, request: bytes, timeout: float, signal: RequestSignal = RequestSignal.TRACES
    ) -> ExportResult:
        """See `Transport`."""
        running = running_up.found()
        if len(running) != 1:
            detail = "the `mast-trace up` that was found has ended, or is one of several now"
            return ExportResult(Fate.UNREACHABLE, detail, advice=advice.START)
        endpoint = replace(self._settings.endpoint, value=running[0] + _TRACES_PATH)
        if endpoint != self._settings.endpoint:
            self.close()
            self._settings = replace(self._settings, endpoint=endpoint)
            self._inner = HTTPTransport(self._settings)
        return self._inner.send(request, timeout, signal)

    def close(self) -> None:
        """See `Transport`."""
        self._inner.close()


class HTTPTransport:
    """OTLP/HTTP with protobuf."""

    def __init__(self, settings: SDKSettings) -> None:
        self._url = settings.endpoint.value
        # The address for traces may be any; that for logs is derived from it only where it is the
        # usual one.
        base = self._url.removesuffix(_TRACES_PATH)
        self._urls = {
            RequestSignal.TRACES: self._url,
            RequestSignal.LOGS: base + _LOGS_PATH if base != self._url else "",
        }
        self._prepared: dict[RequestSignal, requests.PreparedRequest] = {}
        self._fixed: Mapping[str, Any] | None = None
        self._compress = _COMPRESS.get(settings.compression.value)
        self._session = requests.Session()
        # Requests to a collector on this machine bypass the proxy.
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

    def send(
        self, request: bytes, timeout: float, signal: RequestSignal = RequestSignal.TRACES
    ) -> ExportResult:
        """See `Transport`."""
        url = self._urls[signal]
        if not url:
            return ExportResult(Fate.REFUSED, "no address for them is known")
        data = self._compress(request) if self._compress else request
        try:
            response = self._session.send(
                self._request(signal, data),
                timeout=timeout,
                allow_redirects=False,
                **self._surroundings(url),
            )
        except requests.Timeout:
            detail = f"no answer within {timeout:.1f} s"
            return ExportResult(Fate.LATER, detail, advice=advice.for_failure(detail))
        except requests.ConnectionError as error:
            return ExportResult(
                Fate.UNREACHABLE,
                conceal(_cause(error), url),
                advice=advice.for_failure(repr(error)),
            )
        except requests.RequestException as error:
            return ExportResult(Fate.REFUSED, conceal(str(error), url))
        return self._read(response, url)

    def _surroundings(self, url: str) -> Mapping[str, Any]:
        """Return proxies and certificates; they are fixed where the environment does not count."""
        if self._fixed is not None:
            return self._fixed
        found: Mapping[str, Any] = self._session.merge_environment_settings(
            url, {}, None, None, None
        )
        if not self._session.trust_env:
            self._fixed = found
        return found

    def _request(self, signal: RequestSignal, data: bytes) -> requests.PreparedRequest:
        """Return the request that carries ``data``.

        The rest of it is cached, because making it is expensive.
        """
        request = self._prepared.get(signal)
        if request is None or self._session.cookies:  # a load balancer's cookies may change
            new = requests.Request("POST", self._urls[signal], data=data)
            request = self._prepared[signal] = self._session.prepare_request(new)
        else:
            request.prepare_body(data, None)
        return request

    def _read(self, response: requests.Response, url: str) -> ExportResult:
        status = response.status_code
        detail = f"HTTP {status} {response.reason}".rstrip()
        fate = _HTTP_FATES.get(status, Fate.REFUSED)
        if 200 <= status < 300:
            if "text/html" not in response.headers.get("Content-Type", ""):
                return _accepted(response.content)
            detail += ", with a web page"
        elif target := response.headers.get("Location"):
            detail += f" to {conceal(masked(target, always=True), url)}"
        if status == 400 and _WANTS_TLS.search(response.content[:1000]):
            return ExportResult(
                Fate.UNREACHABLE, detail, advice=advice.for_failure("RemoteDisconnected")
            )
        return ExportResult(
            fate,
            detail,
            retry_after(response.headers),
            advice=advice.for_status(status),
            reason="" if 200 <= status < 300 else conceal(_said(response), url),
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
        self._exports: dict[RequestSignal, Any] = {}
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

    def send(
        self, request: bytes, timeout: float, signal: RequestSignal = RequestSignal.TRACES
    ) -> ExportResult:
        """See `Transport`."""
        if not self._exports:
            # Not before the first span: gRPC's threads do not survive a fork.
            self._connect()
        try:
            response = self._exports[signal](request, timeout=timeout, metadata=self._metadata)
        except self._grpc.RpcError as error:
            retry_after = _retry_info(error.trailing_metadata() or ())
            fate = self._fates.get(error.code(), Fate.REFUSED)
            if retry_after is not None:
                fate = Fate.LATER
            code, details = error.code().name, str(error.details())
            return ExportResult(
                fate,
                f"{code}: {details}",
                retry_after,
                advice=advice.for_grpc(code, details),
                # With a delay it is the collector that answers, and not the connection that fails.
                reason=details if retry_after is not None else "",
            )
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
        self._exports = {each: self._channel.unary_unary(each.value) for each in RequestSignal}


def _accepted(response: bytes) -> ExportResult:
    """Read a success: the collector may report that it accepted only a part; all signals alike."""
    try:
        partial = ExportTraceServiceResponse.FromString(response).partial_success
    except Exception:  # noqa: BLE001  # a proxy's page is no protobuf, but it came with a success
        return ExportResult(Fate.ACCEPTED)
    return ExportResult(Fate.ACCEPTED, partial.error_message, rejected=partial.rejected_spans)


def _said(response: requests.Response) -> str:
    """Return the reason that a refusal gives, as one short line; empty where it gives none.

    OTLP answers an error with a ``google.rpc.Status``, in the encoding of the request.
    """
    kind = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    said: Any = ""
    try:
        if kind == "application/x-protobuf":
            # Its code and message have the numbers and types of a partial success's two fields.
            said = ExportTracePartialSuccess.FromString(response.content).error_message
        elif kind == "application/json":
            told = json.loads(response.content)
            said = told.get("message") if isinstance(told, dict) else ""
    except Exception:  # noqa: BLE001  # whatever a proxy sends under this name: the status remains
        return ""
    return " ".join(said.split())[:_LONGEST_REASON] if isinstance(said, str) else ""


def _retry_info(metadata: Any) -> float | None:
    """Read the delay from gRPC's details of an error, where there is one.

    OTLP has it among the details of the status; some servers send it alone.
    """
    for key, value in metadata:
        if key not in _WITH_DELAY:
            continue
        from google.rpc.error_details_pb2 import RetryInfo
        from google.rpc.status_pb2 import Status

        info = RetryInfo()
        if key == "google.rpc.retryinfo-bin":
            info.ParseFromString(value)
        elif not any(detail.Unpack(info) for detail in Status.FromString(value).details):
            continue
        return float(info.retry_delay.seconds + info.retry_delay.nanos / 1e9)
    return None


def _cause(error: BaseException) -> str:
    """Return the innermost cause of a failed connection: the outer ones repeat the address."""
    reason: Any = error.args[0] if error.args else error
    reason = getattr(reason, "reason", reason)
    inner = getattr(reason, "__cause__", None) or getattr(reason, "__context__", None)
    reason_text = str(inner or reason)
    # Bytes of another protocol are unreadable.
    return reason_text if reason_text.isprintable() else type(inner or reason).__name__


def _is_loopback(url: str) -> bool:
    host = parse_url(url).host.lower()
    return host in {"localhost", "::1"} or host.startswith("127.")


def _read(path: str) -> bytes | None:
    if not path:
        return None
    with open(path, "rb") as file:  # noqa: PTH123  # the path is the user's, as text
        return file.read()
