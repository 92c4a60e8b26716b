"""Requests that another site, or a page in another frame, would have a visitor send."""

from __future__ import annotations

import itertools
from urllib.parse import unquote

import pytest
from guarded_view import NAME, TOKEN, View, answer_to
from web_runs import SHORT

from mast_trace_dashboards.web.access import Access, host_name
from mast_trace_dashboards.web.config import WebConfig


class TestForgery:
    """Requests that another page makes a visitor's browser send."""

    @pytest.mark.parametrize(
        "headers",
        [
            {"origin": "https://evil.example"},
            {"origin": "null"},
            {"origin": f"http://{NAME}.evil.example"},
            {"origin": f"http://{NAME}@evil.example"},
            {"origin": f"http://{NAME}:x@evil.example"},
            {"origin": f"http://{NAME}/"},
            {"origin": "http://["},
            {"origin": "http://[::1"},
            {"origin": f"//{NAME}"},
            {"origin": ""},
            {"sec-fetch-site": "cross-site"},
            {"sec-fetch-site": "same-site"},
            {"sec-fetch-site": "cross-site", "origin": f"http://{NAME}"},
        ],
    )
    def test_forms_from_elsewhere_do_nothing(self, door: View, headers: dict[str, str]) -> None:
        posted = [
            *("/sign-in", "/sign-out", f"/runs/{SHORT}/label", f"/runs/{SHORT}/compare"),
            *("/patterns/x/state", "/mcp", "/healthz/", "/nowhere"),
        ]
        twice = [("origin", f"http://{NAME}"), ("origin", "https://evil.example")]
        with door.signed_in(TOKEN) as client:
            form = {"annotator": "mallory", "key": door.key}
            for path, sent in itertools.product(posted, (headers, twice)):
                answer = client.post(path, data=form, headers=sent)
                assert (answer.status_code, "set-cookie" in answer.headers) == (403, False), path
            assert client.get("/runbooks").status_code == 200

    def test_forms_of_our_own_are_taken_behind_a_proxy_that_renames_us(self, door: View) -> None:
        with door.client(host="web:8680") as client:
            assert client.get("/sign-in").status_code == 421
        with door.client(host="127.0.0.1:8680", origin=f"https://{NAME}") as client:
            assert client.post("/sign-in", data={"key": door.key}).status_code == 303

    @pytest.mark.parametrize(
        "method", ["OPTIONS", "PUT", "DELETE", "PATCH", "TRACE", "CONNECT", "X"]
    )
    def test_other_methods_do_nothing(self, door: View, method: str) -> None:
        with door.client() as client:
            for place in ("/", "/sign-in", f"/runs/{SHORT}/label", "/healthz"):
                status = client.request(method, place).status_code
                assert status == (405 if place in {"/sign-in", "/healthz"} else 401), place
        with door.signed_in(TOKEN) as client:
            for place in ("/", f"/runs/{SHORT}/label"):
                assert client.request(method, place).status_code == 405
            evil = {"origin": "https://evil.example", "access-control-request-method": "POST"}
            answer = client.options("/", headers=evil)
            assert answer.status_code == 403
            assert not [name for name in answer.headers if name.startswith("access-control")]

    def test_head_tells_a_stranger_nothing(self, door: View) -> None:
        with door.client() as client:
            there, not_there = client.head(f"/runs/{SHORT}"), client.head("/runs/none")
            assert there.status_code == not_there.status_code == 401
            assert there.content == b""

    @pytest.mark.parametrize(
        "path",
        [
            "/static/../judge",
            "/static/..%2fjudge",
            "/static/%2e%2e/judge",
            "//judge",
            "/static//etc/passwd",
            "/static/../pages.py",
            "/healthz/../judge",
            "/sign-in/../judge",
            "/runbooks/..%2f..%2fpy.typed",
            "/Static/../judge",
        ],
    )
    async def test_no_path_leads_around_the_door(self, door: View, path: str) -> None:
        """No path bypasses the guard or leaves a folder. The paths arrive as they are written, or decoded."""
        for shown in ("", TOKEN):
            for written in (path, unquote(path)):
                answer = await answer_to(door.app, written, authorization=f"Bearer {shown}")
                assert answer.startswith((b"401", b"404")), written
                assert b"root:" not in answer

    def test_only_set_names_are_served_but_to_orchestrators(self, door: View) -> None:
        with door.client(authorization=f"Bearer {TOKEN}") as client:
            for host in (
                NAME,
                f"{NAME}:443",
                NAME.upper(),
                f"{NAME}.",
                "localhost:1",
                "[::1]:8680",
            ):
                assert client.get("/runbooks", headers={"host": host}).status_code == 200, host
            for host in ("evil.example", f"x{NAME}", f"{NAME}.evil.example", "", "10.1.2.3"):
                assert client.get("/runbooks", headers={"host": host}).status_code in {400, 421}, (
                    host
                )
                assert client.get("/healthz", headers={"host": host}).text == "ok\n"
                assert client.get("/readyz", headers={"host": host}).json()["ready"] is False
            twice = [("host", NAME), ("host", "evil.example")]
            assert client.get("/runbooks", headers=twice).status_code == 400

    @pytest.mark.parametrize(
        ("settings", "is_open", "others"),
        [
            ({"web_public_names": f"x.org, {NAME}"}, False, False),
            ({"web_public_names": f"{NAME},x.org", "web_token": TOKEN}, True, False),
            ({"web_public_names": NAME.upper()}, True, False),
            ({"web_token": TOKEN}, True, True),
            ({}, False, True),
            ({}, True, False),
        ],
    )
    def test_a_view_that_asks_nobody_has_no_name_but_this_machines(
        self, settings: dict[str, str], is_open: bool, others: bool
    ) -> None:
        access = Access(WebConfig.load(**settings), is_open=is_open)
        assert access.is_open == (is_open and "web_token" not in settings)
        for host in ("127.0.0.1:8680", "LOCALHOST.", "[::1]"):
            assert access.serves(host_name(host)), host
        assert access.serves(NAME) == (others or "web_public_names" in settings)
        for host in ("evil.example", "127.0.0.1.evil.example:80", "[::2]:80", ""):
            assert access.serves(host_name(host)) == others, host
