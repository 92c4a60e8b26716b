"""Requests that another site, or a page in another frame, would have a visitor send."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote

import pytest
from guarded_view import NAME, TOKEN, View, answer_to
from web_runs import SHORT

from mast_trace_judge.store.labels import labels_of

if TYPE_CHECKING:
    from mast_trace_collector.storage import Store


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
    @pytest.mark.parametrize("path", ["/sign-in", "/sign-out", f"/runs/{SHORT}/label"])
    def test_forms_from_elsewhere_do_nothing(
        self, view: View, store: Store, path: str, headers: dict[str, str]
    ) -> None:
        with view.signed_in(TOKEN) as client:
            form = {"annotator": "mallory", "key": view.key}
            answer = client.post(path, data=form, headers=headers)
            assert answer.status_code == 403
            assert "set-cookie" not in answer.headers
            assert client.get("/judge").status_code == 200
            origins = [("origin", f"http://{NAME}"), ("origin", "https://evil.example")]
            assert client.post(path, data=form, headers=origins).status_code == 403
        assert "mallory" not in {label.annotator for label in labels_of(store, SHORT)}

    def test_forms_of_our_own_are_taken_behind_a_proxy_that_renames_us(self, view: View) -> None:
        with view.client(host="web:8680") as client:
            assert client.get("/sign-in").status_code == 421
        with view.client(host="127.0.0.1:8680", origin=f"https://{NAME}") as client:
            assert client.post("/sign-in", data={"key": view.key}).status_code == 303

    @pytest.mark.parametrize(
        "method", ["OPTIONS", "PUT", "DELETE", "PATCH", "TRACE", "CONNECT", "X"]
    )
    def test_other_methods_do_nothing(self, view: View, method: str) -> None:
        with view.client() as client:
            for place in ("/", "/sign-in", f"/runs/{SHORT}/label", "/healthz"):
                status = client.request(method, place).status_code
                assert status == (405 if place in {"/sign-in", "/healthz"} else 401), place
        with view.signed_in(TOKEN) as client:
            for place in ("/", f"/runs/{SHORT}/label"):
                assert client.request(method, place).status_code == 405
            evil = {"origin": "https://evil.example", "access-control-request-method": "POST"}
            answer = client.options("/", headers=evil)
            assert answer.status_code == 403
            assert not [name for name in answer.headers if name.startswith("access-control")]

    def test_head_tells_a_stranger_nothing(self, view: View) -> None:
        with view.client() as client:
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
    async def test_no_path_leads_around_the_door(self, view: View, path: str) -> None:
        """No path bypasses the guard or leaves a folder. The paths arrive as they are written, or decoded."""
        for shown in ("", TOKEN):
            for written in (path, unquote(path)):
                answer = await answer_to(view.app, written, authorization=f"Bearer {shown}")
                assert answer.startswith((b"401", b"404")), written
                assert b"Judge health" not in answer
                assert b"root:" not in answer

    def test_only_set_names_are_served_but_to_orchestrators(self, view: View) -> None:
        with view.client(authorization=f"Bearer {TOKEN}") as client:
            for host in (
                NAME,
                f"{NAME}:443",
                NAME.upper(),
                f"{NAME}.",
                "localhost:1",
                "[::1]:8680",
            ):
                assert client.get("/judge", headers={"host": host}).status_code == 200, host
            for host in ("evil.example", f"x{NAME}", f"{NAME}.evil.example", "", "10.1.2.3"):
                assert client.get("/judge", headers={"host": host}).status_code in {400, 421}, host
                assert client.get("/healthz", headers={"host": host}).text == "ok\n"
                assert client.get("/readyz", headers={"host": host}).json()["ready"] is True
            twice = [("host", NAME), ("host", "evil.example")]
            assert client.get("/judge", headers=twice).status_code == 400
