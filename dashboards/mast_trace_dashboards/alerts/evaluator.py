"""Evaluates all rules once, or at an interval."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from mast_trace.exceptions import MastTraceError
from mast_trace_dashboards.alerts.lifecycle import PROBLEM, Alert, Change, advance
from mast_trace_dashboards.alerts.rules import DAMAGED, REFUSED, RULES, Rule
from mast_trace_dashboards.queries import QUERIES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from threading import Event

    from mast_trace_collector.storage import Store
    from mast_trace_dashboards.alerts.collectors import Collectors
    from mast_trace_dashboards.alerts.outbox import Outbox

logger = logging.getLogger(__name__)

_BROKEN = "its query fails"


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

    def look(self, moment: datetime | None = None) -> list[Change]:
        """Evaluate every rule at ``moment`` (now if absent) and return the changes."""
        moment = moment or datetime.now(timezone.utc)
        active: list[Alert] = []
        changes: list[Change] = []
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
) -> tuple[list[Alert], list[Change]]:
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
    looked: Callable[[list[Change]], None],
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
