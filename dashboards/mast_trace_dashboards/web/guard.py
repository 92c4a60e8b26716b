"""The guard of the web view: admits requests and sets headers; pages load nothing from elsewhere."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse

from mast_trace_collector.security import Right
from mast_trace_dashboards.web.access import host_name
from mast_trace_dashboards.web.health import PATHS as HEALTH
from mast_trace_dashboards.web.sign_in import LEAVE as SIGN_OUT
from mast_trace_dashboards.web.sign_in import PATH as SIGN_IN
from mast_trace_dashboards.web.visitor import admit

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from mast_trace_dashboards.web.access import Access
    from mast_trace_dashboards.web.sign_in import SignIn

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


class Guard:
    """Sets the headers, identifies the visitor, and refuses strangers and forged requests.

    Pages are reached only by admitted visitors, who may read; only further rights need a check of their own.

    Args:
        app: the pages.
        access: access control.
        sign_in: answers visitors who have to sign in.
    """

    def __init__(self, app: ASGIApp, access: Access, sign_in: SignIn) -> None:
        self._app = app
        self._access = access
        self._sign_in = sign_in

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
        await (answer or self._app)(bare, receive, send_with_headers)

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
