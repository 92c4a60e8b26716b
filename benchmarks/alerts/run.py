"""Measures the spike rules: false alerts, found spikes, and delays.

    python benchmarks/alerts/run.py [--seed 1] [--quick]

The shipped rules are evaluated as they are: `Evaluator` with the named query, on simulated verdicts
in the embedded engine, every five minutes. The naive rules see the same counts and go through the
same waiting times. Needs numpy beside the extras; prints Markdown.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from naive import NAIVE
from simulate import BASELINE_MINUTES, LEARNT, Scenario, simulated, stored

from mast_trace_collector.storage import Store, migrate
from mast_trace_dashboards.alerts.evaluator import Evaluator
from mast_trace_dashboards.alerts.lifecycle import advance
from mast_trace_dashboards.alerts.rules import RULES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from simulate import Services

    from mast_trace_dashboards.alerts.lifecycle import Alert, AlertChange

EVERY: Final = 5
SHIPPED: Final = [rule for rule in RULES if rule.query == "specification_spike"]
TITLES: Final = {
    "mast-specification-page": "**exact tail, 10^-4 (pages)**",
    "mast-specification-warning": "**exact tail, 10^-3 (warns)**",
}
SCENARIOS: Final = tuple(
    Scenario(runs=runs, drift=drift, factor=factor, hours=hours, quiet=quiet, spiking=40)
    for drift in (0.0, 0.3)
    for runs, factor, hours, quiet in ((4, 4.0, 4, 40), (20, 3.0, 2, 20), (100, 3.0, 2, 8))
)


@dataclass
class Score:
    """The score of a rule.

    Attributes:
        false: episodes of firing in quiet weeks.
        delays: minutes from a spike's beginning until it fired, of those found while they lasted.
    """

    false: int = 0
    delays: list[float] = field(default_factory=list)


def looks(services: Services) -> Iterator[int]:
    """Yield the minutes at which the rules are evaluated."""
    yield from range(BASELINE_MINUTES, services.judged.shape[1] + 1, EVERY)


def shipped(store: Store, services: Services) -> Iterator[tuple[int, AlertChange]]:
    """Yield the changes of the shipped rules, with their minutes."""
    stored(store, services)
    evaluator = Evaluator(store, SHIPPED)
    for minute in looks(services):
        moment = LEARNT + timedelta(minutes=minute - BASELINE_MINUTES)
        for change in evaluator.look(moment):
            yield minute, change


def naive(services: Services) -> Iterator[tuple[int, AlertChange]]:
    """Yield the same for the naive ones."""
    alerts: dict[str, list[Alert]] = {each.title: [] for each in NAIVE}
    for minute in looks(services):
        for each in NAIVE:
            rows = each.values(services, minute)
            after, changes = advance(each.rule(), alerts[each.title], rows, minute * 60.0)
            alerts[each.title] = after
            yield from ((minute, change) for change in changes)


def firings(firing_changes: Iterable[tuple[int, AlertChange]]) -> Iterator[tuple[str, str, int]]:
    """Yield rule, service and minute of each alert that begins to fire."""
    for minute, change in firing_changes:
        if change.kind == "firing":
            yield change.alert.rule, dict(change.alert.labels)["service"], minute


def measured(store: Store, scenario: Scenario, seed: int) -> dict[str, Score]:
    """Return each rule's score in a scenario."""
    scores = {name: Score() for name in (*TITLES, *(each.title for each in NAIVE))}
    quiet = simulated(scenario, spiking=False, seed=seed)
    for firing_changes in (shipped(store, quiet), naive(quiet)):
        for rule, _, _ in firings(firing_changes):
            scores[rule].false += 1
    spiking = simulated(scenario, spiking=True, seed=seed)
    for firing_changes in (shipped(store, spiking), naive(spiking)):
        found: set[tuple[str, str]] = set()
        for rule, service, minute in firings(firing_changes):
            delay = minute - BASELINE_MINUTES
            if (rule, service) not in found and 0 < delay <= scenario.hours * 60:
                found.add((rule, service))
                scores[rule].delays.append(delay)
    return scores


def report(scenario: Scenario, scores: dict[str, Score]) -> str:
    """Return a scenario's table."""
    drift = f"rate drifts by {scenario.drift:.0%}" if scenario.drift else "steady rate"
    size = f"{scenario.quiet} quiet weeks; {scenario.spiking} spikes of {scenario.factor:g} times"
    lines = [
        f"### {scenario.runs:g} judged runs in half an hour, {drift}",
        "",
        f"{size} the usual rate for {scenario.hours} h.",
        "",
        "| rule | false episodes a week | spikes found | median delay |",
        "|---|---|---|---|",
    ]
    for name, score in scores.items():
        delay = f"{statistics.median(score.delays):.0f} min" if score.delays else "-"
        lines.append(
            f"| {TITLES.get(name, name)} | {score.false / scenario.quiet:.2f} "
            f"| {len(score.delays)} of {scenario.spiking} | {delay} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Simulate and print."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--quick", action="store_true", help="a tenth of the services")
    chosen = options.parse_args()
    for scenario in SCENARIOS:
        if chosen.quick:
            few = {"quiet": max(scenario.quiet // 10, 1), "spiking": scenario.spiking // 10}
            scenario = replace(scenario, **few)  # noqa: PLW2901
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as folder, Store.open(f"chdb://{folder}") as store:
            migrate(store)
            print(report(scenario, measured(store, scenario, chosen.seed)), flush=True)
        print(f"{time.monotonic() - began:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
