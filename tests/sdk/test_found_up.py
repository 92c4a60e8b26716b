"""Programs find the one `mast-trace up` of their user, and send to nobody else."""

from __future__ import annotations

import fcntl
import logging
import os
import subprocess
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from receiver import receiving

import mast_trace
from mast_trace import running_up
from mast_trace._settings import SDKSettings
from mast_trace.doctor import examine

if TYPE_CHECKING:
    from pathlib import Path

    from receiver import Receiver

DEFAULT = "http://127.0.0.1:4318/v1/traces"
APART = running_up._APART


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(running_up, "_APART", ())
    return tmp_path / running_up.FOLDER


def endpoint() -> tuple[str, str]:
    found = SDKSettings.resolve().endpoint
    return found.value, found.origin


def test_the_one_that_runs_is_taken_while_it_runs(folder: Path) -> None:
    with running_up.announced("http://127.0.0.1:5999/"):
        assert endpoint() == ("http://127.0.0.1:5999/v1/traces", running_up.ORIGIN)
        (file,) = folder.iterdir()
        assert (file.stat().st_mode & 0o777, folder.stat().st_mode & 0o777) == (0o600, 0o700)
    assert (endpoint(), [*folder.iterdir()]) == ((DEFAULT, "default"), [])


def test_of_several_none_is_taken_and_that_is_said(caplog: pytest.LogCaptureFixture) -> None:
    with running_up.announced("http://127.0.0.1:1"), running_up.announced("http://127.0.0.1:2"):
        assert endpoint() == (DEFAULT, "default")
        with caplog.at_level(logging.WARNING, "mast_trace"):
            mast_trace.instrument(frameworks=[])
        assert all(f"ENDPOINT=http://127.0.0.1:{port}" in caplog.text for port in (1, 2))


@pytest.mark.parametrize(
    "name", ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"]
)
def test_an_endpoint_that_is_set_wins(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "http://other:1/v1/traces")
    with running_up.announced("http://127.0.0.1:5999"):
        assert endpoint() == ("http://other:1/v1/traces", name)
        assert SDKSettings.resolve(endpoint="http://mine:2").endpoint.origin == "argument"


@pytest.mark.parametrize("name", APART)
def test_tests_and_replays_find_none(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "x")
    with running_up.announced("http://127.0.0.1:5999"):
        assert endpoint() == ("http://127.0.0.1:5999/v1/traces", running_up.ORIGIN)
        monkeypatch.setattr(running_up, "_APART", (name,))
        assert endpoint() == (DEFAULT, "default")
        with running_up.announced("http://127.0.0.1:5998"):
            monkeypatch.setattr(running_up, "_APART", ())
            assert running_up.found() == ["http://127.0.0.1:5999"]


def test_only_a_locked_file_of_this_user_alone_counts(folder: Path) -> None:
    folder.mkdir(parents=True)
    with ExitStack() as files:

        def put(name: str, mode: int, *, locked: bool = True) -> Path:
            path = folder / name
            file = files.enter_context(path.open("w"))
            file.write("http://127.0.0.1:6666")
            file.flush()
            path.chmod(mode)
            if locked:
                fcntl.flock(file, fcntl.LOCK_EX)
            return path

        put("readable.url", 0o644)
        put("left-behind.url", 0o600, locked=False)
        (folder / "link.url").symlink_to(put("link.txt", 0o600))
        os.mkfifo(folder / "pipe.url", 0o600)
        assert running_up.found() == []
        put("good.url", 0o600)
        assert running_up.found() == ["http://127.0.0.1:6666"]
        with running_up.announced("http://127.0.0.1:5999"):
            assert not (folder / "left-behind.url").exists()


PROGRAM = """
import mast_trace, sys
mast_trace.instrument(frameworks=[])
for _ in sys.stdin:
    mast_trace.message("a", "b", "c")
    print(mast_trace.flush(3), flush=True)
"""


def test_a_port_that_another_has_since_gets_nothing(receiver: Receiver) -> None:
    """A program follows a `mast-trace up` that is started again on another port."""
    with receiving() as again, ExitStack() as first:
        first.enter_context(running_up.announced(receiver.url))
        with subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            env={name: value for name, value in os.environ.items() if name not in APART},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as program:
            assert program.stdin
            assert program.stdout

            def say() -> str:
                assert program.stdin
                assert program.stdout
                program.stdin.write("\n")
                program.stdin.flush()
                return program.stdout.readline().strip()

            assert say() == "True"
            first.close()
            assert say() == "False"
            assert len(receiver.spans) == 1
            with running_up.announced(again.url):
                assert say() == "True"
            program.stdin.close()
    assert (len(receiver.spans), len(again.spans)) == (1, 2)


def test_the_doctor_shows_where_the_address_is_from_and_that_there_are_several() -> None:
    with running_up.announced("http://127.0.0.1:1"):
        found = examine()
        origins = {each.name: each.origin for each in found.settings}
        assert (found.endpoint.address, origins["endpoint"]) == (
            "http://127.0.0.1:1/v1/traces",
            running_up.ORIGIN,
        )
        with running_up.announced("http://127.0.0.1:2"):
            assert any("http://127.0.0.1:2" in each for each in examine().problems)
