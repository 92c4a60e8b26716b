"""The look-up of one run: its row and its verdict, before its steps are read; and of the good run nearest to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from mast_trace_dashboards.commands import has_command
from mast_trace_dashboards.queries import QUERIES
from mast_trace_dashboards.run_names import SharedId
from mast_trace_dashboards.stored_run import StoredRun
from mast_trace_judge.decision_points import decision_points
from mast_trace_judge.proof import has_effect
from mast_trace_judge.store.confirmations import confirmation_of
from mast_trace_judge.store.model_records import ModelRecord, record_behind
from mast_trace_judge.store.verdicts import load_latest

if TYPE_CHECKING:
    from mast_trace_collector.storage import Store
    from mast_trace_judge.confirmation import Confirmation
    from mast_trace_judge.verdict import Verdict


_CHANGES: Final = """
SELECT max(LastSeen) AS Seen, Seen <= now64(3) - toIntervalMillisecond(toUInt64({idle:Float64} * 1000)) AS Idle,
  (SELECT greatest(max(JudgedAt), max(ShownAt)) FROM mast_findings WHERE RunKey GLOBAL IN
    (SELECT RunKey FROM mast_run_states WHERE TraceId = {run:String})) AS Judged,
  (SELECT max(ConfirmedAt) FROM mast_confirmations WHERE TraceId = {run:String}) AS Confirmed
FROM mast_run_states WHERE TraceId = {run:String}"""


_LONG: Final = (
    "The steps at which a model answered are marked in short runs only. "
    "`mast-trace replay RUN --change keep:STEP` replays this one from a step."
)
_NOT_INSTALLED: Final = "The commands that replay a run are not installed here."
_NO_CALLS: Final = "This run cannot be replayed: no model call of it was recorded."


@dataclass(frozen=True)
class ReplayPoints:
    """The steps from which replays run on.

    Attributes:
        answers: the recorded answer of each such step.
        obstacle: a sentence on why there are none; empty otherwise.
    """

    answers: Mapping[int, str] = field(default_factory=dict)
    obstacle: str = ""


def points_of(stored: StoredRun) -> ReplayPoints:
    """Return the steps of a run at which a model answered.

    Raises:
        StorageError: the database does not answer.
    """
    if not has_command("replay"):
        return ReplayPoints(obstacle=_NOT_INSTALLED)
    trajectory = stored.trajectory()
    if trajectory is None:
        return ReplayPoints(obstacle=_LONG)
    answers = {point.step: point.text for point in decision_points(trajectory)}
    return ReplayPoints(answers, "" if answers else _NO_CALLS)


@dataclass(frozen=True)
class FoundRun:
    """A run that was looked up; its steps are not read yet.

    Attributes:
        row: of the query `run`.
        stored: its steps and spans.
        verdict: the newest one, with what replays have shown; None if there is none.
        record: what labels tell of the model behind the verdict; None where they tell nothing, as after
            replays have changed it.
        confirmation: what replays have shown, also where there is no verdict; None where there were
            none.
    """

    row: dict[str, Any]
    stored: StoredRun
    verdict: Verdict | None
    record: ModelRecord | None = None
    confirmation: Confirmation | None = None

    @cached_property
    def points(self) -> ReplayPoints:
        """The steps from which replays run on."""
        return points_of(self.stored)

    @cached_property
    def has_good(self) -> bool:
        """True if there is a good run to compare it with."""
        # Where good runs are compared, tables of patterns are made: a look at a run waits for none.
        from mast_trace_judge.store.good_runs import GoodRuns

        return GoodRuns(self.stored.store).any_beside(self.stored.trace_id, *_program(self))

    @cached_property
    def places(self) -> dict[str, int]:
        """The step in which each quote of the verdict stands."""
        return self.stored.places_of(self.verdict)


def find_run(
    store: Store, trace_id: str, project: str | None = None, *, idle: float | None = None
) -> FoundRun | None:
    """Look a run up; None if there is none.

    Args:
        store: the database.
        trace_id: of the run.
        project: of the run; if absent, the id must be of one project.
        idle: seconds after which a run without a root counts as finished; the default if absent.

    Raises:
        SharedId: several projects have the run, and none is named.
        StorageError: the database does not answer.
    """
    given = {} if idle is None else {"idle": idle}
    rows = QUERIES["run"].run(store, run=trace_id, **given)
    ours = [row for row in rows if project is None or row["Project"] == project]
    if not ours:
        return None
    if len(ours) > 1:
        raise SharedId(trace_id, sorted(str(row["Project"]) for row in ours))
    row = ours[0]
    stored = StoredRun(store, trace_id, row["Project"], size=row["Spans"])
    verdict = load_latest(store, trace_id, project=row["Project"])
    if verdict is None:
        shown = confirmation_of(store, stored.project, trace_id, fingerprint=stored.fingerprint)
        return FoundRun(row, stored, None, confirmation=shown)
    of_labels = None if has_effect(verdict.confirmation) else verdict
    record = record_behind(store, of_labels)
    return FoundRun(row, stored, verdict, record, verdict.confirmation)


def last_changes(store: Store, trace_id: str, *, idle: float) -> tuple[str, str]:
    """Return texts that differ once anything of a run has come, and once anybody has judged it; cheaper than the run.

    Args:
        store: the database.
        trace_id: of the run.
        idle: seconds after which a run without a root counts as finished.

    Raises:
        StorageError: the database does not answer.
    """
    (row,) = store.query(_CHANGES, {"run": trace_id, "idle": idle})
    return f"{row['Seen']} {row['Idle']}", f" {row['Judged']} {row['Confirmed']}"


def nearest_good(store: Store, found: FoundRun) -> str | None:
    """Find the good run of the same program, if possible of the same version, with the nearest task; None if there is none.

    Raises:
        StorageError: the database does not answer.
    """
    task = found.stored.task()
    from mast_trace_judge.store.good_runs import GoodRuns

    good = GoodRuns(store).nearest(found.stored.trace_id, task, *_program(found))
    return good[0].trace_id if good else None


def _program(found: FoundRun) -> tuple[str, str, str]:
    return found.row["Project"], found.row["ServiceName"], found.row["Name"]
