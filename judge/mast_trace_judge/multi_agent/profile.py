"""The profile of a system: all measures of its runs.

Presence: the success of runs in which an agent acted, against runs in which it did not.

It is a hint only: an agent is often called because a run is hard. Leaving the agent out on purpose, in an
experiment with variants, tells its effect (leave-one-out; arXiv 2605.27621).
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from mast_trace.exceptions import StorageError
from mast_trace.trajectory import SpanRecord, read_trajectory
from mast_trace_collector.storage.run_spans import RunSpans
from mast_trace_collector.storage.runs import spans_of
from mast_trace_judge.intervals import newcombe
from mast_trace_judge.local.long_runs import is_long
from mast_trace_judge.multi_agent.hand_offs import hand_offs, roles
from mast_trace_judge.multi_agent.provenance import provenance
from mast_trace_judge.multi_agent.structure import concurrency, structure, talk
from mast_trace_judge.multi_agent.team_run import TeamRun, team_run
from mast_trace_judge.multi_agent.uptake import uptake
from mast_trace_judge.multi_agent.verification import verification

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from mast_trace_collector.storage import Store
    from mast_trace_judge.multi_agent.measure import Measure


_LEAST: Final = 5


@dataclass(frozen=True)
class Presence:
    """Runs with known outcome, with and without an action of an agent.

    Attributes:
        agent: its name.
        with_it: successes and runs in which it acted.
        without: successes and runs in which it did not.
        low: lower end of the 95 % interval of the difference, with minus without (Newcombe 1998).
        high: its upper end.
    """

    agent: str
    with_it: tuple[int, int]
    without: tuple[int, int]
    low: float
    high: float


def presence(runs: Sequence[TeamRun]) -> list[Presence]:
    """Return the agents that act in some runs and not in others, at least five of each."""
    known = [run for run in runs if run.trajectory.outcome in {"success", "failure"}]
    found: list[Presence] = []
    for agent in sorted({agent for run in known for agent in run.agents}):
        sides: dict[bool, list[bool]] = {True: [], False: []}
        for run in known:
            sides[agent in run.agents].append(run.trajectory.outcome == "success")
        counts = [(sum(sides[acted]), len(sides[acted])) for acted in (True, False)]
        if min(count[1] for count in counts) >= _LEAST:
            low, high = newcombe(*counts)
            found.append(Presence(agent, counts[0], counts[1], low, high))
    return found


_AT_ONCE: Final = 16
MOST_SPANS: Final = 5_000
"""Spans of the longest run that is read."""


def read_team_runs(
    store: Store, rows: Iterable[Mapping[str, Any]]
) -> Iterator[tuple[TeamRun | None, int]]:
    """Yield each run, or None where it is too long, with the number of runs that are done.

    Args:
        store: the database.
        rows: of the query ``team_runs``. Recorded outcomes count alone: the judge's would measure the judge.

    Raises:
        StorageError: the database does not answer.
    """
    done = 0
    left = iter(rows)
    while some := list(islice(left, _AT_ONCE)):
        short = [row for row in some if row["Spans"] <= MOST_SPANS]
        found = _read(store, short)
        for row in some:
            done += 1
            yield found.get((row["Project"], row["TraceId"])), done


def _read(store: Store, rows: list[Mapping[str, Any]]) -> dict[tuple[str, str], TeamRun]:
    """Return runs by project and trace id; one by one if they are too large together."""
    try:
        spans = spans_of(store, [row["TraceId"] for row in rows])
    except StorageError:
        spans = _one_by_one(store, rows)
    found: dict[tuple[str, str], TeamRun] = {}
    for row in rows:
        key = (row["Project"], row["TraceId"])
        if key not in spans:
            continue
        trajectory = dataclasses.replace(read_trajectory(spans[key]), outcome=row["Outcome"])
        found[key] = team_run(spans[key], trajectory)
    return found


def _one_by_one(
    store: Store, rows: Iterable[Mapping[str, Any]]
) -> dict[tuple[str, str], list[SpanRecord]]:
    """Return the spans of those runs that can be read whole."""
    found: dict[tuple[str, str], list[SpanRecord]] = {}
    for row in rows:
        pages = RunSpans(store, row["TraceId"], project=row["Project"])
        if not is_long(pages):
            found[row["Project"], row["TraceId"]] = [span for page in pages.read() for span in page]
    return found


@dataclass(frozen=True)
class TeamProfile:
    """The measures of one system, none of which is a score.

    Attributes:
        runs: number of runs that were read.
        teams: of these, the runs in which several agents act.
        without_content: runs whose texts were not recorded; measures of words do not see them.
        measures: in the order of the documentation.
        presences: success with and without each agent: hints, not effects.
    """

    runs: int
    teams: int
    without_content: int
    measures: tuple[Measure, ...]
    presences: tuple[Presence, ...]


def measured(runs: Sequence[TeamRun]) -> TeamProfile:
    """Return the profile of a system from its runs, all of one variant."""
    return TeamProfile(
        runs=len(runs),
        teams=sum(len(run.agents) > 1 for run in runs),
        without_content=sum(not any(step.text for step in run.actions) for run in runs),
        measures=(
            uptake(runs),
            provenance(runs),
            roles(runs),
            *talk(runs),
            concurrency(runs),
            *verification(runs),
            *hand_offs(runs),
            *structure(runs),
        ),
        presences=tuple(presence(runs)),
    )
