"""`ClickHouseHTTP`: the ASGI application."""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
import uuid
from collections.abc import MutableMapping
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from mast_trace.exceptions import ConfigurationError
from mast_trace_collector.clickhouse_http import compression
from mast_trace_collector.clickhouse_http.compression import compress, decompress
from mast_trace_collector.clickhouse_http.errors import (
    ACCESS_DENIED,
    AUTHENTICATION_FAILED,
    TOO_LARGE,
    QueryError,
)
from mast_trace_collector.clickhouse_http.runner import Rights, Runner
from mast_trace_collector.clickhouse_http.statement import Statement, asks_for, read_statement
from mast_trace_collector.security import MissingRight, ProjectKeys, Right, hash_of

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from mast_trace_collector.clickhouse_http.engine import EngineResult
    from mast_trace_collector.storage.store import Store

_MIB = 1024 * 1024


class ClickHouseHTTP:
    """ClickHouse's HTTP interface over an embedded store, for reading.

    Args:
        store: opened on ``chdb://``.
        password: the password for reading everything, with any user name. None lets everybody on
            this machine read, and nobody else, unless there is a hash.
        password_hash: its hash (`security.hash_of`), where the password itself is not kept.
        of_owner: every client may run any statement: for a socket of the owner's processes.
        keys: bearer keys of projects; given as the password, a key lets its owner read the rows of
            that project and no others.
        write_token: given as the password by a client on this machine, it permits any statement;
            None, the default, permits none. It is meant for tests and for the operator's own tools.
        max_queries: statements that run at once; others wait.
        max_body: bytes of a request, before and after decompression, that may write.
        max_reader_body: bytes of a reader's: a statement and the values of its parameters.
        timeout: seconds that a reader's statement may run, unless the client sets its own limit.
        max_result: bytes of a reader's result.
    """

    def __init__(
        self,
        store: Store,
        *,
        password: str | None = None,
        password_hash: str | None = None,
        of_owner: bool = False,
        keys: ProjectKeys | None = None,
        write_token: str | None = None,
        max_queries: int = 4,
        max_body: int = 256 * _MIB,
        max_reader_body: int = 16 * _MIB,
        timeout: float = 60.0,
        max_result: int = 256 * _MIB,
    ) -> None:
        if not store.embedded_path:
            raise ConfigurationError(
                "only an embedded store needs this endpoint: a server has one of its own"
            )
        if password == "" or write_token == "":
            raise ConfigurationError("the password of the ClickHouse endpoint is empty")
        self._password_hash = hash_of(password) if password else password_hash
        self._of_owner = of_owner
        self._keys = keys
        self._write_token = write_token
        self._max_body = max_body
        self._max_reader_body = min(max_reader_body, max_body)
        self._runner = Runner(store, timeout=timeout, max_result=max_result, readers=not of_owner)
        self._threads = ThreadPoolExecutor(max_queries, thread_name_prefix="clickhouse-http")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            raise ValueError(f"cannot serve {scope['type']}")
        request = Request(scope, receive)
        query_id = request.query_params.get("query_id") or str(uuid.uuid4())
        try:
            response = await self._answer(request)
        except QueryError as error:
            body = error.text.encode()
            if error.code != AUTHENTICATION_FAILED and asks_for(request.query_params, "compress"):
                body = compression.pack(body)
            response = PlainTextResponse(body, status_code=error.status)
            response.headers["X-ClickHouse-Exception-Code"] = str(error.code)
        response.headers["X-ClickHouse-Query-Id"] = query_id
        response.headers["X-ClickHouse-Timezone"] = "UTC"
        await response(scope, receive, send)

    def close(self) -> None:
        """Wait for running statements and close the engine's connections."""
        self._threads.shutdown()
        self._runner.close()

    async def _answer(self, request: Request) -> Response:
        fields = dict(request.query_params)
        if request.url.path == "/ping" or (request.method == "GET" and "query" not in fields):
            return PlainTextResponse("Ok.\n")
        # Checked before the body is read: unauthorized clients cannot fill the memory.
        rights = self._authenticate(request, fields)
        limit = self._max_body if rights.writes else self._max_reader_body
        body = await _body(request, limit)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(
            self._threads, self._run, request, fields, rights, body, limit
        )

    def _run(
        self, request: Request, fields: dict[str, str], rights: Rights, body: bytes, limit: int
    ) -> Response:
        """Read the statement from a body and run it, in a thread: either may take a while."""
        body = decompress(body, request.headers.get("content-encoding", ""), limit)
        if asks_for(fields, "decompress"):
            body = compression.unpack(body, limit)
        statement = read_statement(fields, request.headers.get("content-type", ""), body)
        return _response(request, fields, statement, self._runner.run(statement, rights))

    def _authenticate(self, request: Request, fields: MutableMapping[str, str]) -> Rights:
        """Return the client's rights; raise if it may not even read."""
        if self._of_owner:
            return Rights(writes=True)
        shown = _password(request, fields)
        local = _is_local(request)
        if local and self._write_token is not None and _same(shown, self._write_token):
            return Rights(writes=True)
        grant = self._keys.grant_of_key(shown) if self._keys and shown else None
        if grant is not None:
            try:
                grant.demand(Right.READ)
            except MissingRight as error:
                raise QueryError(ACCESS_DENIED, str(error), "ACCESS_DENIED") from error
            return Rights(project=grant.project)
        known = self._password_hash
        if local if known is None else _same(hash_of(shown), known):
            return Rights()
        raise QueryError(
            AUTHENTICATION_FAILED,
            "Authentication failed: password is incorrect",
            "AUTHENTICATION_FAILED",
        )


async def _body(request: Request, limit: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > limit:
            raise QueryError(
                TOO_LARGE, f"the request is larger than {limit} bytes", "TOO_MANY_BYTES"
            )
        parts.append(part)
    return b"".join(parts)


def _response(
    request: Request, fields: dict[str, str], statement: Statement, result: EngineResult
) -> Response:
    headers = {
        "X-ClickHouse-Summary": json.dumps(
            {
                "read_rows": str(result.rows),
                "read_bytes": str(result.read_bytes),
                "written_rows": str(result.rows if statement.data is not None else 0),
                "elapsed_ns": str(int(result.seconds * 1e9)),
            }
        )
    }
    if statement.has_result:
        headers["X-ClickHouse-Format"] = statement.format
    body = compression.pack(result.body) if asks_for(fields, "compress") else result.body
    if fields.get("enable_http_compression") in {"1", "true"}:
        body, encoding = compress(body, request.headers.get("accept-encoding", ""))
        if encoding:
            headers["Content-Encoding"] = encoding
    media = "application/json" if statement.format.startswith("JSON") else "text/plain"
    return Response(body, headers=headers, media_type=media)


def _same(shown: str, secret: str) -> bool:
    return hmac.compare_digest(shown.encode(), secret.encode())


def _password(request: Request, fields: MutableMapping[str, str]) -> str:
    key = request.headers.get("x-clickhouse-key")
    if key is not None:
        return key
    scheme, _, credentials = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "basic":
        try:
            decoded = base64.b64decode(credentials, validate=True).decode("utf-8")
        except ValueError:
            return ""
        return decoded.partition(":")[2]
    if scheme.lower() == "bearer":
        return credentials.strip()
    return fields.get("password", "")


def _is_local(request: Request) -> bool:
    client: Any = request.client
    try:
        return bool(client) and ip_address(client.host).is_loopback
    except ValueError:
        return False
