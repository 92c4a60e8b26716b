"""Signing in and out, access, and guessing at tokens and keys."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from typing import TYPE_CHECKING

import pytest
from guarded_view import ALL, HTML, NAME, TOKEN, View, answer_to
from starlette.requests import Request
from starlette.responses import Response
from web_runs import SHORT

from mast_trace_collector import security
from mast_trace_collector.security import new_key
from mast_trace_dashboards.web import access
from mast_trace_dashboards.web.access import COOKIE, FailedSignIns, Sessions
from mast_trace_dashboards.web.sign_in import local_place
from mast_trace_dashboards.web.visitor import visitor_of

if TYPE_CHECKING:
    from pathlib import Path

    from starlette.types import Receive, Scope, Send

    from mast_trace_collector.storage import Store


COOKIES = [(False, COOKIE), (True, f"__Host-{COOKIE}")]
"""Names of the session's cookie, each behind the use of TLS by the browser."""


class TestSigningIn:
    """The form, the session that it begins, and the end of that."""

    def test_a_stranger_gets_the_form_and_nothing_else(self, door: View) -> None:
        with door.client(**HTML) as client:
            for place in ("/", f"/runs/{SHORT}", "/runbooks", "/runbooks", "/nowhere", "/sign-out"):
                answer = client.get(place)
                assert answer.status_code == 401, place
                assert answer.headers["www-authenticate"] == "Bearer"
                assert 'name="key"' in answer.text
                assert f'name="next" value="{place}"' in answer.text
                assert "Runbooks" not in answer.text
            assert client.get("/sign-in").status_code == 200
            assert client.get("/static/style.css").status_code == 200
            assert "set-cookie" not in answer.headers

    def test_a_key_opens_a_session_without_being_in_the_cookie(self, door: View) -> None:
        with door.client() as client:
            answer = client.post("/sign-in", data={"key": f" {door.key}\n", "next": "/judge?x=1"})
            assert (answer.status_code, answer.headers["location"]) == (303, "/judge?x=1")
            (cookie,) = answer.headers.get_list("set-cookie")
            assert cookie.startswith(f"{COOKIE}=")
            assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(cookie.split("; "))
            assert "Secure" not in cookie
            assert door.key.removeprefix("mt_") not in cookie
            assert security.hash_of(door.key) not in cookie
            assert TOKEN not in cookie
            page = client.get("/runbooks").text
            assert "Project <strong>p</strong>" in page
            assert "Sign out" in page
            assert client.get("/sign-in").status_code == 303

    @pytest.mark.parametrize("way", ["our own TLS", "a proxy's"])
    def test_under_tls_the_cookie_is_the_hosts_alone(self, door: View, way: str) -> None:
        forwarded = {} if way == "our own TLS" else {"x_forwarded_proto": "https"}
        with door.client(https=way == "our own TLS", **forwarded) as client:
            answer = client.post("/sign-in", data={"key": door.key})
            cookie = answer.headers["set-cookie"]
            assert cookie.startswith(f"__Host-{COOKIE}=")
            assert "Secure" in cookie.split("; ")
            held = cookie.partition(";")[0]
            assert client.get("/runbooks", headers={"cookie": held}).status_code == 200
            plain = held.removeprefix("__Host-")
            client.cookies.clear()
            assert client.get("/runbooks", headers={"cookie": plain}).status_code == 401

    def test_the_operators_token_shows_all(self, door: View) -> None:
        with door.signed_in(TOKEN) as client:
            page = client.get("/runbooks").text
            assert "Project <strong>" not in page
            assert "Sign out" in page

    @pytest.mark.parametrize(("https", "name"), COOKIES)
    def test_an_old_session_id_is_not_taken(self, door: View, https: bool, name: str) -> None:
        """A sign-in takes over neither a foreign session id nor the previous one."""
        with door.client(https=https) as client:
            client.cookies.set(name, "fixed")
            assert client.get("/runbooks").status_code == 401
            client.post("/sign-in", data={"key": door.key})
            first = door.access.sessions
            assert len(first) == 1
            assert first.find("fixed") is None
            held = client.cookies.get(name, domain=NAME) or ""
            assert first.find(held)
            client.post("/sign-in", data={"key": door.key})
            assert first.find(held) is None
            assert len(first) == 1

    @pytest.mark.parametrize(("https", "name"), COOKIES)
    def test_signing_out_ends_the_session_itself(self, door: View, https: bool, name: str) -> None:
        with door.signed_in(https=https) as client, door.signed_in(https=https) as other:
            held = client.cookies[name]
            answer = client.post("/sign-out")
            assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in")
            assert client.cookies.get(name) is None
            shown = {"cookie": f"{name}={held}"}
            assert client.get("/runbooks", headers=shown).status_code == 401
            assert other.get("/runbooks").status_code == 200

    def test_a_session_ends_by_itself(
        self, away: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A second before its end it is valid, and at its end no more; use does not prolong it."""
        now = 1000.0
        monkeypatch.setattr(access.time, "monotonic", lambda: now)
        view = View(away, tmp_path, web_session_hours=1.0)
        with view.client() as client:
            answer = client.post("/sign-in", data={"key": view.key})
            assert "Max-Age=3600" in answer.headers["set-cookie"].split("; ")
            held = answer.headers["set-cookie"].partition(";")[0]
            for later, status in ((0, 200), (3599, 200), (3600, 401)):
                now = 1000.0 + later
                assert client.get("/runbooks", headers={"cookie": held}).status_code == status

    @pytest.mark.usefixtures("quick_reload")
    def test_a_key_that_is_removed_ends_its_sessions(self, door: View) -> None:
        other, line = new_key("p", ALL)
        door.file.write_text(f"{door.line}\n{line}\n")
        with door.signed_in() as client, door.signed_in(other) as second:
            assert client.get("/runbooks").status_code == second.get("/runbooks").status_code == 200
            door.file.write_text(f"{line}\n")
            assert client.get("/runbooks").status_code == 401
            assert second.get("/runbooks").status_code == 200
            door.file.write_text(f"{line}\n{door.line}\n")

    def test_a_key_that_only_writes_begins_no_session(self, door: View) -> None:
        with door.client() as client:
            answer = client.post("/sign-in", data={"key": door.sender})
            assert answer.status_code == 403
            assert "You lack the right to read" in answer.text
            assert "--right read --right read" not in answer.text
            assert "set-cookie" not in answer.headers
        assert len(door.access.sessions) == 0

    @pytest.mark.parametrize("key", ["", "x", "mt_", "\x00", "ü" * 100, "x" * 60_000, TOKEN + " x"])
    def test_other_texts_are_refused_in_words(self, door: View, key: str) -> None:
        with door.client() as client:
            answer = client.post("/sign-in", data={"key": key})
            assert answer.status_code == 401
            assert "This key is not known here." in answer.text
            assert "set-cookie" not in answer.headers
            assert client.post("/sign-in", content=b"x" * 70_000).status_code == 413
            assert client.post("/sign-in", content=b"a=1&" * 200).status_code == 400

    @pytest.mark.parametrize(
        "place",
        [
            *("//evil.example", "/\\evil.example", "https://evil.example"),
            *("javascript:alert(1)", "/\t/evil.example", "/x\r\nset-cookie: a=b", "\\/evil"),
            *("/sign-in", "/sign-in?next=/sign-in", "/" + "x" * 2000, "/\u00fc", ""),
        ],
    )
    def test_nobody_is_sent_elsewhere(self, door: View, place: str) -> None:
        """Neither by the form, nor when signed in already, nor by the page that asks to sign in."""
        assert local_place(place) == "/"
        asked = {"next": place}
        with door.client(**HTML) as client:
            assert 'name="next" value="/"' in client.get("/sign-in", params=asked).text
            wrong = client.post("/sign-in", data={"key": "wrong", **asked})
            assert (wrong.status_code, 'name="next" value="/"' in wrong.text) == (401, True)
            answer = client.post("/sign-in", data={"key": door.key, **asked})
            assert answer.headers["location"] == "/"
            assert client.get("/sign-in", params=asked).headers["location"] == "/"

    @pytest.mark.parametrize("place", ["/", "/judge?x=1&y=%2F", "/" + "x" * 1999])
    def test_people_arrive_where_they_wanted_to(self, door: View, place: str) -> None:
        assert local_place(place) == place
        with door.client() as client:
            for _ in ("not signed in", "signed in"):
                answer = client.post("/sign-in", data={"key": door.key, "next": place})
                assert answer.headers["location"] == place
            assert client.get("/sign-in", params={"next": place}).headers["location"] == place

    async def test_an_address_of_another_host_leads_to_the_first_page(self, door: View) -> None:
        """A path of two slashes is an address of another host to a browser."""
        page = await answer_to(door.app, "//evil.example", sec_fetch_site="cross-site")
        assert b'name="next" value="/"' in page
        assert b"evil.example" not in page

    async def test_many_requests_of_one_key_leave_threads_to_others(
        self, away: Store, tmp_path: Path
    ) -> None:
        served: list[str | None] = []
        go_on = asyncio.Event()

        async def slow(scope: Scope, receive: Receive, send: Send) -> None:
            served.append(visitor_of(Request(scope)).project)
            await go_on.wait()
            await Response("read")(scope, receive, send)

        view = View(away, tmp_path, mounted={"/slow": slow})
        keys = [*[view.key] * 300, TOKEN]
        asked = [
            asyncio.create_task(answer_to(view.app, "/slow/", authorization=f"Bearer {key}"))
            for key in keys
        ]
        await asyncio.sleep(0.1)
        assert served.count(None) == 1
        assert 1 < served.count("p") < min(32, (os.cpu_count() or 1) + 4)
        go_on.set()
        *flood, other = await asyncio.gather(*asked)
        assert other == b"200 read"
        assert 0 < sum(answer.startswith(b"429") for answer in flood) < 150
        assert served.count("p") == sum(answer == b"200 read" for answer in flood)

    @pytest.mark.parametrize("other", ["mode", "key"])
    def test_a_token_in_an_address_signs_in_and_is_gone(self, door: View, other: str) -> None:
        with door.client(**HTML) as client:
            assert client.head("/", params={"token": TOKEN}).status_code == 401
            answer = client.get("/runbooks", params={"token": TOKEN, other: "2.6"})
            place = "/runbooks" + ("?mode=2.6" if other == "mode" else "")
            assert (answer.status_code, answer.headers["location"]) == (303, place)
            assert client.get(place).status_code == 200

    @pytest.mark.parametrize("name", ["token", "key"])
    def test_a_key_in_an_address_does_nothing_and_is_told_nobody(
        self, door: View, caplog: pytest.LogCaptureFixture, name: str
    ) -> None:
        """A link could otherwise sign somebody in to the project of whoever made it."""
        caplog.set_level(logging.DEBUG)
        with door.client(**HTML) as client:
            answer = client.get("/runbooks", params={name: door.key})
            assert answer.status_code == 401
            assert "set-cookie" not in answer.headers
            assert door.key not in answer.text
        ours = [record for record in caplog.records if not record.name.startswith("httpx")]
        assert door.key not in str([record.getMessage() for record in ours])

    def test_a_link_from_elsewhere_goes_on_by_a_step_of_our_own(self, door: View) -> None:
        """Strict cookies do not come with it; from our own page they do."""
        with door.client(sec_fetch_site="cross-site", **HTML) as client:
            page = client.get("/judge?a=b&c=d").text
            assert 'content="0; url=/sign-in?next=%2Fjudge%3Fa%3Db%26c%3Dd"' in page
            assert "http-equiv" not in client.get("/sign-in?next=/judge").text


class TestGuessing:
    """Ten thousand wrong keys cost little and let nobody in."""

    def test_guesses_are_slowed_and_lock_no_key_out(self, door: View) -> None:
        with door.client() as client:
            answers = [client.post("/sign-in", data={"key": f"guess {n}"}) for n in range(25)]
            statuses = [answer.status_code for answer in answers]
            assert statuses == [401] * 20 + [429] * 5
            assert int(answers[-1].headers["retry-after"]) in {1, 2, 3}
            assert client.post("/sign-in", data={"key": TOKEN}).status_code == 429
            assert client.get("/", headers={"authorization": f"Bearer {TOKEN}"}).status_code == 429
            shown = {"authorization": f"Bearer {door.key}"}
            assert client.get("/runbooks", headers=shown).status_code == 200
        with door.signed_in(TOKEN, peer="203.0.113.10") as client:
            assert client.get("/runbooks").status_code == 200

    def test_attempts_come_back_with_time(self, monkeypatch: pytest.MonkeyPatch) -> None:
        attempts, now = FailedSignIns(), time.monotonic()
        monkeypatch.setattr(access.time, "monotonic", lambda: now)
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

    @pytest.mark.parametrize(
        ("guessing", "same", "other"),
        [
            ("2001:db8::{}", "2001:db8::ffff:0:0:1", "2001:db8:0:1::"),
            ("10.0.0.1", "10.0.0.1", "10.0.0.2"),
            ("::ffff:10.0.0.1", "10.0.0.1", "::ffff:10.0.0.2"),
            ("no address", "no address", "testclient"),
            ("", "", "::1"),
        ],
    )
    def test_what_counts_as_one_address(self, guessing: str, same: str, other: str) -> None:
        """A network of IPv6, and an address of IPv4 in either form: `::` listens to both."""
        attempts = FailedSignIns()
        for number in range(20):
            attempts.failed(guessing.format(number))
        assert attempts.wait(same) == 3
        assert attempts.wait(other) == 0

    def test_memory_is_bounded(self) -> None:
        """Addresses that have not failed for longest are dropped, not the one that guesses now."""
        attempts = FailedSignIns()
        for number in range(10_000):
            attempts.failed(f"10.0.{number // 256}.{number % 256}")
            if number % 1_000 == 0:
                for _ in range(20):
                    attempts.failed("10.1.0.0")
        assert len(attempts) == 4096
        for _ in range(20):
            attempts.failed("10.0.39.15")
        assert [attempts.wait(f"10.{each}") > 0 for each in ("1.0.0", "0.39.15")] == [True, True]

    def test_sessions_are_bounded(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(access, "_MOST_SESSIONS", 200)
        kept = Sessions(3600.0)
        first = kept.begin("operator")
        of_one = [kept.begin("one") for _ in range(100)]
        assert len(kept) == 65
        assert kept.find(of_one[0]) is None
        assert kept.find(of_one[-1]) == "one"
        assert kept.find(first) == "operator"
        of_all = [kept.begin(f"key {number}") for number in range(500)]
        assert len(kept) == 200
        assert kept.find(first) is kept.find(of_all[299]) is None
        assert (kept.find(of_all[300]), kept.find(of_all[-1])) == ("key 300", "key 499")
        assert kept.find("") is None
