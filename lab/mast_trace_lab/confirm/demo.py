"""The last act of the demo: replays prove the decisive error of one run."""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from mast_trace.exceptions import MastTraceError
from mast_trace_collector.storage.runs import run_summary
from mast_trace_dashboards.local import demo
from mast_trace_judge.batch import read_alone
from mast_trace_lab.confirm.confirm import confirming
from mast_trace_lab.confirm.preparation import FailedRun, check
from mast_trace_lab.confirm.statistics import ExperimentLimits
from mast_trace_lab.program.budget import Budget
from mast_trace_lab.program.forking import LazyParent
from mast_trace_lab.program.setup import Setup

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from mast_trace_collector.storage import Store
    from mast_trace_judge.confirmation import Confirmation

POLICY: Final = "trip_policy.py"
"""The model of the replays: it reads what it is shown."""
REPLAYS: Final = 13
"""Number of replays that this usually takes, for the progress bar."""
_LIMITS: Final = replace(
    ExperimentLimits(), verifications=1, scores=0, start_runs=3, screening_runs=6
)
"""Fewer replays than `mast-trace confirm` runs, because this model makes no errors at random."""
_AT_A_TIME: Final = 2
_SECONDS: Final = 60.0
_IMPORTED: Final = ("ag2", "ag2.config", "ag2.network", "openai", "mast_trace_instrumentations.ag2")
"""Modules that replays share, because importing them takes most of their time; they start no threads."""


def confirm(
    store: Store,
    row: Mapping[str, Any],
    program: str,
    argument: str,
    done: Callable[[int], None] = lambda _replays: None,
) -> Confirmation:
    """Confirm a failed act's decisive error by replays of its program, and store the conclusion.

    Args:
        store: the database.
        row: of the act's run.
        program: its program under `examples`.
        argument: of the program.
        done: told the number of replays that are done.

    Raises:
        MastTraceError: the model of the replays does not start, or the run cannot be confirmed.
    """
    project, trace_id = row["Project"], row["TraceId"]
    run = run_summary(store, trace_id, project=project)
    if run is None:
        raise MastTraceError(f"run {trace_id} is not stored")
    recorded = read_alone(store, run)
    command = (sys.executable, str(demo.examples() / program), argument)
    with _model() as address, LazyParent(_IMPORTED, _AT_A_TIME) as parent:
        setup = Setup(
            command=command,
            timeout=_SECONDS,
            parent=parent,
            environment={
                **dict.fromkeys(demo.OTHERS_MODEL, ""),
                "OPENAI_API_KEY": "scripted",
                "OPENAI_BASE_URL": address,
                "LANGSMITH_TRACING": "false",
            },
        )
        failed = FailedRun(store, run, recorded, setup, check(recorded, setup))
        work = confirming(
            failed,
            failed.plan(_LIMITS),
            Budget(),
            jobs=_AT_A_TIME,
            changed=lambda state: done(state.replays),
        )
        return work.run().confirmation


@contextmanager
def _model() -> Iterator[str]:
    """Start the model of the replays; yield its address."""
    process = subprocess.Popen(
        [sys.executable, str(demo.examples() / POLICY)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        address = process.stdout.readline().strip() if process.stdout else ""
        if not address:
            raise MastTraceError(f"{POLICY} has not started")
        yield address
    finally:
        process.kill()
        process.communicate()
