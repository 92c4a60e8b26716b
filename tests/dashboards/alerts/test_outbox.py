"""Alerts wait for a receiver that is away, and each arrives once."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from mast_trace_dashboards.alerts import outbox as module
from mast_trace_dashboards.alerts.lifecycle import Alert, AlertChange
from mast_trace_dashboards.alerts.outbox import Outbox, Webhook, key_of, payload

if TYPE_CHECKING:
    from collections.abc import Callable

    from fixture_types import Logs
    from webhook_receiver import Receiver


def change(service: str) -> AlertChange:
    labels = (("service", service), ("framework", "ag2"))
    return AlertChange(
        Alert("mast-specification-page", labels, 5.1, "firing", 60.0), "firing", 60.0
    )


@pytest.fixture
def outbox(receiver: Receiver) -> Outbox:
    webhook = Webhook(receiver.url)
    return Outbox(lambda d, key: webhook.post(payload(d, "alertmanager"), key), webhook.label)


@pytest.fixture
def at_once(outbox: Outbox) -> Callable[[], bool]:
    """Tries again without waiting."""

    def flush() -> bool:
        outbox.next_try = 0.0
        return outbox.flush()

    return flush


def services(receiver: Receiver) -> list[str]:
    """Return the alerts in all bodies that were answered with 200."""
    bodies = zip(receiver.bodies, receiver.answered, strict=True)
    return [
        a["labels"]["service"] for body, status in bodies if status == 200 for a in body["alerts"]
    ]


def test_a_receiver_that_is_away_gets_it_once_when_it_is_back(
    outbox: Outbox, receiver: Receiver, at_once: Callable[[], bool]
) -> None:
    away = [500, 503, 429, 401, 403, 404, 408, 302]
    receiver.statuses = [*away, 200]
    outbox.add([change("a"), change("b")])
    assert [at_once() for _ in away] == [False] * len(away)
    outbox.add([change("c")])
    assert at_once()
    assert at_once()
    assert not at_once()
    assert services(receiver) == ["a", "b", "c"]
    keys = [headers["idempotency-key"] for headers in receiver.headers]
    *same, last = keys
    assert len(set(same)) == 1, "the same delivery, for a receiver that had taken it already"
    assert last != same[0]


def test_between_two_tries_it_waits_longer_each_time(
    outbox: Outbox, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a fifth more or less, so that several do not try together."""
    now = 1000.0
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now))
    receiver.statuses = [500] * 10 + [200, 500]
    outbox.add([change("a")])
    outbox.flush()
    assert not outbox.flush()
    assert len(receiver.bodies) == 1
    pauses = []
    for _ in range(9):
        pauses.append(outbox._pause)
        outbox.next_try = 0.0
        outbox.flush()
        assert 0.8 * pauses[-1] <= outbox.next_try - now <= 1.2 * pauses[-1]
    assert (pauses, pauses[-1]) == (sorted(pauses), module.LONGEST_PAUSE)
    outbox.next_try = 0.0
    assert outbox.flush()
    outbox.add([change("b")])
    outbox.flush()
    assert outbox.next_try - now <= 1.2 * module.FIRST_PAUSE, "after one that was taken, anew"


def test_a_trouble_is_told_when_it_begins_and_when_it_ends(
    outbox: Outbox, receiver: Receiver, at_once: Callable[[], bool], caplog: Logs
) -> None:
    receiver.statuses = [500] * 20 + [200]
    outbox.add([change("a")])
    with caplog.at_level(logging.WARNING):
        while not at_once():
            pass
    # Another test's client may end here, too, of which asyncio tells.
    told = [each for each in caplog.records if each.name.startswith("mast_trace")]
    first, last = (each.getMessage() for each in told)
    assert "does not take alerts (HTTP 500)" in first
    assert "takes alerts again" in last


def test_an_alert_that_cannot_be_read_holds_up_no_other(
    outbox: Outbox, receiver: Receiver, at_once: Callable[[], bool]
) -> None:
    receiver.unreadable = "evil"
    outbox.add([change("a"), change("evil"), change("b")])
    outbox.add([change("c")])
    while outbox.waiting:
        at_once()
    assert services(receiver) == ["a", "b", "c"]


def test_nobody_there_is_no_exception(at_once: Callable[[], bool], outbox: Outbox) -> None:
    webhook = Webhook("http://127.0.0.1:9/")
    outbox._post = lambda delivery, key: webhook.post({}, key)
    outbox.add([change("a")])
    assert not at_once()
    assert len(outbox.waiting) == 1


def test_what_waits_is_bounded(outbox: Outbox) -> None:
    for number in range(module.MOST + 10):
        outbox.add([change(str(number))])
    assert len(outbox.waiting) == module.MOST
    assert outbox.waiting[0] == (change("10"),)
    outbox.add([change(str(number)) for number in range(module.LARGEST + 1)])
    assert [len(each) for each in outbox.waiting[-2:]] == [module.LARGEST, 1]


def test_a_key_is_of_the_alerts_and_of_when_they_began() -> None:
    assert key_of((change("a"),)) == key_of((change("a"),))
    later = AlertChange(change("a").alert, "firing", 61.0)
    assert len({key_of((each,)) for each in (change("a"), change("b"), later)}) == 3
