"""Signing in with a key or the operator's token, and signing out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from mast_trace_dashboards.web.access import Access, cookie_name, is_secure
from mast_trace_dashboards.web.filters import read_form
from mast_trace_dashboards.web.visitor import visitor_or_none

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.templating import Jinja2Templates


PATH = "/sign-in"
LEAVE = "/sign-out"
_LONGEST_PLACE = 2000


class SignIn:
    """The sign-in form, its submission, and the answer to visitors who have to sign in first.

    Each sign-in begins a session with a new id and ends the previous one.
    """

    def __init__(self, access: Access, templates: Jinja2Templates) -> None:
        self._access = access
        self._templates = templates

    async def form(self, request: Request) -> Response:
        """Answer with the form; redirect a visitor who is signed in already."""
        place = local_place(request.query_params.get("next", ""))
        if visitor_or_none(request) is not None:
            return RedirectResponse(place, 303)
        return self._page(request, 200, "", place)

    async def enter(self, request: Request) -> Response:
        """Begin a session for a visitor whose key may read."""
        form = await read_form(request)
        place = local_place(form["next"][0])
        try:
            identity = self._access.prove(request, form["key"][0].strip())
        except HTTPException as error:
            return self._page(request, error.status_code, error.detail, place, error.headers)
        return self._begin(request, identity, place)

    async def leave(self, request: Request) -> Response:
        """End the session."""
        name = cookie_name(request)
        self._access.sessions.end(request.cookies.get(name, ""))
        answer = RedirectResponse(PATH, 303)
        answer.delete_cookie(name, secure=is_secure(request), httponly=True, samesite="strict")
        return answer

    def ask(self, request: Request, error: HTTPException | None = None) -> Response:
        """Answer a request of an unknown visitor, or of one whose key does not suffice.

        The operator's token in an address, ``?token=``, also signs in, as in earlier versions. A
        key does not: a link could then sign a visitor in to a project of the link's author.
        """
        place = _asked_for(request)
        given = request.query_params.get("token", "")
        if error is None and given and request.method == "GET":
            try:
                identity = self._access.prove(request, given, token_only=True)
                return self._begin(request, identity, place)
            except HTTPException as wrong:
                error = wrong
        status = error.status_code if error else 401
        problem = error.detail if error else ""
        headers = dict(error.headers or {}) if error else {}
        if status == 401:
            headers["www-authenticate"] = "Bearer"
        if "text/html" not in request.headers.get("accept", ""):
            text = problem or "Show a key that may read: Authorization: Bearer <key>."
            return PlainTextResponse(text + "\n", status, headers)
        # A link from elsewhere carries no cookie. A further step, from a page of ours, does.
        again = status == 401 and request.headers.get("sec-fetch-site") == "cross-site"
        return self._page(request, status, problem, place, headers, again=again)

    def _begin(self, request: Request, identity: str, place: str) -> Response:
        name, sessions = cookie_name(request), self._access.sessions
        sessions.end(request.cookies.get(name, ""))
        answer = RedirectResponse(place, 303)
        answer.set_cookie(
            name,
            sessions.begin(identity),
            max_age=self._access.lifetime,
            secure=is_secure(request),
            httponly=True,
            samesite="strict",
        )
        return answer

    def _page(
        self,
        request: Request,
        status: int,
        problem: str,
        place: str,
        headers: Mapping[str, str] | None = None,
        *,
        again: bool = False,
    ) -> Response:
        values = {
            "problem": problem,
            "next": place,
            "again": f"{PATH}?{urlencode({'next': place})}" if again else "",
        }
        return self._templates.TemplateResponse(
            request, "sign_in.html", values, status_code=status, headers=headers
        )


def _asked_for(request: Request) -> str:
    """Return the requested page, without possible secrets in its address."""
    if request.method not in {"GET", "HEAD"}:
        return "/"
    url = request.url.remove_query_params(["token", "key"])
    return local_place(url.path + (f"?{url.query}" if url.query else ""))


def local_place(text: str) -> str:
    """Return an address of this view to continue with; its first page where the text is none."""
    fits = (
        text.startswith("/")
        and not text.startswith("//")
        and "\\" not in text
        and text.isascii()
        and text.isprintable()
        and len(text) <= _LONGEST_PLACE
        and not text.startswith(PATH)
    )
    return text if fits else "/"
