"""Every route, asked by every kind of visitor: who may do what is decided before the database is asked."""

from __future__ import annotations

import re
from contextlib import nullcontext
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from guarded_view import PROXY, TOKEN, USER, View
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.routing import Mount, Route

from mast_trace_collector.security import Right
from mast_trace_dashboards.mcp_server.endpoint import MCPEndpoint, _annotator
from mast_trace_dashboards.web.filters import read_form
from mast_trace_dashboards.web.guard import _HEADERS
from mast_trace_dashboards.web.visitor import OPERATOR, Visitor, admit

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from starlette.testclient import TestClient

    from mast_trace_collector.storage import Store

OPEN = {"/sign-in", "/healthz", "/readyz"}
LABELLING = {
    ("POST", "/runs/{run:str}/label"),
    ("POST", "/patterns/{pattern:str}/state"),
    ("GET", "/queue/next"),
}
READ, LABEL = frozenset({Right.READ}), frozenset({Right.LABEL})
RIGHTS = [READ, READ | LABEL, LABEL, frozenset({Right.WRITE, Right.LABEL}), frozenset(Right)]
WRITES = {
    "label_run": {"run": "last", "note": "x"},
    "record_outcome": {"run": "last", "outcome": "success"},
    "acknowledge_pattern": {"pattern": "x"},
}


def routes(view: View) -> Iterator[tuple[str, str]]:
    """Every method and path that the view knows, what is mounted included."""
    app: Any = view.app
    for route in app._app.routes:
        if isinstance(route, Route) and route.methods:
            yield from ((method, route.path) for method in sorted(route.methods - {"HEAD"}))
        elif isinstance(route, Mount) and route.path == "/mcp":
            yield from (("DELETE", "/mcp"), ("POST", "/mcp"))


def send(client: TestClient, method: str, path: str) -> Any:
    return client.request(method, re.sub(r"\{.*?\}", "x", path))


@pytest.fixture
def endpoint(away: Store) -> MCPEndpoint:
    return MCPEndpoint(away, writes=True)


@pytest.fixture
def door(away: Store, tmp_path: Path, endpoint: MCPEndpoint) -> View:
    """A view on a database that does not answer, with the MCP endpoint."""
    return View(away, tmp_path, {"/mcp": endpoint})


@pytest.fixture
def of_rights(
    door: View, request: pytest.FixtureRequest, away: Store, tmp_path: Path, endpoint: MCPEndpoint
) -> tuple[View, TestClient]:
    """The view and a visitor with these rights, shown by a key, held by a session, or named by a proxy."""
    way, rights = request.param
    named = ",".join(right.value for right in rights)
    if way == "proxy":
        view = View(away, tmp_path, {"/mcp": endpoint}, web_rights=named)
        return view, view.client(PROXY, **{USER: "ada"})
    client = door.signed_in() if way == "session" else door.client()
    door.file.write_text(door.line.replace("read,label", named))
    if way == "key":
        client.headers["authorization"] = f"Bearer {door.key}"
    return door, client


@pytest.mark.usefixtures("quick_reload")
@pytest.mark.parametrize(
    "of_rights",
    [(way, rights) for way in ("key", "session") for rights in RIGHTS]
    + [("proxy", rights) for rights in RIGHTS[:3]],
    indirect=True,
    ids=lambda given: f"{given[0]}-{'-'.join(sorted(given[1]))}",
)
def test_each_act_needs_its_right(
    of_rights: tuple[View, TestClient], request: pytest.FixtureRequest, endpoint: MCPEndpoint
) -> None:
    """Also where a session began with more rights than its key has by now."""
    view, client = of_rights
    way, rights = request.node.callspec.params["of_rights"]
    allowed = 0
    with client:
        for method, path in routes(view):
            if path in OPEN or path == "/sign-out":
                continue
            status = send(client, method, path).status_code
            if path == "/settings":  # the operator's
                assert status == 403
                continue
            needed = {Right.READ} | ({Right.LABEL} if (method, path) in LABELLING else set())
            assert (status == 403) == (not needed <= rights), (method, path)
            assert status not in (401, 429), (method, path)
            allowed += status != 403
        assert allowed == (0 if Right.READ not in rights else 32 if Right.LABEL in rights else 29)
        # A session can be left, whatever is left of it.
        signed_out = client.post("/sign-out").status_code
        assert signed_out == (403 if way == "key" and Right.READ not in rights else 303)
        assert client.portal
        client.portal.call(endpoint.stop)


@pytest.mark.parametrize("accept", ["text/html", "application/json", "*/*"])
@pytest.mark.parametrize("shown", [{}, {"cookie": "mast-trace-session=x"}, {USER: "ada"}])
def test_strangers_see_the_door_alone(door: View, accept: str, shown: dict[str, str]) -> None:
    with door.client(accept=accept) as client:
        for method, path in routes(door):
            status = client.request(method, path, headers=shown).status_code
            if path not in OPEN:
                assert status == 401, (method, path)


def test_pages_load_nothing_from_elsewhere_and_are_not_kept(door: View) -> None:
    """Every answer says so; files that are the same for everybody may be kept."""
    assert "unsafe" not in _HEADERS["content-security-policy"]
    assert _HEADERS["content-security-policy"].startswith("default-src 'none'; script-src 'self'; ")
    assert _HEADERS["content-security-policy"].endswith("; frame-ancestors 'none'")
    expected = {"x-content-type-options": "nosniff", "referrer-policy": "same-origin"}
    expected |= {"cache-control": "no-store", "cross-origin-opener-policy": "same-origin"}
    assert expected.items() <= _HEADERS.items()
    with door.client() as stranger, door.signed_in() as client:
        for asking, (method, path) in ((s, r) for r in routes(door) for s in (stranger, client)):
            if path != "/mcp":
                answer = send(asking, method, path)
                assert _HEADERS.items() <= answer.headers.items(), path
        kept = stranger.get("/static/style.css")
        assert "no-store" not in kept.headers.get("cache-control", "")
        assert _HEADERS["x-content-type-options"] == kept.headers["x-content-type-options"]


class TestMCP:
    """The tools of the MCP endpoint, which has no route for each."""

    @pytest.fixture
    def call(self, door: View, endpoint: MCPEndpoint) -> Iterator[Any]:
        """Call a method of the protocol; returns its result."""
        with door.client(accept="application/json, text/event-stream") as client:

            def call(key: str, method: str, **params: Any) -> Any:
                told = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
                shown = {"authorization": f"Bearer {key}"}
                return client.post("/mcp", json=told, headers=shown).json()["result"]

            yield call
            assert client.portal
            client.portal.call(endpoint.stop)

    @pytest.mark.usefixtures("quick_reload")
    @pytest.mark.parametrize("tool", WRITES)
    def test_tools_that_write_need_the_label_right(self, door: View, call: Any, tool: str) -> None:
        """The database's own words are for the operator."""
        asked = {"name": tool, "arguments": WRITES[tool]}
        answers = [call(key, "tools/call", **asked) for key in (door.key, TOKEN)]
        door.file.write_text(door.line.replace("read,label", "read,write,metrics"))
        refused = call(door.key, "tools/call", **asked)
        texts = [each["content"][0]["text"] for each in (*answers, refused)]
        assert all(each["isError"] for each in (*answers, refused))
        assert ["does not answer" in each for each in texts] == [True, True, False]
        assert ["127.0.0.1:9" in each for each in texts] == [False, True, False]
        assert "You lack the right to label here" in texts[2]

    @pytest.mark.parametrize("writes", [True, False])
    def test_they_are_there_where_the_operator_lets_them(
        self, door: View, call: Any, endpoint: MCPEndpoint, writes: bool
    ) -> None:
        endpoint._writes = writes
        listed = {tool["name"] for tool in call(TOKEN, "tools/list")["tools"]}
        assert listed & WRITES.keys() == (WRITES.keys() if writes else set())
        assert len(listed - WRITES.keys()) == 13

    @pytest.mark.parametrize(
        ("visitor", "name"),
        [
            (OPERATOR, "operator (MCP)"),
            (Visitor("ours"), "ours (MCP)"),
            (Visitor("ours", user="ada"), "ada (MCP)"),
            (Visitor(None, user="ada"), "ada (MCP)"),
        ],
    )
    def test_an_opinion_is_kept_under_its_holders_name(self, visitor: Visitor, name: str) -> None:
        scope: dict[str, Any] = {"type": "http"}
        admit(scope, visitor)
        context: Any = SimpleNamespace(request_context=SimpleNamespace(request=Request(scope)))
        assert _annotator(context) == name


@pytest.mark.parametrize(
    ("body", "refused"),
    [
        (b"a=" + b"x" * (64 * 1024 - 2), ""),
        (b"a=" + b"x" * (64 * 1024 - 1), "^413"),
        (b"&".join([b"a=1"] * 100), ""),
        (b"&".join([b"a=1"] * 101), "^400"),
    ],
)
async def test_a_form_is_read_up_to_its_limits(body: bytes, refused: str) -> None:
    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body}

    request = Request({"type": "http", "method": "POST", "headers": []}, receive)
    with pytest.raises(HTTPException, match=refused) if refused else nullcontext():
        assert (await read_form(request))["a"]
