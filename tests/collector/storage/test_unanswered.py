"""A server that gives no answer is told in one sentence, with its address, the next step and a short cause."""

from __future__ import annotations

import re
import socket
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from clickhouse_connect.driver.exceptions import OperationalError
from urllib3.connection import HTTPConnection
from urllib3.exceptions import NewConnectionError

from mast_trace.exceptions import StorageError
from mast_trace_collector.storage import Store
from mast_trace_collector.storage.address import unanswered

if TYPE_CHECKING:
    from collections.abc import Iterator

_OF_THE_DRIVER = re.compile(r"query_id|Pool|Error|Errno|Max retries|attempt")


@contextmanager
def answering(answer: bytes | None) -> Iterator[str]:
    """Serve one answer to every request on a free port; None keeps callers waiting."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    called, _ = server.accept()
                except OSError:
                    return
                with called:
                    called.recv(65536)
                    called.sendall(answer or b"")

        if answer is not None:
            threading.Thread(target=serve, daemon=True).start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)


def told(address: str) -> str:
    """Return the message about a server."""
    with pytest.raises(StorageError) as caught:
        Store.open(address, connect_timeout=0.5, timeout=1)
    message = str(caught.value)
    assert not _OF_THE_DRIVER.search(message)
    return message


@pytest.mark.parametrize(
    ("host", "cause"),
    [("127.0.0.1:1", "Connection refused"), ("nowhere.invalid:8123", "[A-Z][-a-z ]+")],
)
@pytest.mark.parametrize("user", ["", "me:secret@"])
def test_one_that_is_away(host: str, cause: str, user: str) -> None:
    message = told(f"http://{user}{host}/db")
    begin = (
        f"http://{user.replace('secret', '***')}{host}/db does not answer: start the database, or "
    )
    assert message.startswith(begin)
    assert re.search(rf" \({host}: {cause}\)$", message)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        # Closed at once, or reset where a part of the request came after the first read.
        (b"", r"does not answer: .*\(.*[Cc]onnection"),
        (b"HTTP/1.1 503 No\r\nContent-Length: 4\r\n\r\nbusy", "answers no query now: .*busy"),
        (None, "has not answered in time: .*timed out"),
    ],
)
def test_one_that_fails_otherwise(answer: bytes | None, words: str) -> None:
    with answering(answer) as place:
        assert re.match(f"http://{place}/db:? .*{words}", told(f"http://{place}/db"))


@pytest.mark.filterwarnings("error")
def test_the_place_of_a_new_connection_is_read_without_a_warning() -> None:
    """A socket of the file system has none in its pool, so that the connection is asked."""
    error = OperationalError("away")
    error.__cause__ = NewConnectionError(HTTPConnection("db", 8123), "gone")
    assert "(db:8123: " in unanswered(error, "db")


@pytest.mark.parametrize(("code", "told"), [(None, True), (241, False)])
def test_an_error_with_a_code_is_an_answer(code: int | None, told: bool) -> None:
    error = OperationalError("too much memory")
    error.code = code
    assert bool(unanswered(error, "db")) is told
