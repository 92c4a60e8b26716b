"""Judges runs again on request: after a change of the judge, or if they were left unscored."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from mast_trace_collector.storage.moments import nanoseconds
from mast_trace_collector.storage.runs import RunSummary, summary_of
from mast_trace_judge.batch import JudgedLocally, chunks_of, judge_chunk
from mast_trace_judge.store import verdicts as verdict_store
from mast_trace_judge.store.good_runs import GoodRuns
from mast_trace_judge.verdict_writer import VerdictWriter, key_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping, Sequence

    from mast_trace_collector.storage.store import Store
    from mast_trace_judge.judge import Judge
    from mast_trace_judge.verdict import Verdict
    from mast_trace_judge.verdict_writer import Judged

_AT_ONCE = 8
_RUNS = """
SELECT * FROM mast_runs
WHERE End >= fromUnixTimestamp64Nano({since:Int64}) AND Kind = ''
  AND ({project:Nullable(String)} IS NULL OR Project = {project:Nullable(String)})
  AND ({version:String} = '' OR (Project, TraceId) GLOBAL IN
      (SELECT Project, TraceId FROM mast_verdicts WHERE JudgeVersion = {version:String}))
  AND (Project, TraceId, Fingerprint) GLOBAL NOT IN
      (SELECT Project, TraceId, Fingerprint FROM mast_verdicts FINAL
       WHERE JudgeVersion = {present:String} AND Method NOT IN ('reading', 'provisional') AND (Status = 'ok' OR NOT {unscored:Bool}))
  -- Their spans are gone, and the verdict that they had stays.
  AND RunKey GLOBAL NOT IN (SELECT RunKey FROM mast_left_out)
ORDER BY End
"""


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
    old = {key_of(verdict): verdict for verdict in older}
    new = {key_of(verdict): verdict for verdict in newer}
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


@dataclass(frozen=True)
class Selection:
    """The selection of runs to judge again.

    Attributes:
        since: runs that ended then or later; all if None.
        of_version: only runs that this judge version has judged.
        unscored: also runs that the present version has left unscored.
        project: only runs of this project.
    """

    since: datetime | None = None
    of_version: str = ""
    unscored: bool = False
    project: str | None = None


async def rejudge(
    store: Store, judge: Judge, selection: Selection | None = None
) -> AsyncIterator[Verdict]:
    """Judge runs that the present judge version has not judged with their present content.

    Each verdict is stored before it is yielded, so that this may be interrupted and repeated.
    Answers of the model that are in the ledger are not asked for again. A run that cannot be judged now, because the
    database has no room for it, is left out.

    Raises:
        StorageError: the database does not answer.
    """
    runs = await asyncio.to_thread(_selected, store, judge, selection or Selection())
    stored: list[Verdict] = []
    writer = VerdictWriter(store, judge, stored.extend)
    good = GoodRuns(store)
    for chunk in chunks_of(runs):
        judged = await asyncio.to_thread(judge_chunk, store, judge, chunk, good)
        for batch in (judged[i : i + _AT_ONCE] for i in range(0, len(judged), _AT_ONCE)):
            found = await asyncio.gather(*(_finish(judge, writer, one) for one in batch))
            await writer.save([each for verdicts in found for each in verdicts])
            for verdict in stored:
                yield verdict
            stored.clear()


async def _finish(judge: Judge, writer: VerdictWriter, one: JudgedLocally) -> Sequence[Judged]:
    """Return the verdict on a run, or none where it may be judged later."""
    if one.for_model is not None:
        return [(one.run, await judge.judge_further(*one.for_model))]
    if one.verdict is not None:
        return [(one.run, one.verdict)]
    assert one.error is not None
    return writer.failed(one.run, one.error)


def _selected(store: Store, judge: Judge, selection: Selection) -> Sequence[RunSummary]:
    since = selection.since or datetime.fromtimestamp(0, timezone.utc)
    rows = store.query(
        _RUNS,
        {
            "since": nanoseconds(since),
            "project": selection.project,
            "version": selection.of_version,
            "present": judge.version,
            "unscored": selection.unscored,
        },
    )
    return [summary_of(row) for row in rows]
