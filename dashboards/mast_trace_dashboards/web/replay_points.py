"""The steps of a stored run from which replays can run on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from mast_trace_dashboards.commands import has_command
from mast_trace_judge.decision_points import decision_points

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mast_trace_dashboards.stored_run import StoredRun

_LONG: Final = (
    "The steps at which a model answered are marked in short runs only. "
    "`mast-trace replay RUN --keep STEP -- YOUR COMMAND` replays this one from a step."
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
