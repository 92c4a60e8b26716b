"""The decision whether a planted fault causes the failure: fault against restored run.

The fault arm makes the change; the restore arm keeps the recorded answer at the same step, and both run
live afterwards. A fault is kept as a label only if restoring it makes the run succeed significantly more
often (an e-value of 20, see `mast_trace_lab.confirm.statistics.comparison`), or, in a program whose live replays
show that it is deterministic, if three faulty replays fail alike and two restored ones succeed alike. The stored failure of any
other program must not have recovered from the fault, see `Recovery`. A replay of the fault or of the
stored failure that was ended by its time limit is followed by a restored one, which shows whether the machine or the endpoint has become slow.

The decision whether a faulty replay that was ended by a limit counts as a failure.

A fault may leave a team waiting for ever, or going round in circles. It is not known whether such a replay would have ended
at last. It counts as a failure only if the program and not the limit seems to be at fault: it must have taken `TIMES_AS_MUCH`
of what any replay without the fault took, and more where it had more to do. A restored replay follows a time-out at once and under the
same conditions, so that a machine that has become slow is seen, see `mast_trace_lab.inject.trial.Trial`. A replay that
only waited for its model has no status of `AT_A_LIMIT`, see `mast_trace_lab.replay.arm_runner`.

The check that a stored failure comes from its fault (`Recovery`): agents repair many faults, and a run whose agents recovered
from the fault may fail by a later error of its own. Its planted step is then not the origin of the failure. Each later answer
of the stored run is kept in turn, with all before it, and the rest runs live; where that succeeds twice in a row, the agents
had recovered from the fault. A replay without an outcome says nothing, and is asked for again: a repair often calls a tool with
new arguments, whose result the record does not hold.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from mast_trace_judge.arms import ArmResult, ReplayArm
from mast_trace_judge.decision_points import decision_points
from mast_trace_lab.confirm.statistics.comparison import Bet

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mast_trace.trajectory import Trajectory
    from mast_trace_lab.inject.faults import Fault


IN_A_ROW: Final = 2
"""Successes from after one step that show that the agents had recovered from the fault there."""
MOST_STEPS: Final = 12
"""Later steps that are looked at; of a longer run the first ones, for half of them, and the rest evenly apart."""
MOST_UNKNOWN: Final = 3
"""Replays without an outcome, of one stored failure, after which it is not known whether its agents recovered from the fault."""


@dataclass
class Recovery:
    """The replays of one stored failure, asked for one by one.

    Attributes:
        steps: later model answers of the stored run, by step; None if that run is not known or cannot be replayed.
        outcome_of: returns whether a replay succeeded; None if it is not known.
        results: so far.
    """

    steps: Sequence[int] | None
    outcome_of: Callable[[ArmResult], bool | None] = lambda result: result.success
    results: list[ArmResult] = field(default_factory=list)

    def ask(self) -> ReplayArm | None:
        """Return the arm of the next replay, of the stored run; None if it is decided."""
        place, successes = self._place
        if self.steps is None or self.is_unknown or successes == IN_A_ROW:
            return None
        return ReplayArm("keep", self.steps[place]) if place < len(self.steps) else None

    @property
    def is_repaired(self) -> bool:
        """True if the run succeeds again from after a later step."""
        return self._place[1] == IN_A_ROW

    @property
    def is_unknown(self) -> bool:
        """True if it stays unknown whether the agents had recovered from the fault."""
        unknown = sum(self.outcome_of(each) is None for each in self.results)
        return self.steps is None or unknown > MOST_UNKNOWN

    @property
    def _place(self) -> tuple[int, int]:
        """Number of the step that is looked at, and successes from after it.

        The failure stays after a step if more replays fail than have no outcome: where a repair is what has no
        outcome, the failures alone would speak for the fault. A failure may turn out later to have no outcome: its step is
        then looked at again.
        """
        steps = self.steps or ()
        for place, step in enumerate(steps):
            successes = failures = unknown = 0
            for outcome in (
                self.outcome_of(each) for each in self.results if each.arm.step == step
            ):
                if outcome is None:
                    unknown += 1
                elif outcome:
                    successes += 1
                else:
                    successes, failures = 0, failures + 1
            if failures <= unknown:
                return place, successes
        return len(steps), 0


def later_steps(failed: Trajectory, fault: Fault) -> tuple[int, ...]:
    """Return the steps of a stored failure that are looked at, in order.

    The last answer is not among them: the run has failed after it. An agent may answer a changed request or message rightly all the
    same, so that agents may have recovered from such a fault in the planted step. Most repairs come right after the fault, so
    that of a long run each of the first answers is looked at, and only the others lie apart.
    """
    first = fault.change.step + (fault.change.level not in {"request", "message"})
    steps = [each.step for each in decision_points(failed)][:-1]
    later = [step for step in sorted(steps) if step >= first]
    if len(later) <= MOST_STEPS:
        return tuple(later)
    near = MOST_STEPS // 2
    first_ones, others = later[:near], later[near:]
    apart = MOST_STEPS - near
    return (*first_ones, *(others[place * len(others) // apart] for place in range(apart)))


TIMES_AS_MUCH: Final = 3
"""Times the largest amount of a replay without the fault from which a limit is no cause of the end."""
AT_A_LIMIT: Final = frozenset({"timeout", "over budget"})
"""Statuses of replays that a limit has ended."""

THRESHOLD: Final = 20.0
"""The e-value from which a fault counts as the cause."""
MOST_PAIRS: Final = 20
DECISIVE_UNTIL: Final = 0.1
"""The success rate after the fault up to which its step is called decisive, and not only the origin."""
FOR_DECISIVE: Final = 10
"""Faulty replays that are needed to call a step decisive in a program that is not deterministic."""
_ALIKE: Final = (3, 2)
"""Faulty and restored replays that must be alike in a deterministic program."""
Verdict = Literal["open", "kept", "repaired", "survived", "unproved", "censored"]
"""``kept``: the fault causes the failure; ``repaired``: it causes failures, but the stored run had made it good and failed
by a later error; ``survived``: the run succeeds all the same; ``unproved``: it
fails, and the pairs do not show that the fault is the cause; ``censored``: too many replays had no outcome, or the
stored run cannot be replayed, so that it is not known whether the agents had recovered from the fault."""


def has_failed(result: ArmResult, without_fault: Sequence[ArmResult]) -> bool:
    """Return whether a replay that a limit has ended counts as a failure.

    Seconds are compared for a time-out, and live calls for a replay with too many of them. A time-out that made more live
    calls than any replay without the fault may only have done its work again: it has as many times more seconds.

    Args:
        result: a replay of the fault, with a status of `AT_A_LIMIT`.
        without_fault: the run's replays without the fault. If the same limit has ended one of them, or if none has
            ended by itself, nothing is known.
    """
    if any(each.status == result.status for each in without_fault):
        return False
    whole = [each for each in without_fault if each.status == "ok"]
    calls = max((each.live_calls for each in whole), default=0)
    if result.status == "over budget":
        return 0 < TIMES_AS_MUCH * calls <= result.live_calls
    seconds = max((each.seconds for each in whole), default=0.0)
    work = max(1.0, result.live_calls / max(1, calls))
    return 0 < TIMES_AS_MUCH * work * seconds <= result.seconds


def with_readable_run(result: ArmResult, made: Trajectory | None, step: int) -> ArmResult:
    """Return the result; as an error if a limit has ended it, and its run lacks the planted step.

    A killed program leaves the spans that had ended. Without the step no label could point at it, and the program
    may have stopped before the fault was made.
    """
    if result.status not in AT_A_LIMIT or (made is not None and len(made.steps) > step):
        return result
    reason = f"{result.reason} Of its run, the planted step {step} was not recorded."
    return dataclasses.replace(result, status="error", reason=reason)


@dataclass
class Trial:
    """The replays of one planted fault, asked for one by one.

    Attributes:
        fault: the fault.
        faulty: results of the fault arm.
        restored: results of the restore arm.
        later: returns the steps of the stored failure that are looked at for `recovery`; None if it cannot be replayed.
        clean: the run's replays before any fault.
        recovery: the replays of the stored failure; None as long as they are not needed.
        checks: results of the restore arm after time-outs outside the pairs.
    """

    fault: Fault
    faulty: list[ArmResult] = field(default_factory=list)
    restored: list[ArmResult] = field(default_factory=list)
    later: Callable[[], Sequence[int] | None] = tuple
    clean: Sequence[ArmResult] = ()
    recovery: Recovery | None = None
    checks: list[ArmResult] = field(default_factory=list)

    def ask(self) -> ReplayArm | None:
        """Return the arm of the next replay; None if the fault is decided."""
        so_far = self._of_pairs
        if so_far == "kept":
            if self.is_checking:
                return self.restore
            if self._may_be_decisive:
                return self.fault.change.arm
            return self.recovery.ask() if self.recovery is not None else None
        if so_far != "open" or self.recovery is not None:
            return None
        timed_out = bool(self.faulty) and self.faulty[-1].status == "timeout"
        if len(self.faulty) < _ALIKE[0] and not timed_out:
            return self.fault.change.arm
        return self.restore if len(self.restored) < len(self.faulty) else self.fault.change.arm

    @property
    def restore(self) -> ReplayArm:
        """The arm that keeps the recorded answer or tool result at the fault's step."""
        return ReplayArm("keep", self.fault.kept_until)

    @property
    def is_checking(self) -> bool:
        """True if the next replay is a restored one because a replay outside the pairs was ended by its time limit.

        One check that does not end by itself is enough: no time-out is a failure then.
        """
        unpaired = self.faulty[len(self.restored) :]
        if self.recovery is not None:
            unpaired = [*unpaired, *self.recovery.results]
        time_outs = sum(each.status == "timeout" for each in unpaired)
        if time_outs <= len(self.checks) or not self._is_fast:
            return False
        if self.recovery is not None and self.recovery.steps is None:
            return False
        return self._needs_recovery

    @property
    def _is_fast(self) -> bool:
        return all(each.status == "ok" for each in self.checks)

    def outcome_of(self, faulty: ArmResult) -> bool | None:
        """Return whether a faulty replay succeeded; None if it is not known.

        A program that crashes after the fault has failed. One that is ended because it takes much longer or asks much
        more often than without the fault counts as failed, see `mast_trace_lab.inject.trial`. It does not where the
        step is restored, or else the fault is not kept.
        """
        if faulty.status in AT_A_LIMIT:
            if faulty.status == "timeout" and not self._is_fast:
                return None
            without_fault = (*self.clean, *self.restored, *self.checks)
            return False if has_failed(faulty, without_fault) else None
        return False if faulty.status == "crashed" else faulty.success

    def is_surer(self, failure: ArmResult) -> bool:
        """Return whether a failure, not told yet, is the first one that no limit has ended.

        A restored replay may show later that a limit had ended the others too soon; their runs are then no failures.
        """
        whole = [each for each in self.faulty if each.status not in AT_A_LIMIT]
        failed = any(self.outcome_of(each) is False for each in whole)
        return failure.status not in AT_A_LIMIT and not failed

    def tell(self, result: ArmResult) -> None:
        """Take the result of the arm that was asked for."""
        if self.is_checking:
            self.checks.append(result)
        elif self.recovery is not None:
            self.recovery.results.append(result)
        else:
            (self.restored if result.arm == self.restore else self.faulty).append(result)
            if result.status == "timeout" and result.arm != self.restore:
                before = len(self.faulty) - 1  # one that another fault has asked for is no check
                self.restored = self.restored[:before]
        more = self.is_checking or self._may_be_decisive
        if self.recovery is None and not more and self._needs_recovery:
            self.recovery = Recovery(self.later(), self.outcome_of)

    @property
    def verdict(self) -> Verdict:
        """The decision so far; open as long as the stored failure is looked at."""
        if self.is_checking:
            return "open"
        if self.recovery is not None and self._of_pairs == "open":
            return "censored"  # a check has taken time-outs back that had decided the pairs
        if self._of_pairs != "kept" or not self._needs_recovery:
            return self._of_pairs
        if self.recovery is None or self.recovery.ask() is not None:
            return "open"
        if self.recovery.is_repaired:
            return "repaired"
        return "censored" if self.recovery.is_unknown else "kept"

    @property
    def _needs_recovery(self) -> bool:
        return self._of_pairs == "kept" and not self.is_deterministic

    @property
    def _of_pairs(self) -> Verdict:
        """The decision of faulty against restored replays."""
        enough = len(self.faulty) >= _ALIKE[0]
        if self.censored > _ALIKE[0]:
            return "censored"
        if enough and all(self.outcome_of(each) for each in self.faulty):
            return "survived"
        if not enough or len(self.restored) < _ALIKE[1]:
            return "open"
        if self.is_deterministic or self.e_value >= THRESHOLD:
            return "kept"
        return "unproved" if self.pairs >= MOST_PAIRS else "open"

    @property
    def censored(self) -> int:
        """Number of replays without an outcome."""
        return sum(self.outcome_of(each) is None for each in self.faulty) + sum(
            each.success is None for each in self.restored
        )

    @property
    def is_deterministic(self) -> bool:
        """True if the whole program repeats itself, all faulty replays failed alike, and all restored ones succeeded alike.

        Near the end of a run the kept calls alone fix the requests of any program, so that equal ones say nothing there:
        the live replays of the whole program tell whether its models answer at random.
        """
        return (
            repeats([each for each in self.clean if each.arm.operator == "start"])
            and len(self.faulty) >= _ALIKE[0]
            and len(self.restored) >= _ALIKE[1]
            and all(self.outcome_of(each) is False for each in self.faulty)
            and all(each.success is True for each in self.restored)
            and _asked_alike(self.faulty)
            and _asked_alike(self.restored)
        )

    @property
    def pairs(self) -> int:
        """Number of pairs of a faulty and a restored replay."""
        return min(len(self.faulty), len(self.restored))

    @property
    def e_value(self) -> float:
        """Evidence against "restoring does not help"; replays without outcome count against it."""
        bet = Bet()
        for faulty, restored in zip(self.faulty, self.restored, strict=False):
            bet.add(fix=restored.success is True, keep=self.outcome_of(faulty) is not False)
        return bet.e_value

    @property
    def success_after(self) -> float | None:
        """The success rate after the fault; None without an outcome."""
        told = [each for each in map(self.outcome_of, self.faulty) if each is not None]
        return sum(told) / len(told) if told else None

    @property
    def is_decisive(self) -> bool:
        """True if the step may be called decisive: after it the run hardly ever succeeds.

        In a program that is not deterministic this takes `FOR_DECISIVE` replays: fewer failures in a row
        happen after faults that others often repair.
        """
        rate = self.success_after
        enough = self.is_deterministic or len(self.faulty) >= FOR_DECISIVE
        return self.verdict == "kept" and enough and rate is not None and rate <= DECISIVE_UNTIL

    @property
    def point_of_no_return(self) -> int | None:
        """The step after which runs hardly ever succeed if all up to it is kept; None if it is not known.

        It is known only where it is the planted step itself. After another fault it lies somewhere later, and
        `recovery` does not locate it: one failure from after a step says little of the success rate there.
        """
        return self.fault.change.step if self.is_decisive else None

    @property
    def _may_be_decisive(self) -> bool:
        """True if more replays of the fault are needed to call it decisive, or not."""
        successes = sum(self.outcome_of(each) is not False for each in self.faulty)
        return (
            self._of_pairs == "kept"
            and not self.is_deterministic
            and len(self.faulty) < FOR_DECISIVE
            and successes <= DECISIVE_UNTIL * FOR_DECISIVE
        )


def _asked_alike(replays: Sequence[ArmResult]) -> bool:
    """Return whether replays made the same live requests; nothing is known of requests without an answer."""
    known = all(each.calls_hash or not each.live_calls for each in replays)
    return known and len({each.calls_hash for each in replays}) == 1


def repeats(whole: Sequence[ArmResult]) -> bool:
    """Return whether live replays of a whole program made the same requests and gave the same answer; False without any."""
    ends = {(each.calls_hash, each.answer, each.success) for each in whole}
    return len(whole) > 1 and len(ends) == 1 and _asked_alike(whole) and bool(whole[0].calls_hash)
