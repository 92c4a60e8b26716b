"""Looks at answers and at their absence, and the time of the next look."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

import pytest

from mast_trace_dashboards.alerts import outbox as outbox_module
from mast_trace_dashboards.alerts.evaluator import Collectors, Evaluator, run
from mast_trace_dashboards.alerts.outbox import DeliveryResult, Outbox
from mast_trace_dashboards.alerts.rules import DAMAGED, REFUSED, RULES

if TYPE_CHECKING:
    from collector_metrics import Page

    from mast_trace_dashboards.alerts.lifecycle import AlertChange
    from mast_trace_dashboards.alerts.rules import OnNothing, Rule

BEGIN = datetime(2026, 1, 1, tzinfo=timezone.utc)
(DAMAGED_FILES,) = [rule for rule in RULES if rule.query == DAMAGED]
(REFUSED_SPANS,) = [replace(rule, hold=0) for rule in RULES if rule.query == REFUSED]
AWAY = "http://127.0.0.1:9"


def watching(*rules: Rule, url: str = "") -> Evaluator:
    """These rules ask collectors alone, or nobody."""
    collectors = Collectors([url]) if url else None
    return Evaluator(store=None, rules=rules, collectors=collectors)  # type: ignore[arg-type]


def told(changes: list[AlertChange]) -> list[tuple[str, str, tuple[tuple[str, str], ...], float]]:
    return [(c.kind, c.alert.rule, c.alert.labels, c.alert.value) for c in changes]


PROBLEM = float("inf")


@pytest.mark.parametrize(
    ("no_data", "on_error", "nobody", "away"),
    [
        ("ok", "keep", None, None),
        ("alert", "keep", "there is no data", None),
        ("ok", "alert", None, "its query fails"),
        ("keep", "ok", None, None),
    ],
)
def test_what_the_absence_of_an_answer_means(
    no_data: OnNothing, on_error: OnNothing, nobody: str | None, away: str | None
) -> None:
    rule = replace(REFUSED_SPANS, no_data=no_data, on_error=on_error)
    for url, problem in (("", nobody), (AWAY, away)):
        changes = told(watching(rule, url=url).look(BEGIN))
        expected = [("firing", rule.uid, (("problem", problem),), PROBLEM)] if problem else []
        assert changes == expected


def test_without_collectors_nobody_is_asked_about_damaged_files() -> None:
    assert watching(replace(DAMAGED_FILES, no_data="alert")).look(BEGIN)
    assert not watching(DAMAGED_FILES).look(BEGIN)


def test_alerts_of_an_absent_collector_stay(page: Page, caplog: pytest.LogCaptureFixture) -> None:
    evaluator = watching(DAMAGED_FILES, url=page.url)
    page.damaged(spool=2)
    assert told(evaluator.look(BEGIN)) == [("firing", DAMAGED_FILES.uid, (), 2.0)]
    before = evaluator.alerts
    page.status = 500
    for minutes in (5, 10, 15, 20):
        assert not evaluator.look(BEGIN + timedelta(minutes=minutes))
    assert evaluator.alerts == before
    assert len(caplog.messages) == 4
    for message in caplog.messages:
        assert message.startswith(f"alert query {DAMAGED} cannot be evaluated: the collector at")


def test_rules_with_one_query_share_its_answer(page: Page) -> None:
    """Asked twice, two thresholds might see two numbers."""
    lax = replace(DAMAGED_FILES, uid="lax", above=5.0)
    evaluator = watching(DAMAGED_FILES, lax, url=page.url)
    page.damaged(spool=2)
    assert [c.alert.rule for c in evaluator.look(BEGIN)] == [DAMAGED_FILES.uid]
    assert len(page.asked) == 1
    page.damaged(spool=6)
    later = evaluator.look(BEGIN + timedelta(minutes=5))
    assert told(later) == [("firing", "lax", (), 6.0)], "the other fires already"
    assert [alert.rule for alert in evaluator.alerts] == [DAMAGED_FILES.uid, "lax"]


def test_refusals_are_counted_at_the_moment_of_the_look(page: Page) -> None:
    """Refusals older than ten minutes are forgotten."""
    evaluator = watching(REFUSED_SPANS, url=page.url)
    told_at = {}
    for minutes, total in ((0, 3), (5, 7), (10, 7), (20, 7), (30, 7)):
        page.refused(spool_full=total)
        evaluator.look(BEGIN + timedelta(minutes=minutes))
        told_at[minutes] = [alert.value for alert in evaluator.alerts]
    assert told_at == {0: [], 5: [4.0], 10: [4.0], 20: [0.0], 30: []}


def test_a_look_is_at_the_present_unless_told_otherwise(page: Page) -> None:
    page.damaged(spool=1)
    before = time.time()
    (change,) = watching(DAMAGED_FILES, url=page.url).look()
    assert before <= change.began <= time.time()


class CountingOutbox(Outbox):
    """Counts how often it is asked to deliver."""

    asked = 0

    def flush(self) -> bool:
        self.asked += 1
        return super().flush()


class Watched:
    """`run` in a thread, and what it tells of each look and delivery.

    Args:
        evaluator: looks.
        problems: of the receiver with the first deliveries; it accepts later ones.
        interval: seconds between two looks.
    """

    def __init__(self, evaluator: Evaluator, *problems: str, interval: float) -> None:
        self.told: list[list[AlertChange]] = []
        self.waited: list[int] = []
        self.delivered: list[tuple[AlertChange, ...]] = []
        self.problems = list(problems)
        self.enough = threading.Event()
        self.stop = threading.Event()
        self.wanted = 0
        self.outbox = CountingOutbox(self._post, "receiver")
        arguments = (evaluator, self.outbox, self._looked, self.stop)
        # A thread that hangs must not hold up the process.
        self.thread = threading.Thread(
            target=run, args=arguments, kwargs={"interval": interval}, daemon=True
        )

    def _post(self, delivery: tuple[AlertChange, ...], _key: str) -> DeliveryResult:
        problem = self.problems.pop(0) if self.problems else ""
        if not problem:
            self.delivered.append(delivery)
        return DeliveryResult(problem)

    def _looked(self, changes: list[AlertChange]) -> None:
        self.told.append(changes)
        self.waited.append(len(self.outbox.waiting))
        if len(self.told) == self.wanted:
            self.enough.set()

    def until_told(self, times: int) -> list[list[str]]:
        """The rules that changed, each time that `run` reported an evaluation or a delivery."""
        self.wanted = times
        self.thread.start()
        while not self.enough.wait(0.05):
            assert self.thread.is_alive(), "it ended before it had told so often"
        time.sleep(0.05)  # for what it does next
        self.stop.set()
        self.thread.join(10)
        assert not self.thread.is_alive()
        return [[change.alert.rule for change in changes] for changes in self.told]


def test_it_looks_at_once_and_then_at_intervals(page: Page) -> None:
    page.damaged()
    watched = Watched(watching(DAMAGED_FILES, url=page.url), interval=0.01)
    assert watched.until_told(4)[:4] == [[], [], [], []]
    assert not watched.delivered


def test_between_two_looks_it_delivers(page: Page) -> None:
    """A delivery is reported without changes, so that the waiting ones can be saved, first those that are not sent yet."""
    page.damaged(spool=1)
    watched = Watched(watching(DAMAGED_FILES, url=page.url), interval=3600)
    assert watched.until_told(2) == [[DAMAGED_FILES.uid], []]
    assert watched.waited == [1, 0]
    assert [[c.alert.rule for c in delivery] for delivery in watched.delivered] == [
        [DAMAGED_FILES.uid]
    ]
    assert len(page.asked) == 1


def test_after_a_delivery_it_looks_again(page: Page) -> None:
    page.damaged(spool=1)
    watched = Watched(watching(DAMAGED_FILES, url=page.url), interval=0.01)
    assert watched.until_told(4)[:4] == [[DAMAGED_FILES.uid], [], [], []]
    assert len(watched.delivered) == 1


def test_it_tries_again_before_the_next_look(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox_module, "FIRST_PAUSE", 0.01)
    page.damaged(spool=1)
    watched = Watched(watching(DAMAGED_FILES, url=page.url), "away", "away", interval=3600)
    assert watched.until_told(2) == [[DAMAGED_FILES.uid], []]
    assert len(watched.delivered) == len(page.asked) == 1


def test_with_nothing_to_do_it_sleeps(page: Page) -> None:
    page.damaged()
    watched = Watched(watching(DAMAGED_FILES, url=page.url), interval=3600)
    assert watched.until_told(1) == [[]]
    assert watched.outbox.asked == 1


def test_once_stopped_it_does_not_even_look(page: Page) -> None:
    watched = Watched(watching(DAMAGED_FILES, url=page.url), interval=0.01)
    watched.stop.set()
    watched.thread.start()
    watched.thread.join(10)
    assert not watched.thread.is_alive()
    assert not page.asked
