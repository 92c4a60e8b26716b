"""A web view with a token, keys and a trusted proxy, and requests to it that no client has tidied up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.testclient import TestClient

from mast_trace_collector.security import ProjectKeys, Right, new_key
from mast_trace_dashboards.web.access import Access
from mast_trace_dashboards.web.app import web_app
from mast_trace_dashboards.web.config import WebConfig

if TYPE_CHECKING:
    from collections.abc import Mapping
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

    def __init__(
        self,
        store: Store,
        folder: Path,
        mounted: Mapping[str, ASGIApp] | None = None,
        **settings: Any,
    ) -> None:
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
        self.app: ASGIApp = web_app(store, self.access, mounted=mounted)

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
