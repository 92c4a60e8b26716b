"""Faults that earlier injections into a run have decided: they are not tried again.

Another seed, count or choice of operators makes another plan, in which faults of earlier ones may stand. To try such a
fault anew until it is kept would let chance decide, and the evidence of a second trial starts from nothing.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from mast_trace_judge.arms import RECOVERY
from mast_trace_judge.store.injections import plans_of_faults
from mast_trace_judge.store.replay_plans import plans_of_run
from mast_trace_judge.store.replays import reservations_of, results_of
from mast_trace_lab.inject.trial import Trial

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mast_trace_collector.storage import Store
    from mast_trace_judge.store.replays import ReplayPlan
    from mast_trace_lab.inject.faults import Fault

DECIDED: Final = frozenset({"kept", "repaired", "survived", "unproved"})
"""Verdicts that stay; what was censored may be tried again, under another limit or on a quieter machine."""
_PHASES: Final = frozenset({"injection", RECOVERY})


@dataclass(frozen=True)
class Earlier:
    """A fault that an earlier injection has decided.

    Attributes:
        trial: its trial, with the stored results.
        seed: by which it was chosen then.
        plan_id: of that injection.
    """

    trial: Trial
    seed: int
    plan_id: str


def decided_before(
    store: Store,
    plan: ReplayPlan,
    faults: Sequence[Fault],
    later: Callable[[int, str], Sequence[int] | None],
    *,
    prefix: str,
) -> Mapping[int, Earlier]:
    """Return the faults of a plan that other injections with the same setup have decided, by number.

    A fault that this plan has begun to replay is not among them, so that a resumed injection goes on as it began; nor
    is one whose label is no longer stored, or is another setup's, or that was decided by the rules of an earlier version.

    Args:
        store: the database.
        plan: the plan.
        faults: its faults.
        later: see `mast_trace_lab.inject.trial.Trial`, by number of the fault and id of the plan.
        prefix: of the names of plans of injections.

    Raises:
        StorageError: the database does not answer.
    """
    others = [
        (each, json.loads(each.text))
        for each in plans_of_run(store, plan.project, plan.trace_id, prefix=prefix)
        if each.plan_id != plan.plan_id and each.fingerprint == plan.fingerprint
    ]
    own = json.loads(plan.text)
    same = ("setup", "rules")
    others = [
        (each, shape)
        for each, shape in others
        if all(shape.get(key) == own.get(key) for key in same)
    ]
    if not others:
        return {}
    begun = {each.pair for each in results_of(store, plan) if each.phase in _PHASES}
    begun |= {each.pair for each in reservations_of(store, plan) if each.phase in _PHASES}
    stored = plans_of_faults(store, plan.project, plan.trace_id)
    found: dict[int, Earlier] = {}
    for other, shape in others:
        numbers = {identity: number for number, identity in enumerate(shape["faults"])}
        results = results_of(store, other)
        clean = [each for each in results if each.phase not in _PHASES]
        for number, fault in enumerate(faults):
            if number in begun or number in found or fault.id not in numbers:
                continue
            if stored.get(fault.id) != other.plan_id:
                continue
            trial = Trial(fault, later=partial(later, number, other.plan_id), clean=clean)
            for each in results:
                if each.phase in _PHASES and each.pair == numbers[fault.id]:
                    trial.tell(each)
            if trial.verdict in DECIDED and trial.ask() is None:
                found[number] = Earlier(trial, int(shape["seed"]), other.plan_id)
    return found
