"""A run of a labelled set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Labelled:
    """One labelled run of a set.

    Attributes:
        id: of the run in the set.
        source: ``injection`` or ``replay``.
        group: original run; runs of a group are never divided by a split.
        operator: name of the operator; empty for ``replay``.
        mode: the planted failure mode; empty if none is known.
        step: the labelled step.
        agent: its agent; empty where no agent is to blame.
        decisive: whether the step is decisive; otherwise it is the origin, or the run succeeded.
        failed: whether the run failed. One that succeeded is a negative for the failure, and a positive
            for the mode's rule: the fault is in it.
        missed_by: agents that acted after the step, if the run failed; without the one to blame.
        success_after: success rate after the fault; None if unknown.
        point_of_no_return: step after which runs hardly ever succeed if all up to it is kept; None if not known.
        e_value: evidence that the fault is the cause.
        system: service of the program.
        framework: its framework.
        split: ``train``, ``validation`` or ``test``, by group.
        held_out_operator: whether the operator is one of those that no fit should see.
        uncertain: the reason for which the operator's labels are uncertain; empty if they are not.
        run: the run as JSON types.
        confirmation: what replays have shown of a real failure, as JSON types; None for ``injection``.
    """

    id: str
    source: str
    group: str
    operator: str
    mode: str
    step: int
    agent: str
    decisive: bool
    failed: bool
    missed_by: tuple[str, ...]
    success_after: float | None
    point_of_no_return: int | None
    e_value: float | None
    system: str
    framework: str
    split: str
    held_out_operator: bool
    uncertain: str
    run: dict[str, Any]
    confirmation: dict[str, Any] | None = None
