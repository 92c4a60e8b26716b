"""`mast-trace web` as a process of its own, beside a running `mast-trace up`, as people start it."""

from __future__ import annotations

import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx
import pytest
from certificates import self_signed
from end_to_end.up_process import wait_for

from mast_trace_collector.security import Right, new_key
from mast_trace_dashboards.cli.app import run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.end_to_end

TOKEN = "operators-token-of-the-test"
ALL = frozenset({Right.WRITE, Right.READ, Right.LABEL})
TRACE = "ab" * 16


@contextmanager
def started(folder: Path, name: str, *arguments: str, **variables: str) -> Iterator[Any]:
    """Run a command until it is ready; yield its process with `addresses` and the `log` file."""
    ready, log = folder / f"{name}.json", folder / f"{name}.log"
    ready.unlink(missing_ok=True)
    command = [sys.executable, "-m", "mast_trace_dashboards", *arguments]
    inherited = {
        key: value for key, value in os.environ.items() if not key.startswith("MAST_TRACE")
    }
    with log.open("ab") as output:
        process: Any = subprocess.Popen(
            [*command, "--ready-file", str(ready)],
            stdout=output,
            stderr=output,
            env={**inherited, **variables},
        )
    try:
        while not ready.exists():
            assert process.poll() is None, log.read_text()
            time.sleep(0.05)
        process.addresses, process.log, process.ready = json.loads(ready.read_text()), log, ready
        yield process
    finally:
        process.terminate()
        process.wait(60)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("web-process")


@pytest.fixture(scope="module")
def keys(folder: Path) -> dict[str, str]:
    """Keys of two projects."""
    made = {project: new_key(project, ALL) for project in ("ours", "theirs")}
    (folder / "keys").write_text("\n".join(line for _, line in made.values()))
    return {project: key for project, (key, _) in made.items()}


def up(folder: Path) -> Any:
    ports = [
        word for port in ("http", "grpc", "clickhouse", "web") for word in (f"--{port}-port", "0")
    ]
    options = ("--no-judge", "--data-dir", str(folder / "data"))
    return started(folder, "up", "up", *ports, *options, MAST_TRACE_KEYS_FILE=str(folder / "keys"))


@pytest.fixture(scope="module")
def running(folder: Path, keys: dict[str, str]) -> Iterator[Any]:
    """A `mast-trace up` with a run of each project."""
    with up(folder) as process:
        for number, (project, key) in enumerate(keys.items()):
            send(process.addresses["otlp_http"], key, f"{number}{TRACE[1:]}", f"of {project}")
        yield process


def send(address: str, key: str, trace: str, name: str) -> None:
    span = {
        "traceId": trace,
        "spanId": "cd" * 8,
        "name": name,
        "startTimeUnixNano": str(time.time_ns()),
    }
    body = {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}
    answer = httpx.post(
        f"{address}/v1/traces", json=body, headers={"authorization": f"Bearer {key}"}, timeout=60
    )
    assert answer.status_code == 200


def web(folder: Path, *arguments: str, **variables: str) -> Any:
    given = {
        "MAST_TRACE_WEB_TOKEN": TOKEN,
        "MAST_TRACE_KEYS_FILE": str(folder / "keys"),
        **variables,
    }
    place = () if "--url" in arguments else ("--data-dir", str(folder / "data"))
    return started(folder, "web", "web", "--port", "0", *place, *arguments, **given)


def test_it_serves_beside_a_running_up(running: Any, folder: Path, keys: dict[str, str]) -> None:
    with web(folder) as view, httpx.Client(base_url=view.addresses["web"], timeout=60) as client:
        assert TOKEN not in json.dumps(view.addresses)
        assert client.get("/healthz").text == "ok\n"
        assert client.get("/readyz").json() == {"ready": True, "reason": ""}
        assert client.get("/").status_code == 401
        assert client.get(f"/?token={keys['ours']}").status_code == 401
        assert client.post("/sign-in", data={"key": keys["ours"]}).status_code == 303
        listed = wait_for(lambda: (page := client.get("/").text) and "of ours" in page and page)
        assert "of theirs" not in listed
        run = f"/runs/0{TRACE[1:]}"
        form = {"annotator": "ada", "outcome": "failure", "note": "seen"}
        assert client.post(f"{run}/label", data=form).status_code == 303
        assert "ada: failure" in client.get(run).text
        assert client.get(f"/runs/1{TRACE[1:]}").status_code == 404
        shown = {"authorization": f"Bearer {TOKEN}"}
        everything = httpx.get(f"{view.addresses['web']}/", headers=shown, timeout=60).text
        assert "of ours" in everything
        assert "of theirs" in everything
        view.send_signal(signal.SIGTERM)
        assert view.wait(60) == 0
        assert not view.ready.exists()
        log = view.log.read_text()
    assert "Traceback" not in log
    for secret in (TOKEN, *keys.values()):
        assert secret not in log


def test_paths_and_headers_as_they_come_over_the_wire(running: Any, folder: Path) -> None:
    """No client between tidies them up."""
    with web(folder) as view:
        address = urlsplit(view.addresses["web"])

        def ask(request: str) -> bytes:
            with socket.create_connection((address.hostname or "", address.port or 0), 20) as wire:
                wire.sendall(request.replace("\n", "\r\n").encode("latin-1"))
                return b"".join(iter(lambda: wire.recv(65536), b""))

        host = f"Host: {address.netloc}\nConnection: close\n"
        for path in (
            "/static/../judge",
            "/%2e%2e/judge",
            "//judge",
            "/healthz/../judge",
            "/.",
            "*",
        ):
            answer = ask(f"GET {path} HTTP/1.1\n{host}\n")
            assert b" 200 " not in answer.splitlines()[0], path
            assert b"judge is doing" not in answer
        absolute = ask(f"GET http://evil.example/judge HTTP/1.1\n{host}\n")
        assert b" 200 " not in absolute.splitlines()[0]
        assert b" 400 " in ask(f"GET / HTTP/1.1\n{host}Host: evil.example\n\n").splitlines()[0]
        assert b" 400 " in ask("GET / HTTP/1.0\nConnection: close\n\n").splitlines()[0]
        for method in ("TRACE", "OPTIONS", "PUT"):
            assert b" 200 " not in ask(f"{method} / HTTP/1.1\n{host}\n").splitlines()[0]


def test_it_outlives_its_database(folder: Path, keys: dict[str, str], running: Any) -> None:
    """While `up` is away it is alive and not ready, and says so in words that tell nothing else."""
    url = running.addresses["owner"]
    with web(folder, "--url", url) as view, httpx.Client(base_url=view.addresses["web"]) as client:
        assert client.get("/readyz", timeout=60).status_code == 200
        running.terminate()
        running.wait(60)
        wait_for(lambda: client.get("/readyz", timeout=60).status_code == 503)
        told = client.get("/readyz", timeout=60).text
        assert "does not answer" in told
        assert "127.0.0.1" not in told
        assert client.get("/healthz").status_code == 200
        shown = {"authorization": f"Bearer {keys['ours']}"}
        answer = client.get("/", headers=shown, timeout=60)
        assert answer.status_code == 503
        assert "127.0.0.1" not in answer.text
        view.send_signal(signal.SIGTERM)
        assert view.wait(60) == 0


def test_without_a_running_up_it_says_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a running `up`, `web` refuses: it would lock the folder, so that no `up` could start."""
    monkeypatch.delenv("MAST_TRACE_DATABASE_URL", raising=False)
    (tmp_path / "clickhouse").mkdir()
    assert run(["web", "--data-dir", str(tmp_path), "--port", "0"]) == 2
    printed = capsys.readouterr().err
    assert "no `mast-trace up` is running" in printed
    assert "--url" in printed


def test_strangers_are_not_served(capsys: pytest.CaptureFixture[str]) -> None:
    address = ("--url", "http://127.0.0.1:9/x")
    assert run(["web", *address, "--host", "0.0.0.0", "--port", "0"]) == 2
    assert "could be read by anyone" in capsys.readouterr().err


def test_a_server_that_is_away_does_not_keep_it_from_starting(folder: Path) -> None:
    """In a cluster nobody knows which of the two comes first."""
    with web(folder, "--url", "http://127.0.0.1:9/x") as view:
        assert httpx.get(f"{view.addresses['web']}/healthz").status_code == 200
        assert httpx.get(f"{view.addresses['web']}/readyz", timeout=60).status_code == 503


def test_it_speaks_tls_itself(folder: Path, keys: dict[str, str]) -> None:
    """The cookie is then one that no other host can set, and that goes over TLS alone."""
    cert, key = self_signed(folder)
    files = {"MAST_TRACE_WEB_TLS_CERT_FILE": str(cert), "MAST_TRACE_WEB_TLS_KEY_FILE": str(key)}
    trust = ssl.create_default_context(cafile=cert)
    with web(folder, "--url", "http://127.0.0.1:9/x", **files) as view:
        address = view.addresses["web"]
        assert address.startswith("https://")
        answer = httpx.post(f"{address}/sign-in", data={"key": keys["ours"]}, verify=trust)
        assert answer.status_code == 303
        assert answer.headers["set-cookie"].startswith("__Host-mast-trace-session=")
        assert "Secure" in answer.headers["set-cookie"]


def test_its_settings_are_listed_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["config", "--json"]) == 0
    tables = json.loads(capsys.readouterr().out)
    listed = [setting["name"] for table in tables.values() for setting in table]
    ours = [name for name in listed if name.startswith("web_") or name == "keys_file"]
    assert len(ours) == len(set(ours)) > 10
    assert {name for name in ours if name != "keys_file"} == {
        setting["name"] for setting in tables["web"]
    }
