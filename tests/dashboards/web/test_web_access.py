"""Who is let in, and what is tried by those who are not."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pytest
from conftest import SHORT
from starlette.testclient import TestClient

from mast_trace.exceptions import ConfigurationError
from mast_trace_collector import security
from mast_trace_collector.rights import Right
from mast_trace_collector.security import ProjectKeys, new_key
from mast_trace_dashboards.up_config import UpConfig
from mast_trace_dashboards.web import sessions
from mast_trace_dashboards.web.access import COOKIE, Access
from mast_trace_dashboards.web.app import web_app
from mast_trace_dashboards.web.sessions import Attempts, Sessions
from mast_trace_dashboards.web.sign_in import local_place
from mast_trace_dashboards.web_config import WebConfig
from mast_trace_judge.labels import labels_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from starlette.types import ASGIApp, Message

    from mast_trace_collector.storage import Store

TOKEN = "the operator's token"
PROXY, STRANGER = "10.1.2.3", "203.0.113.9"
NAME = "trace.example.org"
USER = "x-auth-request-email"
HTML = {"accept": "text/html"}
ALL = frozenset({Right.READ, Right.LABEL})


class View:
    """A view with a token, a key of the project without name, and a trusted proxy."""

    def __init__(self, store: Store, folder: Path, **settings: Any) -> None:
        self.file = folder / "keys"
        (self.key, self.line), (self.sender, senders) = new_key("p", ALL), new_key("p")
        self.file.write_text(f"{self.line}\n{senders}\n")
        given = {
            "web_token": TOKEN,
            "web_public_names": NAME,
            "web_trusted_proxies": "10.1.0.0/16, 2001:db8::/32",
            "web_user_header": "X-Auth-Request-Email",
            **settings,
        }
        self.access = Access(WebConfig.load(**given), ProjectKeys(self.file))
        self.app: ASGIApp = web_app(store, self.access)

    def client(self, peer: str = STRANGER, *, https: bool = False, **headers: str) -> TestClient:
        """Return a browser that comes from an address."""
        shown = {name.replace("_", "-"): value for name, value in headers.items()}
        scheme = "https" if https else "http"
        return TestClient(
            self.app,
            base_url=f"{scheme}://{NAME}",
            client=(peer, 4711),
            headers=shown,
            follow_redirects=False,
        )

    def signed_in(self, key: str = "", **options: Any) -> TestClient:
        client = self.client(**options)
        answer = client.post("/sign-in", data={"key": key or self.key})
        assert answer.status_code == 303
        return client


async def answer_to(app: ASGIApp, path: str, peer: str = STRANGER, **headers: str | bytes) -> bytes:
    """Return status and body of a request that no client has tidied up."""
    told = {"host": NAME, "accept": "text/html", **headers}
    pairs = [
        (name.replace("_", "-").encode(), value if isinstance(value, bytes) else value.encode())
        for name, value in told.items()
    ]
    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "scheme": "http",
        "headers": pairs,
        "client": (peer, 4711),
        "server": (NAME, 80),
    }
    sent: list[bytes] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        sent.append(str(message["status"]).encode() if "status" in message else message["body"])

    await app(scope, receive, send)
    return b" ".join(sent)


@pytest.fixture
def view(store: Store, tmp_path: Path) -> View:
    return View(store, tmp_path)


@pytest.fixture
def quick_reload(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(security, "_RELOAD_SECONDS", 0.0)


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
        """Neither one that the visitor's browser was given by somebody else, nor the last one."""
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


class TestForgery:
    """Requests that another page makes a visitor's browser send."""

    @pytest.mark.parametrize(
        "headers",
        [
            {"origin": "https://evil.example"},
            {"origin": "null"},
            {"origin": f"http://{NAME}.evil.example"},
            {"origin": f"http://{NAME}@evil.example"},
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
        """Nor, once inside, out of a folder. The paths arrive as they are written, or decoded."""
        for shown in ("", TOKEN):
            for written in (path, unquote(path)):
                answer = await answer_to(view.app, written, authorization=f"Bearer {shown}")
                assert answer.startswith((b"401", b"404")), written
                assert b"How the judge is doing" not in answer
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


class TestProxies:
    """A header names the user, if it comes from where it may."""

    def test_a_trusted_proxy_names_the_user(self, view: View, store: Store) -> None:
        for peer in (PROXY, f"::ffff:{PROXY}", "2001:db8::7"):
            with view.client(peer, **{USER: "ada@example.org"}) as client:
                page = client.get(f"/runs/{SHORT}").text
                assert "As ada@example.org" in page
                assert "Your name" not in page
                assert "Sign out" not in page
        form = {"annotator": "mallory", "outcome": "failure", "note": "from the proxy"}
        with view.client(PROXY, **{USER: "ada@example.org"}) as client:
            assert client.post(f"/runs/{SHORT}/label", data=form).status_code == 303
        names = {each.annotator for each in labels_of(store, SHORT) if each.note == form["note"]}
        assert names == {"ada@example.org"}

    @pytest.mark.parametrize(
        "headers",
        [
            {},
            {"x_forwarded_for": PROXY},
            {"forwarded": f"for={PROXY}"},
            {"x_real_ip": PROXY},
            {"via": "1.1 proxy", "x_forwarded_proto": "https"},
        ],
    )
    @pytest.mark.parametrize("peer", [STRANGER, "127.0.0.1", "::1", "10.2.0.1", "testclient", ""])
    def test_nobody_else_does(self, view: View, peer: str, headers: dict[str, str]) -> None:
        with view.client(peer, **{USER: "admin@example.org"}, **headers) as client:
            assert client.get("/").status_code == 401

    def test_a_strangers_header_does_not_name_a_key_holder(self, view: View) -> None:
        with view.signed_in(TOKEN) as client:
            page = client.get(f"/runs/{SHORT}", headers={USER: "admin@example.org"}).text
            assert "admin@example.org" not in page
            assert "Your name" in page

    async def test_what_is_not_one_name_is_refused(self, view: View) -> None:
        raw: dict[str, str | bytes] = {USER: b"\xff\xfe"}
        assert (await answer_to(view.app, "/", PROXY, **raw)).startswith(b"400")
        with view.client(PROXY) as client:
            two = [(USER, "ada"), (USER, "admin")]
            assert client.get("/", headers=two).status_code == 400
            for value in ("x" * 300, "a\x7fb"):
                assert client.get("/", headers=[(USER, value)]).status_code == 400
            for value in ("", "  "):
                assert client.get("/", headers={USER: value}).status_code == 401
            named = client.get(f"/runs/{SHORT}", headers=[(USER, "Zoë <b>".encode())]).text
            assert "As Zoë &lt;b&gt;" in named

    def test_the_proxys_word_counts_more_than_a_cookie(self, view: View) -> None:
        """Somebody who signed in with a key before is who the proxy says."""
        with view.signed_in(peer=PROXY) as client:
            assert "Project <strong>p" in client.get("/judge").text
            shown = client.get("/judge", headers={USER: "ada"}).text
            assert "Project <strong>" not in shown
            assert "ada" in shown

    def test_the_proxy_may_name_a_project(self, store: Store, tmp_path: Path) -> None:
        view = View(store, tmp_path, web_project_header="X-Project", web_rights="read")
        with view.client(PROXY, **{USER: "ada"}) as client:
            page = client.get("/judge", headers={"x-project": "p"}).text
            assert "Project <strong>p</strong>" in page
            for wrong in ("", "p,q", "p q", "../p", "p" * 65):
                assert client.get("/judge", headers={"x-project": wrong}).status_code == 403
            twice = [("x-project", "p"), ("x-project", "q")]
            assert client.get("/judge", headers=twice).status_code == 400
            assert client.get("/judge").status_code == 403
            answer = client.post(f"/runs/{SHORT}/label", headers={"x-project": "p"})
            assert answer.status_code == 403

    def test_the_header_is_not_seen_behind_the_door(self, view: View) -> None:
        scope = {"type": "http", "headers": [(b"X-Auth-Request-EMAIL", b"a"), (b"accept", b"b")]}
        assert view.access.proxies.without_headers(scope)["headers"] == [(b"accept", b"b")]


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
        attempts, now = Attempts(), time.monotonic()
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
        attempts = Attempts()
        for number in range(40):
            attempts.failed(f"2001:db8::{number:x}")
        assert attempts.wait("2001:db8::ffff") > 0
        assert attempts.wait("2001:db8:0:1::") == 0

    def test_memory_is_bounded(self) -> None:
        attempts = Attempts()
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


class TestOpen:
    """A view on loopback without a token asks nobody, as before."""

    @pytest.fixture
    def keys_file(self, tmp_path: Path) -> Iterator[Path]:
        file = tmp_path / "keys"
        self.key, line = new_key("p", ALL)
        file.write_text(line)
        return file

    @pytest.mark.parametrize(
        ("settings", "beside"),
        [
            ({}, False),
            ({}, True),
            ({"web_host": "::1"}, True),
        ],
    )
    def test_without_keys(self, settings: dict[str, Any], beside: bool) -> None:
        access = Access.of(WebConfig.load(**settings), None, open_beside_keys=beside)
        assert access.is_open

    def test_with_keys_only_where_that_was_so_before(self, keys_file: Path) -> None:
        assert Access.of(WebConfig.load(), keys_file, open_beside_keys=True).is_open
        assert not Access.of(WebConfig.load(), keys_file, open_beside_keys=False).is_open

    @pytest.mark.parametrize(
        "settings",
        [
            {"web_token": "t"},
            {"web_host": "0.0.0.0"},
            {"web_public_names": NAME},
            {"web_trusted_proxies": PROXY, "web_user_header": USER, "web_public_names": NAME},
        ],
    )
    def test_never_where_others_could_come(self, keys_file: Path, settings: dict[str, str]) -> None:
        config = WebConfig.load(**settings)
        assert not Access.of(config, keys_file, open_beside_keys=True).is_open

    @pytest.mark.parametrize(
        "settings", [{"web_host": "0.0.0.0"}, {"web_host": "::"}, {"web_public_names": NAME}]
    )
    def test_nothing_is_served_to_strangers(self, settings: dict[str, str]) -> None:
        with pytest.raises(ConfigurationError, match="MAST_TRACE_WEB_TOKEN"):
            Access.of(WebConfig.load(**settings), None, open_beside_keys=True)

    def test_a_key_that_is_shown_counts_all_the_same(self, store: Store, keys_file: Path) -> None:
        access = Access.of(WebConfig.load(), keys_file, open_beside_keys=True)
        app = web_app(store, access)
        with TestClient(app, base_url="http://localhost", client=("127.0.0.1", 1)) as client:
            assert "Project <strong>" not in client.get("/judge").text
            shown = {"authorization": f"Bearer {self.key}"}
            assert "Project <strong>p" in client.get("/judge", headers=shown).text
            wrong = {"authorization": "Bearer wrong"}
            assert client.get("/judge", headers=wrong).status_code == 401
            assert client.get("/", headers={"host": "evil.example"}).status_code == 421


class TestSettings:
    """The settings of the view, where they stood before and what cannot be."""

    def test_the_table_of_before_still_counts(self, tmp_path: Path) -> None:
        file = tmp_path / "mast-trace.toml"
        file.write_text('[up]\nweb_port = 1\nweb_host = "::1"\n[web]\nweb_port = 2\n')
        config = WebConfig.load(file)
        assert (config.web_port, config.web_host) == (2, "::1")
        origins = {each.name: each.origin for each in config.effective()}
        assert origins["web_host"] == origins["web_port"] == str(file)
        assert origins["web_token"] == "default"
        assert UpConfig.load(file).clickhouse_port == 8123
        file.write_text("[up]\nweb_hots = 1\n")
        with pytest.raises(ConfigurationError, match="no setting web_hots"):
            UpConfig.load(file)

    @pytest.mark.parametrize(
        "written",
        [
            'web_trusted_proxies = ["10.0.0.0/8", "::1"]\nweb_public_names = ["a", "B."]',
            'web_trusted_proxies = "10.0.0.0/8 , ::1,"\nweb_public_names = "a, B."',
        ],
    )
    def test_lists_are_lists_or_texts(self, tmp_path: Path, written: str) -> None:
        file = tmp_path / "mast-trace.toml"
        file.write_text(f'[web]\n{written}\nweb_user_header = "X-User"\n')
        config = WebConfig.load(file)
        assert list(map(str, config.trusted_proxies)) == ["10.0.0.0/8", "::1/128"]
        assert config.public_names == {"a", "b"}

    @pytest.mark.parametrize(
        ("settings", "said"),
        [
            ({"web_user_header": "X-User"}, "set together"),
            ({"web_trusted_proxies": "::1", "web_user_header": "X-User"}, "web_public_names"),
            ({"web_trusted_proxies": "all"}, "does not appear to be"),
            ({"web_rights": "read,write"}, "read,label"),
            ({"web_rights": "admin"}, "no right"),
            ({"web_project_header": "X Project"}, "no name of a header"),
            ({"web_tls_cert_file": "/x"}, "together"),
            ({"web_session_hours": 0}, "greater than 0"),
        ],
    )
    def test_what_cannot_be_is_named(self, settings: dict[str, Any], said: str) -> None:
        with pytest.raises(ConfigurationError, match=said):
            WebConfig.load(**settings)
