"""The cost and the tokens of a run's steps and agents."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from mast_trace_dashboards.cost_words import cost_words
from mast_trace_judge.decision_points import decision_points

if TYPE_CHECKING:
    from mast_trace_dashboards.stored_run import StoredRun

MOST_CALLS: Final = 10_000
"""Most model calls of a run that are priced one by one."""


@dataclass(frozen=True)
class CallCosts:
    """Tokens and cost of some model calls.

    Attributes:
        calls: their number.
        read: tokens of their inputs, caches included.
        cached: of these, tokens read from a cache.
        written: tokens of their outputs.
        cost: US dollars of the calls with a known price; None if there is none.
        unpriced: number of the calls whose price is unknown.
    """

    calls: int = 0
    read: int = 0
    cached: int = 0
    written: int = 0
    cost: float | None = None
    unpriced: int = 0

    @classmethod
    def of(cls, rows: Iterable[Mapping[str, Any]]) -> CallCosts:
        """Return the sums of rows of the query `cost_of_calls`."""
        taken = list(rows)
        known = [row["Cost"] for row in taken if row["Cost"] is not None]
        return cls(
            calls=len(taken),
            read=sum(row["InputTokens"] for row in taken),
            cached=sum(row["CacheReadTokens"] for row in taken),
            written=sum(row["OutputTokens"] for row in taken),
            cost=round(math.fsum(each * 1e6 for each in known), 6) / 1e6 if known else None,
            unpriced=len(taken) - len(known),
        )

    @property
    def tokens(self) -> int:
        """Tokens of inputs and outputs together."""
        return self.read + self.written

    @property
    def words(self) -> str:
        """The cost in words; an unknown price is said."""
        return cost_words(self.cost, self.unpriced)


@dataclass(frozen=True)
class RunCosts:
    """The cost of a run.

    Attributes:
        total: of all its model calls.
        after: of the calls that began after the decisive step.
        by_step: of the calls that produced each step.
        by_agent: of the calls of each agent, the most expensive first.
        complete: whether all calls are among them; else the first `MOST_CALLS`.
    """

    total: CallCosts = CallCosts()
    after: CallCosts = CallCosts()
    by_step: Mapping[int, CallCosts] = field(default_factory=dict)
    by_agent: Sequence[tuple[str, CallCosts]] = ()
    complete: bool = True


def run_costs(stored: StoredRun) -> RunCosts:
    """Return the cost of a run, of its steps and of its agents.

    A call belongs to the first step that its answer made. In a long run only the steps that stand on the
    call's own span are known.

    Raises:
        StorageError: the database does not answer.
    """
    rows = stored.calls(MOST_CALLS + 1)
    complete = len(rows) <= MOST_CALLS
    rows = rows[:MOST_CALLS]
    steps = _steps_of_calls(stored) if rows else {}
    by_step: dict[int, list[Mapping[str, Any]]] = {}
    by_agent: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        by_agent.setdefault(row["Agent"], []).append(row)
        if row["SpanId"] in steps:
            by_step.setdefault(steps[row["SpanId"]], []).append(row)
    spent = [(agent, CallCosts.of(own)) for agent, own in by_agent.items()]
    return RunCosts(
        total=CallCosts.of(rows),
        after=CallCosts.of(row for row in rows if row["After"]),
        by_step={number: CallCosts.of(own) for number, own in by_step.items()},
        by_agent=sorted(spent, key=lambda each: (-(each[1].cost or 0.0), -each[1].tokens, each[0])),
        complete=complete,
    )


def _steps_of_calls(stored: StoredRun) -> Mapping[str, int]:
    """Return the first step that each model call made, by the call's span."""
    trajectory = stored.trajectory()
    if trajectory is not None:
        found = {point.span_id: point.step for point in decision_points(trajectory)}
        return {**_on_own_spans(stored), **found}
    return _on_own_spans(stored)


def _on_own_spans(stored: StoredRun) -> dict[str, int]:
    steps: dict[str, int] = {}
    for number, span_id in enumerate(stored.outline.span_ids):
        steps.setdefault(span_id, number)
    return steps
