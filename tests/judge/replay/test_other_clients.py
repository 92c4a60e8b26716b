"""Clients that a replay cannot answer are refused by name, and the network is closed to the program."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import socket
import subprocess
import sys
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest

from mast_trace.messages import Message
from mast_trace.replay.canonical import canonical_request
from mast_trace.replay.player import Player
from mast_trace.replay.program import ReplayFolder
from mast_trace.replay.tape import Exchange, Tape
from mast_trace_instrumentations.replay.model_paths import answerable, refused
from mast_trace_instrumentations.replay.other_clients import OtherClients, Unanswerable, _host

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TAPE = Tape("run", (Exchange("a", canonical_request([Message("x", role="user")]), Message("y")),))


@pytest.fixture
def player() -> Iterator[Player]:
    """A player whose patches of other clients are on."""
    player = Player(TAPE)
    clients = OtherClients(player)
    clients.start()
    try:
        yield player
    finally:
        clients.stop()


def divergence(player: Player) -> str:
    """Return the text of the divergence."""
    found = player.report().divergence
    assert found is not None
    assert found.kind == "unsupported"
    return found.text


@pytest.mark.parametrize(
    ("host", "path", "name"),
    [
        ("api.openai.com", "/v1/completions", "OpenAI's text completions"),
        ("api.openai.com", "/v1/embeddings", "embeddings"),
        ("g", "/v1beta/models/gemini-3:generateContent", "Google's generateContent"),
        ("g", "/v1beta/models/gemini-3:streamGenerateContent", "Google's generateContent"),
        ("g", "/v1/models/e:embedContent", "embeddings"),
        ("g", "/v1/projects/p/models/claude:streamRawPredict", "Vertex AI"),
        ("bedrock", "/model/anthropic.claude%3A0/converse-stream", "Bedrock"),
        ("bedrock", "/model/amazon.nova/invoke", "Bedrock"),
        ("localhost:11434", "/api/chat", "Ollama's own interface"),
        ("api.cohere.com", "/v2/chat", "Cohere's interface"),
        ("api.openai.com", "/v1/audio/speech", "audio"),
    ],
)
def test_model_interfaces_are_known_by_name(host: str, path: str, name: str) -> None:
    assert refused("POST", host, path) == name
    assert refused("GET", host, path) == ""
    assert answerable("POST", path) is None


@pytest.mark.parametrize(
    "path",
    ["/", "/api/chat", "/v1/chat", "/chat", "/v1/orders", "/model/x", "/v1/chat/completions"],
)
def test_other_requests_are_let_through(path: str) -> None:
    """Requests of tools, and those that are answered, are not refused by name."""
    assert refused("POST", "shop.example.com", path) == ""


def test_python_s_own_http_client_is_refused(player: Player) -> None:
    url = "http://127.0.0.1:9/v1/chat/completions?x=1"
    with pytest.raises(Unanswerable, match=r"by http\.client \(/v1/chat/completions\)"):
        urllib.request.urlopen(urllib.request.Request(url, b"{}"))
    assert "Only clients on httpx" in divergence(player)


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_requests_is_refused(player: Player, scheme: str) -> None:
    """Before it connects: the network is closed to most programs, and a secure host is asked last."""
    import requests

    with pytest.raises(Unanswerable, match="Bedrock"):
        requests.post(f"{scheme}://127.0.0.1:9/model/x/converse", json={}, timeout=1)
    assert "by urllib3 (Bedrock)" in divergence(player)


def test_aiohttp_is_refused(player: Player) -> None:
    aiohttp = pytest.importorskip("aiohttp")

    async def ask() -> None:
        async with aiohttp.ClientSession() as session:
            await session.post("http://127.0.0.1:9/v1/messages", json={})

    with pytest.raises(Unanswerable, match=r"by aiohttp \(/v1/messages\)"):
        asyncio.run(ask())
    assert "aiohttp" in divergence(player)


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("way", ["unary_unary", "unary_stream", "stream_unary", "stream_stream"])
def test_grpc_is_refused(player: Player, way: str, *, named: bool) -> None:
    """A model's service is refused by its name, whatever the channel; other services are not."""
    grpc = pytest.importorskip("grpc")
    service = "/google.ai.generativelanguage.v1.GenerativeService/GenerateContent"
    with grpc.insecure_channel("127.0.0.1:9") as channel:
        call = getattr(channel, way)
        call("/shop.Orders/List")
        assert player.report().divergence is None
        with pytest.raises(Unanswerable, match="gRPC"):
            call(method=service) if named else call(service)
    assert service in divergence(player)


@pytest.mark.parametrize(
    ("target", "host"),
    [
        ("example.com:443", "example.com"),
        ("dns:///example.com:443", "example.com"),
        ("ipv4:10.0.0.1:80", "10.0.0.1"),
        ("[::1]:50051", "::1"),
        ("example.com", "example.com"),
    ],
)
def test_hosts_of_grpc_targets(target: str, host: str) -> None:
    assert _host(target) == host


def test_afterwards_the_clients_are_as_they_were() -> None:
    before = http.client.HTTPConnection.putrequest
    clients = OtherClients(Player(TAPE))
    clients.start()
    assert http.client.HTTPConnection.putrequest is not before
    clients.stop()
    assert http.client.HTTPConnection.putrequest is before


ATTACK = """
import asyncio, json, socket, sys
import mast_trace
mast_trace.instrument(frameworks=[])

def attempt(name, call):
    try:
        call()
        tried[name] = "through"
    except BaseException as error:
        tried[name] = type(error).__name__ + ": " + str(error)

tried = {}
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
attempt("udp", lambda: udp.sendto(b"x", ("127.0.0.2", 9)))
attempt("udp6", lambda: socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).sendto(b"x", ("::1", 9)))
attempt("sendmsg", lambda: udp.sendmsg([b"x"], [], 0, ("127.0.0.2", 9)))
attempt("connect", lambda: socket.create_connection(("127.0.0.2", 9), 1))
attempt("connect_ex", lambda: socket.socket().connect_ex(("127.0.0.2", 9)))
attempt("lookup", lambda: socket.getaddrinfo("secret.example.com", 80))
attempt("lookup of bytes", lambda: socket.gethostbyname(b"secret.example.com"))
attempt("asyncio", lambda: asyncio.run(asyncio.open_connection("127.0.0.2", 9)))
attempt("asyncio name", lambda: asyncio.run(asyncio.open_connection("secret.example.com", 9)))
attempt("localhost", lambda: socket.getaddrinfo("localhost", 80))
attempt("allowed", lambda: udp.sendto(b"x", ("127.0.0.3", 9)))
left, right = socket.socketpair()
attempt("pair", lambda: left.send(b"x"))
path = sys.argv[1]
server = socket.socket(socket.AF_UNIX)
server.bind(path)
server.listen()
attempt("unix", lambda: socket.socket(socket.AF_UNIX).connect(path))
try:
    import grpc
    channel = grpc.insecure_channel(sys.argv[2])
    attempt("grpc", lambda: grpc.channel_ready_future(channel).result(2))
except ImportError:
    pass
print(json.dumps(tried))
"""


def test_an_attacker_s_sweep(tmp_path: Path) -> None:
    """Every way of Python's sockets to the network is refused; what is allowed and local goes through."""
    folder = tmp_path / "replay"
    folder.mkdir()
    files = ReplayFolder(folder)
    files.write_plan(TAPE, [], ["127.0.0.3"])
    with socket.create_server(("127.0.0.1", 0)) as listening:
        done = subprocess.run(
            [
                sys.executable,
                "-c",
                ATTACK,
                str(tmp_path / "s"),
                f"127.0.0.1:{listening.getsockname()[1]}",
            ],
            env={**os.environ, "MAST_TRACE_REPLAY": str(folder)},
            capture_output=True,
            text=True,
            check=True,
        )
    tried: dict[str, Any] = json.loads(done.stdout)
    through = {"localhost", "allowed", "pair", "unix"}
    assert {name for name, end in tried.items() if end == "through"} == through
    for name in ("udp", "udp6", "sendmsg", "connect", "connect_ex", "asyncio"):
        assert "the replay is offline" in tried[name]
    for name in ("lookup", "lookup of bytes", "asyncio name"):
        assert tried[name].startswith("gaierror")
        assert "--set allow_hosts=secret.example.com" in tried[name]
    report = files.read_report()
    assert report is not None
    assert report.divergence is not None
    assert "127.0.0.2:9" in report.divergence.text


SHARED = """
import multiprocessing, sys
import mast_trace
import openai
mast_trace.instrument(frameworks=["openai"])

def ask():
    client = openai.OpenAI(base_url="http://127.0.0.1:9", api_key="x", max_retries=0)
    with mast_trace.run("work"), mast_trace.agent("a"):
        asked = [{"role": "user", "content": "x"}]
        print(client.chat.completions.create(model="m", messages=asked).choices[0].message.content)

if __name__ == "__main__":
    way, number = sys.argv[1], int(sys.argv[2])
    context = multiprocessing.get_context(way)
    for _ in range(number):
        child = context.Process(target=ask)
        child.start()
        child.join()
"""


@pytest.mark.parametrize("way", ["fork", "spawn"])
@pytest.mark.parametrize("number", [1, 2])
def test_one_process_is_answered(tmp_path: Path, way: str, number: int) -> None:
    """A worker process is answered as any program; a second one that makes calls is refused by name."""
    folder = tmp_path / "replay"
    folder.mkdir()
    files = ReplayFolder(folder)
    files.write_plan(Tape("run", TAPE.exchanges * 2), [], [])
    program = tmp_path / "program.py"
    program.write_text(SHARED, "utf-8")
    done = subprocess.run(
        [sys.executable, str(program), way, str(number)],
        env={**os.environ, "MAST_TRACE_REPLAY": str(folder)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["y"]
    report = files.read_report()
    assert report is not None
    assert report.served_exchanges == 1
    if number == 1:
        assert report.divergence is None
    else:
        assert report.divergence is not None
        assert report.divergence.text.startswith("Two processes of the program")


def test_a_child_of_a_test_is_not_answered() -> None:
    """Without a folder that processes share, the process that made the player is answered alone."""
    player = Player(TAPE)
    child = os.fork()
    if not child:
        found = player.exchange([Message("x", role="user")], "a")
        text = divergence(player)
        os._exit(0 if found is None and text.startswith("A child process") else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert player.exchange([Message("x", role="user")], "a") is not None
