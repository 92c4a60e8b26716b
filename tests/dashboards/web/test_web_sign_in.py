"""Signing in and out, sessions, and guessing at tokens and keys."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

import pytest
from guarded_view import ALL, HTML, NAME, TOKEN, View
from web_runs import SHORT

from mast_trace_collector import security
from mast_trace_collector.security import new_key
from mast_trace_dashboards.web import sessions
from mast_trace_dashboards.web.access import COOKIE
from mast_trace_dashboards.web.sessions import FailedSignIns, Sessions
from mast_trace_dashboards.web.sign_in import local_place

if TYPE_CHECKING:
    from pathlib import Path

    from mast_trace_collector.storage import Store


class TestSigningIn:
    """The form, the session that it begins, and the end of that."""

    def test_a_stranger_gets_the_form_and_nothing_else(self, view: View) -> None:
        with view.client(**HTML) as client:
            for place in ("/", f"/runs/{SHORT}", "/judge", "/runbooks", "/nowhere", "/sign-out"):
                answer = client.get(place)
                assert answer.status_code == 401, place
                assert answer.headers["www-authenticate"] == "Bearer"
                assert 'name="key"' in answer.text
                assert f'name="next" value="{place}"' in answer.text
                assert "Runbooks" not in answer.text
            assert client.get("/sign-in").status_code == 200
            assert client.get("/static/style.css").status_code == 200
            assert "set-cookie" not in answer.headers

    def test_a_program_gets_words(self, view: View) -> None:
        with view.client() as client:
            answer = client.get("/")
            assert answer.status_code == 401
            assert "Authorization: Bearer" in answer.text

    def test_a_key_opens_a_session_without_being_in_the_cookie(self, view: View) -> None:
        with view.client() as client:
            answer = client.post("/sign-in", data={"key": f" {view.key}\n", "next": "/judge?x=1"})
            assert (answer.status_code, answer.headers["location"]) == (303, "/judge?x=1")
            (cookie,) = answer.headers.get_list("set-cookie")
            assert cookie.startswith(f"{COOKIE}=")
            assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(cookie.split("; "))
            assert "Secure" not in cookie
            for secret in (
                view.key,
                view.key.removeprefix("mt_"),
                security.hash_of(view.key),
                TOKEN,
            ):
                assert secret not in cookie
            page = client.get("/judge").text
            assert "Project <strong>p</strong>" in page
            assert "Sign out" in page
            assert client.get("/sign-in").status_code == 303

    @pytest.mark.parametrize("way", ["our own TLS", "a proxy's"])
    def test_under_tls_the_cookie_is_the_hosts_alone(self, view: View, way: str) -> None:
        forwarded = {} if way == "our own TLS" else {"x_forwarded_proto": "https"}
        with view.client(https=way == "our own TLS", **forwarded) as client:
            answer = client.post("/sign-in", data={"key": view.key})
            cookie = answer.headers["set-cookie"]
            assert cookie.startswith(f"__Host-{COOKIE}=")
            assert "Secure" in cookie.split("; ")
            held = cookie.partition(";")[0]
            assert client.get("/judge", headers={"cookie": held}).status_code == 200
            plain = held.removeprefix("__Host-")
            client.cookies.clear()
            assert client.get("/judge", headers={"cookie": plain}).status_code == 401

    def test_the_operators_token_shows_all(self, view: View) -> None:
        with view.signed_in(TOKEN) as client:
            page = client.get("/").text
            assert "Project <strong>" not in page
            assert "trip &amp; &lt;i&gt;co&lt;/i&gt;" in page

    def test_a_session_id_of_before_is_not_taken_over(self, view: View) -> None:
        """A sign-in takes over neither a foreign session id nor the previous one."""
        with view.client() as client:
            client.cookies.set(COOKIE, "fixed")
            assert client.get("/judge").status_code == 401
            client.post("/sign-in", data={"key": view.key})
            first = view.access.sessions
            assert len(first) == 1
            assert first.find("fixed") is None
            held = client.cookies.get(COOKIE, domain=NAME) or ""
            client.post("/sign-in", data={"key": view.key})
            assert first.find(held) is None
            assert len(first) == 1

    def test_signing_out_ends_the_session_itself(self, view: View) -> None:
        with view.signed_in() as client:
            held = client.cookies[COOKIE]
            answer = client.post("/sign-out")
            assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in")
            assert client.cookies.get(COOKIE) is None
            assert client.get("/judge", headers={"cookie": f"{COOKIE}={held}"}).status_code == 401

    def test_a_session_ends_by_itself(
        self, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        view = View(store, tmp_path, web_session_hours=1.0)
        with view.signed_in() as client:
            assert client.get("/judge").status_code == 200
            now = time.monotonic()
            monkeypatch.setattr(sessions.time, "monotonic", lambda: now + 3601)
            assert client.get("/judge").status_code == 401

    @pytest.mark.usefixtures("quick_reload")
    def test_a_key_that_is_removed_ends_its_sessions(self, view: View) -> None:
        other, line = new_key("p", ALL)
        view.file.write_text(f"{view.line}\n{line}\n")
        with view.signed_in() as client, view.signed_in(other) as second:
            assert client.get("/judge").status_code == second.get("/judge").status_code == 200
            view.file.write_text(f"{line}\n")
            assert client.get("/judge").status_code == 401
            assert second.get("/judge").status_code == 200
            view.file.write_text(f"{line}\n{view.line}\n")

    @pytest.mark.usefixtures("quick_reload")
    def test_rights_that_are_taken_away_are_taken_from_sessions(self, view: View) -> None:
        with view.signed_in() as client:
            view.file.write_text(view.line.replace("read,label", "read"))
            assert client.get("/judge").status_code == 200
            assert client.post(f"/runs/{SHORT}/label", data={"annotator": "x"}).status_code == 403
            view.file.write_text(view.line.replace("read,label", "write,label"))
            assert client.get("/judge").status_code == 403

    def test_a_key_that_only_writes_begins_no_session(self, view: View) -> None:
        with view.client() as client:
            answer = client.post("/sign-in", data={"key": view.sender})
            assert answer.status_code == 403
            assert "You lack the right to read" in answer.text
            assert "set-cookie" not in answer.headers
        assert len(view.access.sessions) == 0

    @pytest.mark.parametrize("key", ["", "x", "mt_", "\x00", "ü" * 100, "x" * 60_000, TOKEN + " x"])
    def test_other_texts_are_refused_in_words(self, view: View, key: str) -> None:
        with view.client() as client:
            answer = client.post("/sign-in", data={"key": key})
            assert answer.status_code == 401
            assert "This key is not known here." in answer.text
            assert "set-cookie" not in answer.headers
            assert client.post("/sign-in", content=b"x" * 70_000).status_code == 413
            assert client.post("/sign-in", content=b"a=1&" * 200).status_code == 400

    @pytest.mark.parametrize(
        "place",
        [
            "//evil.example",
            "/\\evil.example",
            "https://evil.example",
            "javascript:alert(1)",
            "/\t/evil.example",
            "/x\r\nset-cookie: a=b",
            "\\/evil",
            "/sign-in",
            "/" + "x" * 3000,
            "",
        ],
    )
    def test_nobody_is_sent_elsewhere(self, view: View, place: str) -> None:
        assert local_place(place) == "/"
        with view.client() as client:
            answer = client.post("/sign-in", data={"key": view.key, "next": place})
            assert answer.headers["location"] == "/"

    def test_a_token_in_an_address_signs_in_and_is_gone(self, view: View) -> None:
        with view.client(**HTML) as client:
            answer = client.get("/", params={"token": TOKEN, "mode": "2.6"})
            assert (answer.status_code, answer.headers["location"]) == (303, "/?mode=2.6")
            assert client.get("/").status_code == 200

    @pytest.mark.parametrize("name", ["token", "key"])
    def test_a_key_in_an_address_does_nothing_and_is_told_nobody(
        self, view: View, caplog: pytest.LogCaptureFixture, name: str
    ) -> None:
        """A link could otherwise sign somebody in to the project of whoever made it."""
        caplog.set_level(logging.DEBUG)
        with view.client(**HTML) as client:
            answer = client.get("/judge", params={name: view.key})
            assert answer.status_code == 401
            assert "set-cookie" not in answer.headers
            assert view.key not in answer.text
        ours = [record for record in caplog.records if not record.name.startswith("httpx")]
        assert view.key not in str([record.getMessage() for record in ours])

    def test_a_link_from_elsewhere_goes_on_by_a_step_of_our_own(self, view: View) -> None:
        """Strict cookies do not come with it; from our own page they do."""
        with view.client(sec_fetch_site="cross-site", **HTML) as client:
            page = client.get("/judge?a=b&c=d").text
            assert 'content="0; url=/sign-in?next=%2Fjudge%3Fa%3Db%26c%3Dd"' in page
            assert "http-equiv" not in client.get("/sign-in?next=/judge").text


class TestGuessing:
    """Ten thousand wrong keys cost little and let nobody in."""

    def test_guesses_are_slowed_and_lock_no_key_out(self, view: View) -> None:
        with view.client() as client:
            answers = [client.post("/sign-in", data={"key": f"guess {n}"}) for n in range(25)]
            statuses = [answer.status_code for answer in answers]
            assert statuses == [401] * 20 + [429] * 5
            assert int(answers[-1].headers["retry-after"]) in {1, 2, 3}
            assert client.post("/sign-in", data={"key": TOKEN}).status_code == 429
            assert client.get("/", headers={"authorization": f"Bearer {TOKEN}"}).status_code == 429
            shown = {"authorization": f"Bearer {view.key}"}
            assert client.get("/judge", headers=shown).status_code == 200
        with view.signed_in(TOKEN, peer="203.0.113.10") as client:
            assert client.get("/judge").status_code == 200

    def test_attempts_come_back_with_time(self, monkeypatch: pytest.MonkeyPatch) -> None:
        attempts, now = FailedSignIns(), time.monotonic()
        monkeypatch.setattr(sessions.time, "monotonic", lambda: now)
        for _ in range(20):
            assert attempts.wait("a") == 0
            attempts.failed("a")
        assert (attempts.wait("a"), attempts.wait("b")) == (3, 0)
        now += 3.1
        assert attempts.wait("a") == 0
        attempts.failed("a")
        assert attempts.wait("a") == 3
        now += 3600
        for _ in range(20):
            assert attempts.wait("a") == 0
            attempts.failed("a")
        assert attempts.wait("a") == 3

    def test_an_ipv6_network_counts_as_one_address(self) -> None:
        attempts = FailedSignIns()
        for number in range(40):
            attempts.failed(f"2001:db8::{number:x}")
        assert attempts.wait("2001:db8::ffff") > 0
        assert attempts.wait("2001:db8:0:1::") == 0

    def test_memory_is_bounded(self) -> None:
        attempts = FailedSignIns()
        for number in range(10_000):
            attempts.failed(f"10.0.{number // 256}.{number % 256}")
        assert len(attempts) == 4096

    def test_sessions_are_bounded(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sessions, "_MOST_SESSIONS", 200)
        kept = Sessions(3600.0)
        first = kept.begin("operator")
        of_one = [kept.begin("one") for _ in range(100)]
        assert len(kept) == 65
        assert kept.find(of_one[0]) is None
        assert kept.find(of_one[-1]) == "one"
        assert kept.find(first) == "operator"
        for number in range(500):
            kept.begin(f"key {number}")
        assert len(kept) == 200
        assert kept.find("") is None
