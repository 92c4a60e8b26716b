"""The profile of a system: all measures of its runs."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from mast_trace.exceptions import StorageError
from mast_trace.trajectory import read_trajectory
from mast_trace_collector.storage.run_spans import RunSpans
from mast_trace_collector.storage.runs import spans_of
from mast_trace_judge.local.long_runs import is_long
from mast_trace_judge.multi_agent.concurrency import concurrency
from mast_trace_judge.multi_agent.hand_offs import hand_offs
from mast_trace_judge.multi_agent.presence import Presence, presence
from mast_trace_judge.multi_agent.provenance import provenance
from mast_trace_judge.multi_agent.roles import roles
from mast_trace_judge.multi_agent.structure import structure, talk
from mast_trace_judge.multi_agent.team_run import TeamRun, team_run
from mast_trace_judge.multi_agent.uptake import uptake
from mast_trace_judge.multi_agent.verification import verification

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from mast_trace.trajectory import SpanRecord
    from mast_trace_collector.storage import Store
    from mast_trace_judge.multi_agent.measure import Measure
    from mast_trace_judge.multi_agent.team_run import TeamRun

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
