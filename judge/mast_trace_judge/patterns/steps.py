"""The jobs of a worker that keep patterns and their names up to date."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mast_trace_judge.patterns.indexing import PatternIndexer
from mast_trace_judge.patterns.naming import NamingPasses, PatternNamer
from mast_trace_judge.side_jobs import IndexPace, to_the_end

if TYPE_CHECKING:
    from collections.abc import Callable

    from mast_trace_collector.storage.store import Store
    from mast_trace_judge.config import WorkerConfig
    from mast_trace_judge.judge import Judge
    from mast_trace_judge.side_jobs import Step


def pattern_steps(
    store: Store, judge: Judge, config: WorkerConfig, judged: Callable[[], int]
) -> dict[str, Step]:
    """Return the steps of both jobs by name, for `SideJobs`.

    Args:
        store: of all projects.
        judge: its model gives the names.
        config: of the worker.
        judged: returns the number of verdicts that the worker has stored so far.
    """
    pace = IndexPace(PatternIndexer(store).index)
    namer = PatternNamer(store, judge, config.worker_pattern_name_tokens)
    passes = NamingPasses(namer, config.worker_pattern_names)
    indexed = 0

    async def keep() -> bool:
        nonlocal indexed
        new, indexed = judged() != indexed, judged()
        written = await to_the_end(pace.keep, judged=new)
        if written:
            passes.runs_were_indexed()
        return bool(written)

    return {"patterns": keep, "pattern names": passes.step}
