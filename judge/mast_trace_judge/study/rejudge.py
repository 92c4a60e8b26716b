"""Judges runs again on request: after a change of the judge, or if they were left unscored."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from mast_trace_collector.storage.moments import nanoseconds
from mast_trace_collector.storage.runs import summary_of
from mast_trace_judge.batch import chunks_of, judge_chunk
from mast_trace_judge.verdict_writer import VerdictWriter

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from mast_trace_collector.storage.runs import RunSummary
    from mast_trace_collector.storage.store import Store
    from mast_trace_judge.batch import JudgedLocally
    from mast_trace_judge.judge import Judge
    from mast_trace_judge.verdict import Verdict
    from mast_trace_judge.verdict_writer import Judged

_AT_ONCE = 8

_RUNS = """
SELECT * FROM mast_runs
WHERE End >= fromUnixTimestamp64Nano({since:Int64}) AND Kind = ''
  AND ({project:Nullable(String)} IS NULL OR Project = {project:Nullable(String)})
  AND ({version:String} = '' OR (Project, TraceId) IN
      (SELECT Project, TraceId FROM mast_verdicts WHERE JudgeVersion = {version:String}))
  AND (Project, TraceId, Fingerprint) NOT IN
      (SELECT Project, TraceId, Fingerprint FROM mast_verdicts FINAL
       WHERE JudgeVersion = {present:String} AND (Status = 'ok' OR NOT {unscored:Bool}))
  -- Their spans are gone, and the verdict that they had stays.
  AND RunKey NOT IN (SELECT RunKey FROM mast_left_out)
ORDER BY End
"""


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
    for chunk in chunks_of(runs):
        judged = await asyncio.to_thread(judge_chunk, store, judge, chunk)
        for batch in (judged[i : i + _AT_ONCE] for i in range(0, len(judged), _AT_ONCE)):
            found = await asyncio.gather(*(_finish(judge, writer, one) for one in batch))
            await writer.save([each for verdicts in found for each in verdicts])
            for verdict in stored:
                yield verdict
            stored.clear()


async def _finish(judge: Judge, writer: VerdictWriter, one: JudgedLocally) -> Sequence[Judged]:
    """Return the verdict on a run, or none where it may be judged later."""
    if one.error is not None:
        return writer.failed(one.run, one.error)
    if one.verdict is not None:
        return [(one.run, one.verdict)]
    return [(one.run, await judge.judge_further(*one.for_model))]


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
