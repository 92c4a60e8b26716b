"""The socket of commands answers its owner's processes and nobody else's."""

import asyncio
import os
import socket
import stat
import struct
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from starlette.responses import PlainTextResponse

from mast_trace.exceptions import ConfigurationError
from mast_trace_collector.http_server.owner_socket import is_owner, socket_path
from mast_trace_collector.http_server.server import HTTPServer

NOBODY = 65534
ASK = """
import socket, sys
client = socket.socket(socket.AF_UNIX)
client.settimeout(20)
client.connect(sys.argv[1])
try:
    client.sendall(b"GET / HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n")
    print("".join(iter(lambda: client.recv(65536).decode(), "")))
except (BrokenPipeError, ConnectionResetError):
    pass
"""


async def ask(path: Path, **options: int) -> str:
    """The answer that a process of its own gets."""
    command = [sys.executable, "-I", "-c", ASK, str(path)]
    run = subprocess.run
    done = await asyncio.to_thread(
        run, command, capture_output=True, text=True, check=True, **options
    )
    return done.stdout


@pytest.fixture
async def served():
    """A server behind a socket that every user may connect to, as far as files say."""
    refused: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)  # noqa: PTH101
        path = Path(folder, "owner.sock")
        server = HTTPServer(PlainTextResponse("hello"), refused=refused.append, socket_path=path)
        await server.start()
        yield path, refused
        await server.stop()
        assert not os.path.lexists(path)  # noqa: ASYNC240


async def test_the_owner_is_answered(served):
    path, refused = served
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert (await ask(path)).endswith("hello\n")
    assert refused == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
async def test_another_user_is_not_even_if_the_file_lets_it(served):
    path, refused = served
    path.chmod(0o666)
    pid = os.fork()
    if pid == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        os._exit(_as_a_stranger(path))
    _, status = await asyncio.to_thread(os.waitpid, pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert refused == ["stranger"]


def _as_a_stranger(path: Path) -> int:
    """0 if nothing was answered."""
    client = socket.socket(socket.AF_UNIX)
    client.settimeout(20)
    try:
        client.connect(str(path))
        client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        answer = client.recv(65536)
    except (BrokenPipeError, ConnectionResetError):
        answer = b""
    except OSError:
        return 2
    return 1 if answer else 0


@pytest.mark.parametrize("user", [os.geteuid(), os.geteuid() + 1])
def test_macos_names_the_user_in_a_structure_of_its_own(monkeypatch, user):
    """`getsockopt(SOL_LOCAL, LOCAL_PEERCRED)` gives a `struct xucred`: its version, then the user."""
    monkeypatch.delattr(socket, "SO_PEERCRED")
    monkeypatch.setattr(sys, "platform", "darwin")
    answers = {(0, 1, 76): struct.pack("=II68x", 0, user)}
    connection = SimpleNamespace(getsockopt=lambda *asked: answers[asked])
    assert is_owner(connection) is (user == os.geteuid())
    monkeypatch.setattr(sys, "platform", "plan9")
    assert not is_owner(connection)


@pytest.mark.parametrize(
    ("folder", "fits"), [("d" * 88, True), ("d" * 89, False), ("\u00e9" * 45, False)]
)
def test_a_path_up_to_a_hundred_bytes_is_used(tmp_path, monkeypatch, folder, fits):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert (socket_path(Path("/", folder)) == Path("/", folder, "owner.sock")) is fits


def test_a_folder_of_somebody_else_is_not_used(tmp_path, monkeypatch):
    """If the data folder's path is too long, the other folder must be this user's alone."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    long = tmp_path / ("long" * 40)
    place = socket_path(long)
    assert len(os.fsencode(place)) <= 100 + len(str(tmp_path))
    assert stat.S_IMODE(place.parent.stat().st_mode) == 0o700
    place.parent.chmod(0o755)
    with pytest.raises(ConfigurationError, match="belongs to this user alone"):
        socket_path(long)
    place.parent.rmdir()
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    place.parent.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigurationError, match="belongs to this user alone"):
        socket_path(long)
    stranger = os.getuid() + 1
    (tmp_path / f"mast-trace-{stranger}").mkdir(mode=0o700)
    monkeypatch.setattr(os, "getuid", lambda: stranger)
    with pytest.raises(ConfigurationError, match="belongs to this user alone"):
        socket_path(long)
