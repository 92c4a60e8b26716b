"""Proxies that tell who their user is, views that are open, and settings of both that are refused."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from guarded_view import ALL, NAME, PROXY, STRANGER, TOKEN, USER, View, answer_to
from starlette.testclient import TestClient
from web_runs import SHORT

from mast_trace.exceptions import ConfigurationError
from mast_trace_collector.security import new_key
from mast_trace_dashboards.local.announcement import UpConfig
from mast_trace_dashboards.web.access import Access
from mast_trace_dashboards.web.app import web_app
from mast_trace_dashboards.web.config import WebConfig
from mast_trace_judge.store.labels import labels_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mast_trace_collector.storage import Store


def _found(path: str, status: int) -> int:
    """Status of a page that there may not be, for those who are let in."""
    return 404 if path == "/nowhere" and status == 200 else status


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

    @pytest.mark.parametrize("named", ["::ffff:10.1.2.3", "::ffff:10.1.0.0/112"])
    def test_a_proxy_may_be_named_as_ipv6(self, away: Store, tmp_path: Path, named: str) -> None:
        view = View(away, tmp_path, web_trusted_proxies=named)
        for peer, status in ((PROXY, 200), (f"::ffff:{PROXY}", 200), ("10.2.2.3", 401)):
            with view.client(peer, **{USER: "ada@example.org"}) as client:
                assert client.get("/runbooks").status_code == status

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
    def test_nobody_else_does(self, door: View, peer: str, headers: dict[str, str]) -> None:
        with door.client(peer, **{USER: "admin@example.org"}, **headers) as client:
            assert client.get("/").status_code == 401

    @pytest.mark.parametrize(
        ("host", "status"),
        [
            (NAME, 200),
            (f"{NAME.upper()}.:443", 200),
            ("127.0.0.1", 403),
            ("127.0.0.1:8680", 403),
            ("localhost", 403),
            ("LocalHost.", 403),
            ("[::1]:8680", 403),
            (f"{NAME}.evil.example", 421),
            ("", 421),
        ],
    )
    @pytest.mark.parametrize("path", ["/runbooks", "/nowhere"])
    def test_a_public_name_is_needed(self, door: View, host: str, status: int, path: str) -> None:
        """A program beside the proxy reaches the view under a name of this machine."""
        with door.client(PROXY, host=host, **{USER: "ada"}) as client:
            assert client.get(path).status_code == _found(path, status)
            # With a key it is the key's, as for everybody.
            bearer = {"authorization": f"Bearer {door.key}", USER: ""}
            answer = client.get(path, headers=bearer)
            assert answer.status_code == _found(path, 421 if status == 421 else 200)

    def test_a_strangers_header_does_not_name_a_key_holder(self, door: View) -> None:
        with door.signed_in(TOKEN) as client:
            page = client.get("/runbooks", headers={USER: "admin@example.org"}).text
            assert "admin@example.org" not in page
            assert "Sign out" in page

    async def test_what_is_not_one_name_is_refused(self, door: View) -> None:
        raw: dict[str, str | bytes] = {USER: b"\xff\xfe"}
        assert (await answer_to(door.app, "/", PROXY, **raw)).startswith(b"400")
        with door.client(PROXY) as client:
            two = [(USER, "ada"), (USER, "admin")]
            assert client.get("/", headers=two).status_code == 400
            for value in ("x" * 257, "a\x7fb"):
                assert client.get("/", headers=[(USER, value)]).status_code == 400
            for value in ("", "  "):
                assert client.get("/", headers={USER: value}).status_code == 401
            for name, shown in (("Zoë <b>", "Zoë &lt;b&gt;"), ("x" * 256, "x" * 256)):
                named = client.get("/runbooks", headers=[(USER, name.encode())]).text
                assert f"<span>{shown}</span>" in named

    def test_the_proxys_word_counts_more_than_a_cookie(self, door: View) -> None:
        with door.signed_in(peer=PROXY) as client:
            assert "Project <strong>p" in client.get("/runbooks").text
            shown = client.get("/runbooks", headers={USER: "ada"}).text
            assert "Project <strong>" not in shown
            assert "ada" in shown

    @pytest.mark.parametrize(
        ("named", "status"),
        [
            *[([name], 200) for name in ("p", "p" * 64, "ü.x_y-1")],
            *[([name], 403) for name in ("", "p,q", "p q", "../p", "p" * 65)],
            ([], 403),
            (["p", "q"], 400),
            (["p", "p"], 400),
        ],
    )
    def test_the_proxy_may_name_a_project(
        self, away: Store, tmp_path: Path, named: list[str], status: int
    ) -> None:
        view = View(away, tmp_path, web_project_header="X-Project")
        with view.client(PROXY, **{USER: "ada"}) as client:
            headers = [("x-project", name.encode()) for name in named]
            answer = client.get("/runbooks?project=other", headers=headers)
            assert answer.status_code == status
            if status == 200:
                assert f"Project <strong>{named[0]}</strong>" in answer.text

    def test_the_header_is_not_seen_behind_the_door(self, door: View) -> None:
        names = (b"X-Auth-Request-EMAIL", b"x-project", b"accept")
        scope = {"type": "http", "headers": [(name, b"a") for name in names]}
        proxies = door.access.proxies
        for project, kept in (("", names[1:]), ("x-project", names[2:])):
            named = replace(proxies, project_header=project).without_headers(scope)
            assert named["headers"] == [(name, b"a") for name in kept]


class TestOpen:
    """A view on loopback without a token asks nobody, as before."""

    @pytest.fixture
    def keys_file(self, tmp_path: Path) -> Iterator[Path]:
        file = tmp_path / "keys"
        self.key, line = new_key("p", ALL)
        file.write_text(line)
        return file

    @pytest.mark.parametrize("beside", [False, True])
    @pytest.mark.parametrize("keys", [False, True])
    @pytest.mark.parametrize(
        ("settings", "local"),
        [
            ({}, True),
            ({"web_host": "::1"}, True),
            ({"web_token": "t"}, False),
            ({"web_host": "0.0.0.0"}, False),
            ({"web_public_names": NAME}, False),
            (
                {"web_trusted_proxies": PROXY, "web_user_header": USER, "web_public_names": NAME},
                False,
            ),
        ],
    )
    def test_only_where_nobody_else_could_come(
        self, keys_file: Path, settings: dict[str, str], local: bool, keys: bool, beside: bool
    ) -> None:
        """And with keys, only where that was so before."""
        config = WebConfig.load(**settings)
        nobody = (
            not keys and not local and not config.trusted_proxies and "web_token" not in settings
        )
        with pytest.raises(ConfigurationError) if nobody else nullcontext():
            access = Access.of(config, keys_file if keys else None, open_beside_keys=beside)
            assert access.is_open == (local and (beside or not keys))

    def test_a_key_that_is_shown_counts_all_the_same(self, away: Store, keys_file: Path) -> None:
        access = Access.of(WebConfig.load(), keys_file, open_beside_keys=True)
        app = web_app(away, access)
        with TestClient(app, base_url="http://localhost", client=("127.0.0.1", 1)) as client:
            assert "Project <strong>" not in client.get("/runbooks").text
            shown = {"authorization": f"Bearer {self.key}"}
            assert "Project <strong>p" in client.get("/runbooks", headers=shown).text
            wrong = {"authorization": "Bearer wrong"}
            assert client.get("/runbooks", headers=wrong).status_code == 401
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
        ("settings", "message"),
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
    def test_what_cannot_be_is_named(self, settings: dict[str, Any], message: str) -> None:
        with pytest.raises(ConfigurationError, match=message):
            WebConfig.load(**settings)
