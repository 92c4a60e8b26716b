"""Simulated services: judged runs by the minute, quiet or with a spike of known beginning."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from mast_trace.taxonomy import FAILURE_MODES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mast_trace_collector.storage import Store

BEGIN: Final = datetime(2026, 3, 2, tzinfo=timezone.utc)
"""The first minute; rules are evaluated from `LEARNT` on."""
BASELINE_MINUTES: Final = 7 * 24 * 60 + 6 * 60
LEARNT: Final = BEGIN + timedelta(minutes=BASELINE_MINUTES)
BASE_RATE: Final = 0.08
"""Share of the runs that violate while nothing is wrong."""
_DAILY_SWING = 0.6
_DRIFT_MINUTES = 6 * 60
_TABLE = "mast_findings"


@dataclass(frozen=True)
class Scenario:
    """One row of the report.

    Attributes:
        runs: judged runs in half an hour, on the average of a day.
        drift: standard deviation of the rate from one quarter of a day to the next, relative to it.
        factor: times the usual rate during a spike.
        hours: duration of a spike.
        quiet: services that are watched for a week without a spike.
        spiking: services with one spike each.
    """

    runs: float
    drift: float
    factor: float
    hours: int
    quiet: int
    spiking: int


@dataclass(frozen=True)
class Services:
    """Counts by service and minute.

    Attributes:
        names: of the services.
        judged: (services, minutes) judged runs.
        hits: (services, minutes) those that violate.
    """

    names: list[str]
    judged: NDArray[np.int64]
    hits: NDArray[np.int64]


def simulated(
    scenario: Scenario, *, spiking: bool, seed: int, watched_minutes: int | None = None
) -> Services:
    """Draw the services of a scenario.

    Traffic is Poisson with a daily rhythm whose phase differs from service to service, so that
    spikes begin at all times of day.

    Args:
        scenario: the scenario to draw.
        spiking: those with a spike, which begins at `LEARNT`; else the quiet ones.
        seed: of the draw.
        watched_minutes: minutes after `LEARNT`; a week, or the spike and an hour, if absent.
    """
    draw = np.random.default_rng([seed, int(spiking)])
    count = scenario.spiking if spiking else scenario.quiet
    usual = (scenario.hours + 1) * 60 if spiking else 7 * 24 * 60
    minutes = np.arange(BASELINE_MINUTES + (watched_minutes or usual))
    phase = draw.uniform(0, 2 * np.pi, (count, 1))
    rhythm = 1 + _DAILY_SWING * np.sin(2 * np.pi * minutes / (24 * 60) + phase)
    judged = draw.poisson(scenario.runs / 30 * rhythm)
    rate = np.full((count, len(minutes)), BASE_RATE)
    if scenario.drift:
        shape = 1 / scenario.drift**2
        quarters = len(minutes) // _DRIFT_MINUTES + 1
        drifting = draw.gamma(shape, 1 / shape, (count, quarters))
        rate *= np.repeat(drifting, _DRIFT_MINUTES, axis=1)[:, : len(minutes)]
    if spiking:
        rate[:, BASELINE_MINUTES : BASELINE_MINUTES + scenario.hours * 60] *= scenario.factor
    names = [f"{'spiking' if spiking else 'quiet'}-{number}" for number in range(count)]
    return Services(names, judged, draw.binomial(judged, np.minimum(rate, 0.95)))


def stored(store: Store, services: Services) -> None:
    """Put the runs where the shipped query finds the newest verdict of each run."""
    store.command(f"TRUNCATE TABLE {_TABLE}")
    for service, name in enumerate(services.names):
        store.insert_columns(_TABLE, *_columns(services, service, name))


def _columns(services: Services, service: int, name: str) -> tuple[list[str], list[list[Any]]]:
    judged, hits = services.judged[service], services.hits[service]
    ends: list[datetime] = []
    modes: list[list[str]] = []
    for minute in np.flatnonzero(judged):
        # In the middle of its minute: no evaluation coincides with a run.
        end = BEGIN + timedelta(minutes=int(minute), seconds=30)
        ends += [end] * int(judged[minute])
        modes += [["1.3"]] * int(hits[minute]) + [[]] * int(judged[minute] - hits[minute])
    runs = len(ends)
    columns = {
        "TraceId": [f"{service:08x}{run:024x}" for run in range(runs)],
        "Status": ["ok"] * runs,
        "ServiceName": [name] * runs,
        "Framework": ["ag2"] * runs,
        "Outcome": ["failure" if found else "success" for found in modes],
        "RunStart": ends,
        "RunEnd": ends,
        "Examined": [list(FAILURE_MODES) for _ in modes],
        "Modes.Code": modes,
        "Modes.Probability": [[0.9] * len(found) for found in modes],
        "Modes.Evidence": [["exact"] * len(found) for found in modes],
    }
    return list(columns), list(columns.values())
