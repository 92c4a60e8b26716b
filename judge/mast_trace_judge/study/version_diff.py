"""Differences between the verdicts of two judge versions on the same runs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mast_trace_judge.store import verdicts as verdict_store

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from mast_trace_collector.storage.store import Store
    from mast_trace_judge.verdict import Verdict


@dataclass(frozen=True)
class RunDiff:
    """The changes of one run's verdict.

    Attributes:
        gained: codes that only the newer verdict reports.
        lost: codes that only the older verdict reports.
        outcome: (older, newer), None where they are equal.
        decisive: (older, newer) decisive steps, None where they are equal.
        status: (older, newer), None where they are equal.
    """

    trace_id: str
    name: str
    gained: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    outcome: tuple[str, str] | None = None
    decisive: tuple[int | None, int | None] | None = None
    status: tuple[str, str] | None = None

    @property
    def changed(self) -> bool:
        """True if anything differs."""
        return bool(self.gained or self.lost or self.outcome or self.decisive or self.status)


@dataclass(frozen=True)
class VersionDiff:
    """The changes from one judge version to another.

    Attributes:
        compared: runs that both have judged with the same content.
        only_before: runs that only the older has judged, or with other content.
        only_after: likewise for the newer.
        changed: the runs on which they differ.
        gained: number of runs that gained each code.
        lost: number of runs that lost it.
        cost_usd: (older, newer) cost of the compared runs.
    """

    before: str
    after: str
    compared: int
    only_before: int
    only_after: int
    changed: tuple[RunDiff, ...]
    gained: Mapping[str, int] = field(default_factory=dict)
    lost: Mapping[str, int] = field(default_factory=dict)
    cost_usd: tuple[float, float] = (0.0, 0.0)


def diff_versions(
    store: Store, before: str, after: str, *, since: datetime | None = None
) -> VersionDiff:
    """Compare the verdicts of two judge versions on the runs that both have judged.

    Raises:
        StorageError: the database does not answer.
    """
    return diff_verdicts(
        before,
        after,
        verdict_store.load_version(store, before, since=since),
        verdict_store.load_version(store, after, since=since),
    )


def diff_verdicts(
    before: str, after: str, older: Iterable[Verdict], newer: Iterable[Verdict]
) -> VersionDiff:
    """Compare two sets of verdicts, run by run; see `diff_versions`."""
    old = {_content(verdict): verdict for verdict in older}
    new = {_content(verdict): verdict for verdict in newer}
    shared = [key for key in new if key in old]
    diffs = [_diff(old[key], new[key]) for key in shared]
    changed = tuple(diff for diff in diffs if diff.changed)
    return VersionDiff(
        before=before,
        after=after,
        compared=len(shared),
        only_before=len(old) - len(shared),
        only_after=len(new) - len(shared),
        changed=changed,
        gained=dict(sorted(Counter(code for diff in changed for code in diff.gained).items())),
        lost=dict(sorted(Counter(code for diff in changed for code in diff.lost).items())),
        cost_usd=(
            sum(old[key].cost_usd for key in shared),
            sum(new[key].cost_usd for key in shared),
        ),
    )


def _content(verdict: Verdict) -> tuple[str, str, str]:
    return verdict.project, verdict.trace_id, verdict.fingerprint


def _diff(old: Verdict, new: Verdict) -> RunDiff:
    old_codes = {mode.code for mode in old.modes}
    new_codes = {mode.code for mode in new.modes}
    old_step = old.decisive.step if old.decisive else None
    new_step = new.decisive.step if new.decisive else None
    return RunDiff(
        trace_id=new.trace_id,
        name=new.name,
        gained=tuple(sorted(new_codes - old_codes)),
        lost=tuple(sorted(old_codes - new_codes)),
        outcome=None if old.outcome == new.outcome else (old.outcome, new.outcome),
        decisive=None if old_step == new_step else (old_step, new_step),
        status=None if old.status == new.status else (old.status, new.status),
    )
