"""The guard of the web view, which admits requests, and its health checks; pages load nothing from elsewhere."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import time
from typing import TYPE_CHECKING, Final
from weakref import WeakValueDictionary

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from mast_trace.exceptions import SchemaMismatch, StorageError
from mast_trace_collector.security import Right
from mast_trace_collector.storage import Store, check_schema
from mast_trace_dashboards.web.access import Access, host_name
from mast_trace_dashboards.web.sign_in import LEAVE as SIGN_OUT
from mast_trace_dashboards.web.sign_in import PATH as SIGN_IN
from mast_trace_dashboards.web.sign_in import SignIn
from mast_trace_dashboards.web.visitor import admit, visitor_or_none

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send


logger = logging.getLogger(__name__)

HEALTH: Final = frozenset({"/healthz", "/readyz"})
_REMEMBERED_SECONDS = 1.0
_PATIENCE_SECONDS = 5.0


class Health:
    """Answers without a key, and so reveals nothing that would need one.

    The database is queried at most once a second, and by one thread.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._asked_at = 0.0
        self._asking: asyncio.Task[str] | None = None
        self._trouble = ""
        self._schema_fits = False
        self.routes = [Route("/healthz", self.alive), Route("/readyz", self.ready)]

    async def alive(self, _: Request) -> Response:
        """Answer that the process is alive."""
        return PlainTextResponse("ok\n")

    async def ready(self, _: Request) -> Response:
        """Answer whether pages can be served, and if not, the reason in a word."""
        trouble = await self._look()
        answer = {"ready": not trouble, "reason": trouble}
        return JSONResponse(answer, 503 if trouble else 200)

    async def _look(self) -> str:
        if self._asking is None:
            if time.monotonic() - self._asked_at < _REMEMBERED_SECONDS:
                return self._trouble
            self._asking = asyncio.create_task(self._ask())
        try:
            return await asyncio.wait_for(asyncio.shield(self._asking), _PATIENCE_SECONDS)
        except asyncio.TimeoutError:
            return "the database takes too long to answer"

    async def _ask(self) -> str:
        try:
            trouble, why = await asyncio.to_thread(self._query)
            if trouble and trouble != self._trouble:
                logger.warning("not ready: %s", why)
            self._trouble = trouble
            return trouble
        finally:
            self._asked_at = time.monotonic()
            self._asking = None

    def _query(self) -> tuple[str, str]:
        """Return the problem, for everybody, and its cause, for the log; empty if there is none."""
        try:
            if not self._schema_fits:
                check_schema(self._store)
                self._schema_fits = True
            self._store.query("SELECT 1")
        except SchemaMismatch as error:
            return "the tables belong to another version", str(error)
        except StorageError as error:
            return "the database does not answer", str(error)
        return "", ""


_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_ORIGIN = re.compile(
    r"https?://((?:\[[0-9A-Fa-f:.]+\]|[^\s/?#@:\[\]]+)(?::[0-9]{1,5})?)", re.IGNORECASE
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    # Not "no-referrer": browsers would send our own forms with the origin "null".
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


# Two thirds of the threads in which the loop lets pages ask the database; others wait for the rest at most.
_AT_ONCE: Final = max(2, min(32, (os.cpu_count() or 1) + 4) * 2 // 3)
_MOST_WAITING: Final = 256


class _Turns(asyncio.Semaphore):
    """The requests of one visitor: some are served at once, and others wait for their turn."""

    def __init__(self) -> None:
        super().__init__(_AT_ONCE)
        self.open = 0


class Guard:
    """Sets the headers, identifies the visitor, and refuses strangers and forged requests.

    Pages are reached only by admitted visitors, who may read; only further rights need a check of their own.
    Many requests of one visitor wait for each other, and leave threads to the others.

    Args:
        app: the pages.
        access: access control.
        sign_in: answers visitors who have to sign in.
    """

    def __init__(self, app: ASGIApp, access: Access, sign_in: SignIn) -> None:
        self._app = app
        self._access = access
        self._sign_in = sign_in
        self._turns: WeakValueDictionary[tuple[str | None, str], _Turns] = WeakValueDictionary()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    if not (name == "cache-control" and scope["path"].startswith("/static/")):
                        headers[name] = value
            await send(message)

        bare = self._access.proxies.without_headers(scope)
        answer = self._answer(Request(scope), bare)
        visitor = visitor_or_none(Request(bare))
        if answer is not None or visitor is None:
            await (answer or self._app)(bare, receive, send_with_headers)
            return
        turns = self._turns.setdefault((visitor.project, visitor.user), _Turns())
        if turns.open >= _MOST_WAITING:
            busy = PlainTextResponse("Too many requests of yours wait for an answer.\n", 429)
            await busy(bare, receive, send_with_headers)
            return
        turns.open += 1
        try:
            async with turns:
                await self._app(bare, receive, send_with_headers)
        finally:
            turns.open -= 1

    def _answer(self, request: Request, bare: Scope) -> Response | None:
        """Return the answer that replaces a page; None lets the request pass."""
        path = request.scope["path"]
        if path in HEALTH:  # health checks come under any name, such as a pod's address
            return None
        if refusal := self._forged(request):
            return refusal
        try:
            visitor = self._access.identify(request)
            # A session may outlast its key's right to read, and a proxy's users may have none. It can be left all the same.
            if visitor is not None and path != SIGN_OUT:
                visitor.demand(Right.READ)
        except HTTPException as error:
            return None if _is_open(path) else self._sign_in.ask(Request(bare), error)
        if visitor is not None:
            admit(bare, visitor)
            return None
        return None if _is_open(path) else self._sign_in.ask(Request(bare))

    def _forged(self, request: Request) -> Response | None:
        headers = Headers(scope=request.scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1:
            return PlainTextResponse("A request must name one host.\n", 400)
        if not self._access.serves(host_name(hosts[0])):
            hint = (
                "Without a token only this machine is served"
                if self._access.is_open
                else ("This name is not served: web_public_names names those that are")
            )
            return PlainTextResponse(f"{hint}.\n", 421)
        if request.method not in {"GET", "HEAD"} and not self._sent_from_here(headers):
            return PlainTextResponse("This form was not sent from here.\n", 403)
        return None

    def _sent_from_here(self, headers: Headers) -> bool:
        """Return whether a page of ours sent the form; browsers always send the origin."""
        if headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"}:
            return False
        origins = headers.getlist("origin")
        if not origins:
            return True
        if len(origins) > 1:
            return False
        place = _ORIGIN.fullmatch(origins[0])
        if place is None:
            return False
        # A proxy may replace the public name by another name of ours.
        return place[1] == headers["host"] or self._access.is_public_name(host_name(place[1]))


def _is_open(path: str) -> bool:
    return path.startswith("/static/") or path == SIGN_IN
