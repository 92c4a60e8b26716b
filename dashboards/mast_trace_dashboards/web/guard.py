"""Who may look, and what a page may load: nothing from elsewhere, no scripts but our own."""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE = "mast-trace-token"
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    # Not "no-referrer": browsers would send our own forms with the origin "null".
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}
_OK_NAMES = ("127.0.0.1", "localhost", "[::1]")


class Guard:
    """Sets the headers, checks the token where one is set, and refuses forged requests.

    Args:
        app: the pages.
        token: what visitors must know; without one only names of this machine are answered, so that
            a page elsewhere cannot reach the view through a name that points here.
    """

    def __init__(self, app: ASGIApp, token: str = "") -> None:
        self._app = app
        self._token = token

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

        answer = self._refusal(Request(scope))
        await (answer or self._app)(scope, receive, send_with_headers)

    def _refusal(self, request: Request) -> PlainTextResponse | RedirectResponse | None:
        headers = Headers(scope=request.scope)
        if request.method not in {"GET", "HEAD"} and not _same_site(headers):
            return PlainTextResponse("This form was not sent from here.", 403)
        if not self._token:
            host = headers.get("host", "").rsplit(":", 1)[0]
            if host in _OK_NAMES:
                return None
            return PlainTextResponse("Without a token only this machine is served.", 421)
        if self._knows(request.cookies.get(COOKIE, "")) or self._knows(_bearer(headers)):
            return None
        given = request.query_params.get("token", "")
        if not self._knows(given):
            return PlainTextResponse("Open this page with ?token=... (see `mast-trace up`).", 401)
        # Out of the address, so that it is not in the history or in what is shared.
        answer = RedirectResponse(str(request.url.remove_query_params("token")), 303)
        answer.set_cookie(COOKIE, given, httponly=True, samesite="strict", max_age=30 * 86400)
        return answer

    def _knows(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self._token.encode())


def _bearer(headers: Headers) -> str:
    scheme, _, value = headers.get("authorization", "").partition(" ")
    return value if scheme.lower() == "bearer" else ""


def _same_site(headers: Headers) -> bool:
    """Whether a form was sent from a page of ours; browsers always say where from."""
    origin = headers.get("origin")
    if origin is None:
        return headers.get("sec-fetch-site", "same-origin") in {"same-origin", "none"}
    return origin.split("://", 1)[-1] == headers.get("host")
