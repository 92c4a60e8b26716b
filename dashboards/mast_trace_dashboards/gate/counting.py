"""TwoCounts the runs of both sides of a comparison from the rows of the query `run_counts`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from mast_trace.taxonomy import FAILURE_MODES
from mast_trace_dashboards.queries import QUERIES
from mast_trace_judge.gate.comparison import FAILURES, Side

if TYPE_CHECKING:
    from mast_trace_collector.storage import Store

_EXAMPLES = 5
_CODES = tuple(FAILURE_MODES)


@dataclass(frozen=True)
class WantedSides:
    """The sides of a comparison.

    Attributes:
        moment: beginning of the new runs.
        since: beginning of the baseline.
        until: end of both.
        version: version or branch of the baseline; empty where the baseline is the time before ``moment``.
        new_version: version or branch of the new runs; any other than the baseline's if empty.
        services: names of services; all if empty.
        projects: likewise.
    """

    moment: datetime
    since: datetime
    until: datetime
    version: str = ""
    new_version: str = ""
    services: Sequence[str] = ()
    projects: Sequence[str] = ()

    def is_old(self, row: Mapping[str, Any]) -> bool:
        """Return whether the runs of a row are of the baseline."""
        return self.version in _names(row) if self.version else not row["Later"]

    def is_new(self, row: Mapping[str, Any]) -> bool:
        """Return whether they are the new ones."""
        named = not self.new_version or self.new_version in _names(row)
        return bool(row["Later"]) and named and not self.is_old(row)


@dataclass(frozen=True)
class Sides:
    """Both sides of a comparison.

    Attributes:
        old: the baseline.
        new: the new runs.
        versions: versions and branches that were seen, with their runs.
        services: names of the services of the compared runs.
        judge: version of the judge whose verdicts are compared; empty without any.
    """

    old: Side
    new: Side
    versions: Mapping[str, int] = field(default_factory=dict)
    services: Sequence[str] = ()
    judge: str = ""


def count_sides(store: Store, wanted: WantedSides) -> Sides:
    """Count the runs of both sides.

    Raises:
        StorageError: the database does not answer.
    """
    rows = QUERIES["run_counts"].run(
        store,
        since=min(wanted.since, wanted.moment),
        until=wanted.until,
        moment=wanted.moment,
        services=list(wanted.services),
        projects=list(wanted.projects),
    )
    versions: Counter[str] = Counter()
    for row in rows:
        for name in _names(row):
            versions[name] += row["Runs"]
    new = [row for row in rows if wanted.is_new(row)]
    old = [row for row in rows if wanted.is_old(row)]
    judge = _judge_of(new) or _judge_of(old)
    services = sorted({row["ServiceName"] for row in (*new, *old)})
    return Sides(_side(old, judge), _side(new, judge), versions, services, judge)


def _names(row: Mapping[str, Any]) -> set[str]:
    return {row["Version"], row["Branch"]} - {""}


def _judge_of(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return the version of the judge that judged most of these runs."""
    counted: Counter[str] = Counter()
    for row in rows:
        if row["JudgeVersion"]:
            counted[row["JudgeVersion"]] += row["Runs"]
    return max(counted, key=lambda version: (counted[version], version), default="")


def _side(rows: Sequence[Mapping[str, Any]], judge: str) -> Side:
    """Count the runs of one side.

    A verdict of another version of the judge counts in no rate, nor does an outcome that it found: a rate
    would change with the judge.
    """
    states: Counter[str] = Counter()
    examined: Counter[str] = Counter()
    shown: Counter[str] = Counter()
    examples: dict[str, list[str]] = {}
    known = failures = other = 0
    for row in rows:
        runs = int(row["Runs"])
        states[row["State"]] += runs
        foreign = bool(row["JudgeVersion"]) and row["JudgeVersion"] != judge
        other += runs if foreign else 0
        if row["Outcome"] in {"success", "failure"} and not (
            foreign and row["OutcomeSource"] == "judged"
        ):
            known += runs
            if row["Outcome"] == "failure":
                failures += runs
                examples.setdefault(FAILURES, []).extend(row["Examples"])
        if foreign:
            continue
        for bit, code in enumerate(_CODES):
            if row["ExaminedBits"] >> bit & 1:
                examined[code] += runs
            if row["ShownBits"] >> bit & 1:
                shown[code] += runs
                examples.setdefault(code, []).extend(row["Examples"])
    return Side(
        runs=sum(states.values()),
        states=dict(states),
        known=known,
        failures=failures,
        examined=dict(examined),
        shown=dict(shown),
        other_judge=other,
        examples={key: tuple(found[:_EXAMPLES]) for key, found in examples.items()},
    )
