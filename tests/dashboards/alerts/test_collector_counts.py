"""Refused requests and damaged files of several collectors are counted, look by look."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest
from collector_metrics import Page, metrics_page

from mast_trace.exceptions import ConfigurationError, MastTraceError
from mast_trace_dashboards.alerts import evaluator
from mast_trace_dashboards.alerts.evaluator import Collectors

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def other() -> Iterator[Page]:
    with metrics_page() as made:
        yield made


@pytest.mark.parametrize(
    ("looks", "counted"),
    [
        # Refusals before the first evaluation do not count.
        ([(0, 7), (60, 7), (120, 9)], [0, 0, 2]),
        # A total that falls is that of a process which began anew.
        ([(0, 7), (60, 3), (120, 4)], [0, 3, 4]),
        ([(0, 7), (60, 0), (120, 0)], [0, 0, 0]),
        # A growth counts for ten minutes, from the look before it on.
        ([(0, 0), (100, 5), (599, 5), (600, 5), (699, 5), (700, 5)], [0, 5, 5, 5, 5, 0]),
        ([(0, 0), (100, 5), (200, 6), (750, 6), (800, 6)], [0, 5, 6, 1, 0]),
        # However long it is until the next look, something is seen of what came between.
        ([(0, 0), (5000, 4), (10_000, 4)], [0, 4, 0]),
    ],
)
def test_growth_within_ten_minutes(
    page: Page, looks: list[tuple[float, float]], counted: list[float]
) -> None:
    """At each look, by a moment in seconds and the total that is served then."""
    collectors = Collectors([page.url])
    found = []
    for now, total in looks:
        page.refused(spool_full=total)
        found += [row["Refused"] for row in collectors.refused(now)]
    assert found == counted


def test_a_reason_that_appears_later_began_at_nothing(page: Page) -> None:
    collectors = Collectors([page.url])
    page.refused(unreadable=3)
    assert collectors.refused(0) == [{"reason": "unreadable", "Refused": 0}]
    page.refused(unreadable=4, spool_full=2)
    assert collectors.refused(60) == [
        {"reason": "spool_full", "Refused": 2},
        {"reason": "unreadable", "Refused": 1},
    ]


def test_a_reason_that_is_served_no_more_is_forgotten_too(page: Page) -> None:
    """A process that began anew has refused nothing for that reason since."""
    collectors = Collectors([page.url])
    counts = {}
    for now, reasons in ((0, {"spool_full": 0}), (100, {"spool_full": 5}), (699, {}), (700, {})):
        page.refused(**reasons)
        counts[now] = collectors.refused(now)[0]["Refused"]
    assert counts == {0: 0, 100: 5, 699: 5, 700: 0}


def test_collectors_are_added_up_by_reason(page: Page, other: Page) -> None:
    collectors = Collectors([page.url, other.url])
    for first, second in ((1, 10), (3, 14)):
        page.refused(unreadable=first, spool_full=5)
        other.refused(unreadable=second)
        found = collectors.refused(60 * first)
    assert found == [{"reason": "spool_full", "Refused": 0}, {"reason": "unreadable", "Refused": 6}]


def test_damaged_files_are_added_up(page: Page, other: Page) -> None:
    page.damaged(spool=2, logs=1)
    other.damaged(spool=4)
    assert Collectors([page.url, other.url]).damaged() == [{"Files": 7}]
    assert Collectors([]).damaged() == [{"Files": 0}]


def test_a_collector_is_asked_with_its_key(page: Page) -> None:
    page.damaged()
    Collectors([f"{page.url}/"], "k3y").damaged()
    Collectors([page.url]).damaged()
    assert page.asked == [("/metrics", "Bearer k3y"), ("/metrics", None)]


@pytest.mark.parametrize(
    ("status", "text"), [(401, ""), (500, "oops"), (200, "<html>{oops</html>")]
)
def test_an_answer_of_nothing_is_an_error_in_secret(page: Page, status: int, text: str) -> None:
    page.status, page.text = status, text
    with pytest.raises(MastTraceError, match=rf"collector at \S*{page.address} does not") as found:
        Collectors([f"http://me:s3cretpassword@{page.address}"]).damaged()
    assert "s3cretpassword" not in str(found.value)
    assert str(status) in str(found.value) or status == 200


def test_an_address_that_cannot_be_read_is_refused_at_once() -> None:
    with pytest.raises(ConfigurationError):
        Collectors(["127.0.0.1:4318"])
    with pytest.MonkeyPatch.context() as changed:
        changed.setenv("HTTP_PROXY", "http://me:pa/ss@proxy:3128")
        with pytest.raises(ConfigurationError, match="HTTP_PROXY"):
            Collectors([])


def test_a_collector_without_answer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waiting for a silent collector would delay every other alert."""
    monkeypatch.setattr(evaluator, "_TIMEOUT", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        host, port = silent.getsockname()
        with pytest.raises(MastTraceError, match=f"{host}:{port} does not answer: timed out"):
            Collectors([f"http://{host}:{port}"]).damaged()
