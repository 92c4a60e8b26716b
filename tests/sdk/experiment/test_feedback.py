"""`mast_trace.feedback` takes two seconds at most, never raises, and is empty on any failure."""

from __future__ import annotations

import gzip
import json
import threading
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import pytest
from hostile_lessons import response, sends, server

import mast_trace
from mast_trace.experiment import lessons
from mast_trace.experiment.assignment import Arm
from mast_trace.spans import given_lessons

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def _nobody_waits() -> Iterator[None]:
    """The threads of a test end with its server, before the next test."""
    yield
    given_lessons.forget()  # the next run belongs to another test
    for thread in lessons._left_behind:
        thread.join(5)
        assert not thread.is_alive()


LESSON = {
    "agent": "planner",
    "step": 4,
    "mode": "2.6",
    "quote": "the price is 640",
    "advice": "Copy figures.",
    "evidence": "exact",
    "run": "ab" * 16,
}
GOOD = {
    "text": "planner erred",
    "placebo": "work carefully",
    "items": [LESSON],
    "version": "v1",
    "reason": "",
}
IN_FEEDBACK = Arm("feedback", experiment="e", task="t")
IN_PLACEBO = Arm("placebo", experiment="e", task="t")


def good(**changed: Any) -> bytes:
    return response(json.dumps({**GOOD, **changed}).encode())


def test_lessons_arrive_with_their_parts() -> None:
    with server(sends(good())) as (url, requests):
        found = mast_trace.feedback(
            url=url + "/", read_key="secret", workflow="refund", agent="planner", last=2, budget=99
        )
    assert (found.text, str(found), bool(found)) == ("planner erred", "planner erred", True)
    assert found.items[0].agent == "planner"
    assert found.items[0].step == 4
    assert found.version == "v1"
    assert len(found.id) == 16
    assert found.reason == ""
    assert asdict(found) == {
        "text": "planner erred",
        "items": (LESSON,),
        "id": found.id,
        "version": "v1",
        "arm": None,
        "reason": "",
    }
    (request,) = requests
    assert b"GET /lessons?" in request
    assert b"workflow=refund&agent=planner" in request
    assert b"last=2&budget=99" in request
    assert b"Authorization: Bearer secret\r\n" in request


def test_the_task_itself_is_not_sent() -> None:
    """Its hash is, which is equal for equal words."""
    with server(sends(good())) as (url, requests):
        mast_trace.feedback(url=url, task="What do THEY owe us?")
        mast_trace.feedback(url=url, task=" what do they\nowe us? ")
    assert b"owe" not in requests[0]
    assert requests[0] == requests[1]


def test_the_arm_decides_what_is_given() -> None:
    with server(sends(good())) as (url, requests):
        fed = mast_trace.feedback(arm=IN_FEEDBACK, url=url)
        placebo = mast_trace.feedback(arm=IN_PLACEBO, url=url)
        none = mast_trace.feedback(arm=Arm("none", experiment="e", task="t"), url=url)
        other = mast_trace.feedback(arm=Arm("single agent", experiment="e", task="t"), url=url)
    assert (fed.text, placebo.text, placebo.items) == ("planner erred", "work carefully", ())
    assert len(requests) == 2, "the other arms ask nobody"
    assert not none
    assert not other
    assert "single agent" in other.reason
    assert {each.arm_name for each in (fed, placebo, none)} == {"feedback", "placebo", "none"}


def silent(connection: socket.socket) -> None:
    time.sleep(10)


def drips_headers(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\n")
    for number in range(1000):
        connection.sendall(f"x-{number}: y\r\n".encode())
        time.sleep(0.05)


def drips_body(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{")
    while True:
        connection.sendall(b" ")
        time.sleep(0.05)


@pytest.mark.parametrize("answer", [silent, drips_headers, drips_body])
def test_a_server_that_hangs_costs_two_seconds(answer: Any) -> None:
    with server(answer) as (url, _):
        began = time.monotonic()
        found = mast_trace.feedback(url=url)
        took = time.monotonic() - began
    assert not found
    assert "2 s" in found.reason or "not answer" in found.reason
    assert took < 2.5


def drips_one_line(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nx: ")
    while True:
        connection.sendall(b"y")
        time.sleep(0.05)


def test_requests_that_hang_do_not_pile_up() -> None:
    """A server that never ends a line holds four threads of a program, however often it is asked."""
    with server(drips_one_line) as (url, requests):
        asking = [
            threading.Thread(target=mast_trace.feedback, kwargs={"url": url}) for _ in range(4)
        ]
        for thread in asking:
            thread.start()
        for thread in asking:
            thread.join()
        began = time.monotonic()
        found = [mast_trace.feedback(url=url) for _ in range(50)]
        took = time.monotonic() - began
    assert len(requests) == 4
    assert "still wait" in found[0].reason
    assert took < 1


HUGE = b'{"text": "' + b"a" * 5_000_000 + b'", "placebo": ""}'


@pytest.mark.parametrize(
    "data",
    [
        response(b"oops", status="500 Internal Server Error"),
        response(json.dumps(GOOD).encode(), status="500 Internal Server Error"),
        response(b'{"detail": "no"}', status="401 Unauthorized"),
        response(b"", status="302 Found", more="location: http://127.0.0.1:1/\r\n"),
        response(b"<html>sign in</html>", kind="text/html"),
        response(json.dumps(GOOD).encode(), kind="text/html; charset=utf-8"),
        response(b"{"),
        response(b""),
        response(b"\xff\xfe\x00\x01"),
        response(b"null"),
        response(b"[]"),
        response(b'{"text": 5, "placebo": ""}'),
        response(b'{"text": "x"}'),
        response(b"[" * 100_000),
        response(HUGE),
        response(gzip.compress(HUGE), more="content-encoding: gzip\r\n"),
        response(b"no gzip", more="content-encoding: gzip\r\n"),
        response(json.dumps({**GOOD, "items": 7}).encode()),
        response(json.dumps({**GOOD, "items": [{"agent": "x"}]}).encode()),
        response(json.dumps({**GOOD, "text": "a" * 601}).encode()),
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"",
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{",
    ],
)
def test_whatever_a_server_answers_is_no_error(data: bytes) -> None:
    with server(sends(data)) as (url, requests):
        found = mast_trace.feedback(url=url, arm=IN_FEEDBACK)
    assert found.text == ""
    assert found.items == ()
    assert found.id == ""
    assert found.reason
    assert found.arm is IN_FEEDBACK
    assert len(requests) == 1, "the key is not sent on to another address"


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:1",
        "ftp://127.0.0.1",
        "nonsense",
        "http://user:geheim@[bad",
        "http://no-such-host.invalid",
        "file:///etc/passwd",
        5,
        b"x",
    ],
)
def test_whatever_the_address_is_it_is_no_error(url: Any) -> None:
    found = mast_trace.feedback(url=url)
    assert not found
    assert "geheim" not in found.reason


@pytest.mark.parametrize(
    "given",
    [
        {"last": "three"},
        {"last": None},
        {"budget": -5},
        {"budget": 10**30},
        {"last": float("nan")},
        {"run": object()},
        {"workflow": ["a"]},
        {"task": "\ud83d"},
        {"agent": "x" * 100_000},
        {"read_key": "a\r\nx: y"},
        {"read_key": "schlüssel"},
        {"arm": "feedback"},
        {"arm": 5},
    ],
)
def test_whatever_the_arguments_are_it_is_no_error(given: dict[str, Any]) -> None:
    with server(sends(good(text="", placebo=""))) as (url, requests):
        found = mast_trace.feedback(url=url, **given)
    assert not found
    assert found.reason
    assert not any(b"\r\nx: y" in request for request in requests)


def test_variables_name_address_and_key(monkeypatch: pytest.MonkeyPatch) -> None:
    with server(sends(good())) as (url, requests):
        monkeypatch.setenv("MAST_TRACE_FEEDBACK_URL", url)
        monkeypatch.setenv("MAST_TRACE_FEEDBACK_KEY", "k1")
        assert mast_trace.feedback()
    assert b"Bearer k1" in requests[0]


def test_a_replay_asks_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAST_TRACE_REPLAY", "/nowhere")
    with server(sends(good())) as (url, requests):
        assert not mast_trace.feedback(url=url)
    assert requests == []


def test_the_request_is_no_span_of_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """Instrumentations of HTTP clients are told to keep quiet about it."""
    import requests as client
    from opentelemetry import context

    seen: list[Any] = []
    real = client.Session.get

    def get(*args: Any, **kwargs: Any) -> Any:
        seen.append(context.get_value(context._SUPPRESS_HTTP_INSTRUMENTATION_KEY))
        return real(*args, **kwargs)

    monkeypatch.setattr(client.Session, "get", get)
    with server(sends(good())) as (url, _):
        assert mast_trace.feedback(url=url)
    assert seen == [True]
    assert context.get_value(context._SUPPRESS_HTTP_INSTRUMENTATION_KEY) is None
