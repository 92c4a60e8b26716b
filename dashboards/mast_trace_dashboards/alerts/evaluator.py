"""Evaluates all rules once, or at an interval."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import httpx
from prometheus_client.parser import text_string_to_metric_families

from mast_trace.exceptions import MastTraceError
from mast_trace.urls import check_key, check_proxies, conceal, masked, parse_url
from mast_trace_dashboards.alerts.lifecycle import PROBLEM, Alert, AlertChange, advance
from mast_trace_dashboards.alerts.rules import DAMAGED, REFUSED, RULES, Rule
from mast_trace_dashboards.queries import QUERIES

if TYPE_CHECKING:
    from threading import Event

    from mast_trace_collector.storage import Store
    from mast_trace_dashboards.alerts.outbox import Outbox

WINDOW: Final = 600.0
"""Seconds over which refusals are counted."""
_REFUSED = "mast_trace_collector_refused_requests_total"
_DAMAGED = "mast_trace_collector_damaged_files"
_TIMEOUT = 10.0

logger = logging.getLogger(__name__)
_BROKEN = "its query fails"


class Collectors:
    """Collectors whose /metrics are read at each evaluation.

    Args:
        urls: their OTLP/HTTP addresses.
        key: bearer key, where they ask for one.

    Raises:
        ConfigurationError: an address cannot be read, or the key cannot be one.
    """

    def __init__(self, urls: Sequence[str], key: str = "") -> None:
        check_proxies()
        self._urls = [parse_url(url).base for url in urls]
        self._headers = (
            {"Authorization": f"Bearer {check_key(key, 'alert_collector_key')}"} if key else {}
        )
        self._seen: dict[tuple[str, str], deque[tuple[float, float]]] = {}
        self._looked_at: set[str] = set()

    def refused(self, now: float) -> list[dict[str, Any]]:
        """Return a row for each reason: requests refused in the last ten minutes, of all collectors.

        Refusals before the first evaluation do not count.

        Raises:
            MastTraceError: a collector does not answer.
        """
        for url in self._urls:
            for reason, total in self._totals(url, _REFUSED).items():
                seen = self._seen.setdefault((url, reason), deque())
                if not seen and url in self._looked_at:
                    seen.append((now, 0.0))  # a reason that is new began at 0
                seen.append((now, total))
            self._looked_at.add(url)
        sums: dict[str, float] = {}
        for (_, reason), seen in self._seen.items():
            while len(seen) > 1 and seen[1][0] <= now - WINDOW:
                seen.popleft()
            sums[reason] = sums.get(reason, 0.0) + _growth([total for _, total in seen])
        return [{"reason": reason, "Refused": count} for reason, count in sorted(sums.items())]

    def damaged(self) -> list[dict[str, Any]]:
        """Return one row: damaged files that are set aside now, of all collectors.

        Raises:
            MastTraceError: a collector does not answer.
        """
        return [{"Files": sum(sum(self._totals(url, _DAMAGED).values()) for url in self._urls)}]

    def _totals(self, url: str, metric: str) -> Mapping[str, float]:
        try:
            answer = httpx.get(f"{url}/metrics", headers=self._headers, timeout=_TIMEOUT)
            answer.raise_for_status()
            families = list(text_string_to_metric_families(answer.text))
        except httpx.HTTPStatusError as error:
            raise MastTraceError(_refusal(url, error.response.status_code)) from error
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            problem = conceal(str(error) or type(error).__name__, url)
            raise MastTraceError(
                f"the collector at {masked(url)} does not answer: {problem}"
            ) from error
        totals: dict[str, float] = {}
        for family in families:
            for sample in family.samples:
                if sample.name == metric:
                    reason = sample.labels.get("reason", "")
                    totals[reason] = totals.get(reason, 0.0) + sample.value
        return totals


def _refusal(url: str, status: int) -> str:
    """Return the problem of a collector that answers with an error, with its remedy."""
    said = f"the collector at {masked(url)} does not show its metrics (HTTP {status})"
    remedies = {
        401: "it asks for a key: set MAST_TRACE_ALERT_COLLECTOR_KEY to one that may read /metrics",
        403: "this key may not read /metrics: set MAST_TRACE_ALERT_COLLECTOR_KEY to one with that right",
        404: "is this the collector's OTLP/HTTP address, without a path?",
    }
    return f"{said}; {remedies[status]}" if status in remedies else said


def _growth(totals: Sequence[float]) -> float:
    """Return the growth of a counter; where it fell, its process restarted from 0."""
    return sum(new - old if new >= old else new for old, new in pairwise(totals))


@dataclass
class Evaluator:
    """The rules with the state of their alerts.

    Attributes:
        store: the database.
        rules: to evaluate.
        alerts: active after the last evaluation.
        parameters: values for parameters of the rules' queries, by query.
        collectors: those asked for refused requests and damaged files; None asks none.
    """

    store: Store
    rules: Sequence[Rule] = RULES
    alerts: list[Alert] = field(default_factory=list)
    parameters: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    collectors: Collectors | None = None

    def look(self, moment: datetime | None = None) -> list[AlertChange]:
        """Evaluate every rule at ``moment`` (now if absent) and return the changes."""
        moment = moment or datetime.now(timezone.utc)
        active: list[Alert] = []
        changes: list[AlertChange] = []
        # Rules that differ only in their threshold share a result.
        answers = {name: self._ask(name, moment) for name in {r.query for r in self.rules}}
        for rule in self.rules:
            known = [alert for alert in self.alerts if alert.rule == rule.uid]
            after, changed = _compared(rule, known, answers[rule.query], moment.timestamp())
            active += after
            changes += changed
        self.alerts = active
        return changes

    def _ask(self, query: str, moment: datetime) -> list[dict[str, Any]] | None:
        """Return a query's rows; None if it fails."""
        try:
            if query == REFUSED:
                return self.collectors.refused(moment.timestamp()) if self.collectors else []
            if query == DAMAGED:
                return self.collectors.damaged() if self.collectors else []
            return QUERIES[query].run(self.store, until=moment, **self.parameters.get(query, {}))
        except MastTraceError as error:
            logger.warning("alert query %s cannot be evaluated: %s", query, error)
            return None


def _compared(
    rule: Rule, known: list[Alert], rows: list[dict[str, Any]] | None, now: float
) -> tuple[list[Alert], list[AlertChange]]:
    if rows is None:
        if rule.on_error != "alert":
            return known, []
        rows = [{PROBLEM: _BROKEN, "value": float("inf")}]
    if not rows and rule.no_data == "alert":
        rows = [{PROBLEM: "there is no data", "value": float("inf")}]
    return advance(rule, known, rows, now)


def run(
    evaluator: Evaluator,
    outbox: Outbox,
    looked: Callable[[list[AlertChange]], None],
    stop: Event,
    *,
    interval: float = 300.0,
) -> None:
    """Evaluate the rules every ``interval`` seconds, and deliver in between, until ``stop`` is set.

    Args:
        evaluator: evaluates.
        outbox: delivers; an unreachable receiver delays an evaluation by one try at most.
        looked: called with the changes of each evaluation, and with none after every delivery.
        stop: ends the loop; waiting deliveries are kept for the next start.
        interval: seconds between two evaluations.
    """
    next_look = time.monotonic()
    while not stop.is_set():
        now = time.monotonic()
        if now >= next_look:
            next_look = now + interval
            changes = evaluator.look()
            outbox.add(changes)
            looked(changes)
        if outbox.flush():
            looked([])
            continue
        due = min(next_look, outbox.next_try) if outbox.waiting else next_look
        stop.wait(max(0.0, due - time.monotonic()))
