"""One request to a collector: headers, compression, proxies, and the fates of its answers."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
import requests
from opentelemetry import context
from receiver import serving_grpc

import mast_trace
from mast_trace._settings import SDKSettings
from mast_trace.delivery.transport import Fate, HTTPTransport, open_transport

if TYPE_CHECKING:
    from receiver import Receiver


@pytest.mark.parametrize(
    ("compression", "host"), [("gzip", "localhost"), ("deflate", "127.0.0.1"), (None, "127.0.0.1")]
)
def test_headers_and_compression_are_sent(
    receiver: Receiver,
    closed_port: int,
    monkeypatch: pytest.MonkeyPatch,
    compression: str | None,
    host: str,
) -> None:
    """A bearer key and a compression, each from where OpenTelemetry keeps it.

    No proxy of the environment is used for this machine, and no instrumentation of the HTTP client is on.
    """
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20k1,x-team=a")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", compression or "")
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{closed_port}")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    keys = (context._SUPPRESS_INSTRUMENTATION_KEY, context._SUPPRESS_HTTP_INSTRUMENTATION_KEY)
    suppressed: list[Any] = []
    send = requests.Session.send

    def sending(*args: Any, **options: Any) -> Any:
        suppressed.extend(context.get_value(key) for key in keys)
        return send(*args, **options)

    monkeypatch.setattr(requests.Session, "send", sending)
    mast_trace.instrument(
        frameworks=[], endpoint=receiver.url.replace("127.0.0.1", host), service_name="shop"
    )
    mast_trace.message("a", "b", "hello")
    assert mast_trace.flush()
    sent = receiver.headers[0]
    assert (sent["authorization"], sent["x-team"]) == ("Bearer k1", "a")
    assert sent.get("content-encoding") == compression
    assert receiver.names == ["send_message a"]
    resource = receiver.accepted[0].resource_spans[0].resource
    found = {each.key: each.value.string_value for each in resource.attributes}
    assert (found["service.name"], found["telemetry.distro.name"]) == ("shop", "mast-trace")
    assert suppressed == [True, True]


def test_statuses_of_grpc_have_their_fates() -> None:
    """Those that OTLP calls retryable come again; a delay asks for it, whatever the status and wherever it stands."""
    grpc = pytest.importorskip("grpc")
    from google.protobuf.any_pb2 import Any as Packed
    from google.rpc.error_details_pb2 import ErrorInfo, RetryInfo
    from google.rpc.status_pb2 import Status

    delay = RetryInfo()
    delay.retry_delay.FromTimedelta(timedelta(seconds=1.5))
    details = Status(details=[Packed(), Packed()])
    details.details[0].Pack(ErrorInfo())
    details.details[1].Pack(delay)
    without = Status(details=details.details[:1])
    alone, among = "google.rpc.retryinfo-bin", "grpc-status-details-bin"
    later = "CANCELLED DEADLINE_EXCEEDED ABORTED OUT_OF_RANGE DATA_LOSS"
    expected = [
        *((code, {}, Fate.LATER, None) for code in later.split()),
        ("UNAVAILABLE", {}, Fate.UNREACHABLE, None),
        ("RESOURCE_EXHAUSTED", {}, Fate.UNFIT, None),
        ("RESOURCE_EXHAUSTED", {among: without.SerializeToString()}, Fate.UNFIT, None),
        ("INVALID_ARGUMENT", {}, Fate.UNFIT, None),
        ("PERMISSION_DENIED", {"other": "x"}, Fate.REFUSED, None),
        ("RESOURCE_EXHAUSTED", {alone: delay.SerializeToString()}, Fate.LATER, 1.5),
        ("RESOURCE_EXHAUSTED", {among: details.SerializeToString()}, Fate.LATER, 1.5),
        ("UNAVAILABLE", {among: details.SerializeToString()}, Fate.LATER, 1.5),
    ]
    answers = iter(expected)

    def refuse(_request: bytes, of: Any) -> bytes:
        code, metadata, *_ = next(answers)
        of.set_trailing_metadata(tuple(metadata.items()))
        of.abort(grpc.StatusCode[code], "so")
        return b""

    with pytest.MonkeyPatch.context() as environment, serving_grpc(refuse) as url:
        environment.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
        transport = open_transport(SDKSettings.resolve(endpoint=url))
        found = [(each, transport.send(b"", 20.0)) for each in expected]
        transport.close()
    assert [(*each[:2], result.fate, result.retry_after) for each, result in found] == expected


@pytest.mark.parametrize(
    ("host", "by_proxy"),
    [("localhost", False), ("127.9.9.9", False), ("[::1]", False), ("example.org", True)],
)
def test_a_proxy_stands_before_other_machines_alone(host: str, *, by_proxy: bool) -> None:
    transport = open_transport(SDKSettings.resolve(endpoint=f"http://{host}:4318"))
    assert isinstance(transport, HTTPTransport)
    # Without a network it shows here alone.
    assert transport._session.trust_env == by_proxy
