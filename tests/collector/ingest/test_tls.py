"""With a certificate, both receivers speak TLS and nothing else."""

from __future__ import annotations

import asyncio
import ssl
from typing import TYPE_CHECKING

import grpc
import grpc.aio
import httpx
import pytest
from certificates import self_signed
from ingest_support import EXPORT, PROTOBUF, body_of, call, until

from mast_trace.exceptions import ConfigurationError

if TYPE_CHECKING:
    from pathlib import Path

    from ingest_support import Launch

    from mast_trace_collector.storage import Store


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for localhost, and its key."""
    return self_signed(tmp_path_factory.mktemp("tls"))


async def test_both_speak_tls(launch: Launch, certificate: tuple[Path, Path], store: Store) -> None:
    cert, key = certificate
    collector = await launch(tls_cert_file=cert, tls_key_file=key)
    assert collector.http_address.startswith("https://")
    trust = ssl.create_default_context(cafile=cert)
    async with httpx.AsyncClient(base_url=collector.http_address, verify=trust) as client:
        answer = await client.post("/v1/traces", content=body_of("http"), headers=PROTOBUF)
    assert answer.status_code == 200

    credentials = grpc.ssl_channel_credentials(cert.read_bytes())
    async with grpc.aio.secure_channel(collector.grpc_address, credentials) as channel:
        await channel.unary_unary(EXPORT)(body_of("grpc"), timeout=30)
    await until(lambda: store.query("SELECT count() AS n FROM otel_traces") == [{"n": 2}])


async def test_plain_text_is_not_understood(launch: Launch, certificate: tuple[Path, Path]) -> None:
    cert, key = certificate
    collector = await launch(tls_cert_file=cert, tls_key_file=key)
    plain = collector.http_address.replace("https", "http")
    async with httpx.AsyncClient(base_url=plain) as client:
        with pytest.raises(httpx.HTTPError):
            await client.post("/v1/traces", content=body_of("x"), headers=PROTOBUF)
    with pytest.raises(grpc.aio.AioRpcError):
        await asyncio.wait_for(call(collector, body_of("x")), 20)


async def test_a_certificate_that_cannot_be_read_is_named(launch: Launch, tmp_path: Path) -> None:
    (tmp_path / "cert.pem").write_text("no certificate")
    with pytest.raises(ConfigurationError, match="TLS"):
        await launch(tls_cert_file=tmp_path / "cert.pem", tls_key_file=tmp_path / "missing.pem")
