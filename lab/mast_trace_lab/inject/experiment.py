"""The experiment of `mast-trace inject` on one run: it asks for replays, as many at a time as it may.

The run is replayed without a change, then live from its start, because a system that fails by itself
cannot show which failure a fault has caused. After that each fault is tried by a `Trial` of its own. Where the live
replays show that the program repeats itself, the faults of one step share their restored replays: these are all alike.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Final

from mast_trace_judge.arms import RECOVERY, ArmResult, ReplayArm
from mast_trace_lab.inject.trial import TIMES_AS_MUCH, repeats
from mast_trace_lab.inject.trial import Trial as FaultTrial
from mast_trace_lab.program.budget import ReplayTrial, ResultMismatch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mast_trace_lab.inject.faults import Fault

STARTS: Final = 4
"""Replays of the whole program, live."""
LEAST_SUCCESS: Final = 0.5
"""The success rate below which a system is refused."""
RULES: Final = 4
"""Number of the rules by which replays are asked for; results that others have asked for are not taken up again."""
_PHASE: Final = "injection"


class InjectionExperiment:
    """An ask/tell experiment without input or output; the same results ask for the same replays.

    Args:
        faults: the faults, in the order in which they are tried.
        places: number of the run's model answers.
        calls: live model calls that are expected after each step, by step.
        later: returns the steps of a fault's stored failure that are looked at, by number of the fault; None
            if it cannot be replayed.
        decided: trials of faults that were decided before, by number of the fault; nothing of them is asked for.
        at_once: number of faults that are tried at the same time.

    Attributes:
        trials: the faults that were tried so far, some perhaps undecided.
    """

    def __init__(
        self,
        faults: Sequence[Fault],
        places: int,
        calls: dict[int, int],
        later: Callable[[int], Sequence[int] | None] = lambda _number: (),
        decided: Mapping[int, FaultTrial] | None = None,
        at_once: int = 1,
    ) -> None:
        self._decided = decided or {}
        self._at_once = at_once
        self._restored: dict[ReplayArm, list[ArmResult]] = {}
        self._later = later
        self._faults = list(faults)
        self._places = places
        self._calls = calls
        self._clean: list[ArmResult] = []
        self.trials: list[FaultTrial] = []

    @property
    def refused(self) -> str:
        """The reason why no fault is tried; empty if there is none so far."""
        verified, starts = self._clean[:1], self._clean[1:]
        if verified and not (verified[0].status == "ok" and verified[0].success):
            reason = verified[0].reason or "it does not succeed"
            return f"the run does not replay as it was recorded ({verified[0].status}): {reason}"
        if len(starts) < STARTS:
            return ""
        successes = sum(each.success is True for each in starts)
        if successes < LEAST_SUCCESS * STARTS:
            return (
                f"only {successes} of {STARTS} live replays succeed, so that a failure after a fault "
                "would not show that the fault has caused it"
            )
        return ""

    def waiting(self) -> tuple[ReplayTrial, ...]:
        """Return the replays that come next and may run together; nothing at the end."""
        if self.refused or len(self._decided) == len(self._faults):
            return ()
        if not self._clean:
            return (ReplayTrial(ReplayArm("verify"), "verify"),)
        if len(self._clean) <= STARTS:
            start = ReplayTrial(ReplayArm("start"), "start", calls=self._places)
            return (start,) * min(self._at_once, STARTS + 1 - len(self._clean))
        asked: list[ReplayTrial] = []
        for number in range(len(self._faults)):
            self._open(number)
            if (trial := self._asked(number)) is not None:
                asked.append(trial)
            if len(asked) == self._at_once:
                break
        return tuple(asked)

    def _open(self, number: int) -> None:
        """Begin the trial of a fault, and of those before it."""
        for each in range(len(self.trials), number + 1):
            trial = FaultTrial(
                self._faults[each], later=partial(self._later, each), clean=self._clean
            )
            if repeats([one for one in self._clean if one.arm.operator == "start"]):
                trial.restored = self._restored.setdefault(trial.restore, trial.restored)
            self.trials.append(self._decided.get(each, trial))

    def _asked(self, number: int) -> ReplayTrial | None:
        """Return the next replay of a fault; None if it is decided."""
        tried = self.trials[number]
        arm = tried.ask()
        if arm is None:
            return None
        of_original = tried.recovery is None or tried.is_checking
        calls = self._calls.get(arm.step, self._places)
        return ReplayTrial(arm, _PHASE if of_original else RECOVERY, number, calls, self._longest)

    @property
    def _longest(self) -> int:
        """The live calls by which a replay's limit is chosen.

        A fault near the end may send the team back to its start, so that all of the run counts. The limit is twice this
        number and more, and so lies beyond `TIMES_AS_MUCH` of what a replay without a fault has taken.
        """
        most = max([self._places, *(each.live_calls for each in self._clean)])
        return math.ceil(TIMES_AS_MUCH * most / 2)

    def tell(self, result: ArmResult) -> None:
        """Take the result of a replay that was asked for; of several, in any order.

        Raises:
            ResultMismatch: the result is of another arm, phase or fault, or nothing is asked for.
        """
        if self._of_lost_run(result):
            self.trials[result.pair].tell(result)
            return
        waiting = self.waiting()
        if len(self._clean) > STARTS and 0 <= result.pair < len(self._faults) and not self.refused:
            self._open(result.pair)  # a process with more faults at a time may have begun it
            asked = self._asked(result.pair)
            if (asked is None or asked.arm != result.arm) and self._is_shared(result):
                self.trials[result.pair].tell(result)
                return
            waiting = () if asked is None else (asked,)
        if not waiting:
            raise ResultMismatch("the injection has ended, or this fault is decided")
        trial = waiting[0]
        if (trial.arm, trial.phase, trial.pair) != (result.arm, result.phase, result.pair):
            raise ResultMismatch(
                f"the next replay is {trial.arm.operator} at step {trial.arm.step} of fault {trial.pair}; "
                f"the result is of {result.arm.operator} at step {result.arm.step} of fault {result.pair}"
            )
        if trial.phase in {_PHASE, RECOVERY}:
            self.trials[trial.pair].tell(result)
        else:
            self._clean.append(result)

    def _is_shared(self, result: ArmResult) -> bool:
        """Return whether another fault's restored replay may have made a result needless while its replay ran."""
        tried = self.trials[result.pair]
        shares = tried.restored is self._restored.get(tried.restore)
        return shares and result.arm in {tried.restore, tried.fault.change.arm}

    def _of_lost_run(self, result: ArmResult) -> bool:
        """Return whether a result was asked for of a stored failure that is no longer stored.

        Another injection may have tried the same fault and stored its own run in place of that one. Nothing more is
        asked for then, so that the stored result matches no question.
        """
        if result.phase not in {_PHASE, RECOVERY} or not 0 <= result.pair < len(self.trials):
            return False
        trial = self.trials[result.pair]
        if trial.recovery is None or trial.recovery.steps is not None:
            return False
        # A restored replay came after each of its time-outs.
        return result.phase == RECOVERY or result.arm == trial.restore
