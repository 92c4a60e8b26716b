"""Errors for arms that cannot be replayed, or say nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mast_trace.exceptions import MastTraceError

if TYPE_CHECKING:
    from mast_trace.trajectory import Trajectory


class NotAnArm(MastTraceError):
    """The run has no such step, or its step does not allow the change."""


class NoChange(NotAnArm):
    """A change after which the step would be as it was recorded; such a replay proves nothing."""


class NotConfirmable(MastTraceError):
    """The run cannot be confirmed; the text says why, and what to do."""


def told(recorded: Trajectory, index: int) -> str:
    """Return a step in words, such as ``analyst calls look_up``."""
    step = recorded.steps[index]
    did = f"calls {step.tool}" if step.tool else f"says {step.text[:40]!r}"
    return f"{step.agent or 'an unknown agent'} {did}"
