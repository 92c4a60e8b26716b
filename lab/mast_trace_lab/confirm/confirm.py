"""Confirms a run's decisive error: conducts its experiment, and stores the conclusion."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mast_trace.exceptions import StorageError
from mast_trace_judge.decision_points import decision_points
from mast_trace_judge.store.confirmations import record_confirmation
from mast_trace_judge.store.verdicts import load_judged
from mast_trace_lab.confirm.judged import with_judged_steps
from mast_trace_lab.confirm.statistics import Experiment
from mast_trace_lab.program.budget import Budget, DailyBudget, check_limits
from mast_trace_lab.program.conducting import Conducting, Progress
from mast_trace_lab.replay.arm_runner import executing

if TYPE_CHECKING:
    from collections.abc import Callable

    from mast_trace_judge.confirmation import Confirmation
    from mast_trace_lab.confirm.preparation import FailedRun, Prepared

_KEPT: Final = "the interrupted runs that it continues were kept, and the error may lie in them"


@dataclass(frozen=True)
class Stopped:
    """The end of a confirmation.

    Attributes:
        confirmation: the conclusion, as stored.
        reason: the limit that ended it before the experiment did; empty if it ran to its end.
        of_day: whether that is the budget of the day.
    """

    confirmation: Confirmation
    reason: str = ""
    of_day: bool = False


class Confirming(Conducting[Experiment]):
    """One confirmation of one run; see `Conducting` for its arguments."""

    def run(self) -> Stopped:
        """Run replays until the experiment or the budget ends, and store the conclusion.

        Raises:
            StorageError: the database did not answer for a minute.
            MastTraceError: a replay could not be started.
        """
        try:
            limit = self.replay()
        except KeyboardInterrupt:
            with suppress(StorageError):  # the results are stored, and the next process concludes
                self.conclude()
            raise
        stored = self.conclude()
        self._changed(self.progress())
        return Stopped(stored, str(limit or ""), limit is not None and limit.of_day)

    def conclude(self) -> Confirmation:
        """Store what the results so far have shown, and return it.

        Raises:
            StorageError: the database did not answer for a minute.
        """
        conclusion = self._experiment.conclusion()
        if self._not_isolated:
            conclusion = _not_comparable(conclusion, self._not_isolated)
        elif self._setup.earlier and conclusion.status == "systematic":
            conclusion = conclusion.model_copy(update={"text": f"{conclusion.text}; {_KEPT}"})
        return self._patiently(lambda: self._stored(conclusion))

    def _stored(self, conclusion: Confirmation) -> Confirmation:
        judged = load_judged(self._store, self._plan.trace_id, project=self._plan.project)
        whole = with_judged_steps(conclusion, judged, decision_points(self._recorded))
        return record_confirmation(self._store, self._plan, whole)


def _not_comparable(conclusion: Confirmation, reason: str) -> Confirmation:
    """Return a conclusion that names no step, because the replays cannot be compared."""
    return conclusion.model_copy(
        update={
            "status": "not isolated",
            "text": reason,
            "origin": None,
            "origin_agent": "",
            "point_of_no_return": None,
            "point_agent": "",
            "refuted": (),
        }
    )


def confirming(
    failed: FailedRun,
    prepared: Prepared,
    budget: Budget,
    *,
    day: DailyBudget | None = None,
    jobs: int = 1,
    changed: Callable[[Progress], None] = lambda _progress: None,
) -> Confirming:
    """Return the confirmation of a prepared experiment, not yet resumed.

    Args:
        failed: the run.
        prepared: its experiment.
        budget: of the experiment.
        day: the budget of the day over all runs; its dollars need prices.
        jobs: replays that run at the same time, each in processes of its own.
        changed: called after each change of the state.

    Raises:
        ConfigurationError: dollars are limited and a price is unknown, or replays that run at the same
            time would share the state that ``reset`` restores.
    """
    recorded, setup = failed.recorded, failed.setup
    return Confirming(
        failed.store,
        prepared.plan,
        prepared.experiment,
        recorded,
        setup,
        executing(recorded, setup),
        budget,
        cost=check_limits(
            recorded, setup, budget, jobs=jobs, capped=day is not None and day.limits_cost
        ),
        day=day,
        jobs=jobs,
        changed=changed,
    )
