"""Results of an experiment so far: what was measured where, and which fixes were tested."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mast_trace_lab.confirm.statistics.location import Location

if TYPE_CHECKING:
    from mast_trace_judge.arms import ArmResult, ReplayArm
    from mast_trace_lab.confirm.statistics.cells import Count
    from mast_trace_lab.confirm.statistics.comparison import Comparison
    from mast_trace_lab.confirm.statistics.plan import Plan
    from mast_trace_lab.program.budget import ReplayTrial

SEARCH: Final = frozenset({"start", "screening"})
"""Phases of the search."""

LIVE: Final = SEARCH | {"pairs"}
"""Phases in which a part of the program runs live."""

CENSORED: Final = 8
"""Live replays in a row without an outcome after which an experiment ends.

If only every second replay had an outcome, eight in a row without one would come by chance in 0.4 %."""

REPEATS: Final = 6
"""Repeated replays that must all be alike before a program counts as deterministic.

Outcomes of a program that succeeds half of the time are alike by chance in 3 % (twice 0.5 to the 6th); their calls and
answers have to be alike as well."""


class ExperimentState:
    """The state of an experiment.

    Attributes:
        plan: everything that was fixed before the first replay.
        results: told results with what had been asked, in order.
        counts: successes and runs by position, -1 for the start; censored replays are left out.
        comparisons: fixes that were tested, those of earlier plans first.
    """

    def __init__(self, plan: Plan) -> None:
        """Start without results; comparisons of earlier plans go on."""
        self.plan = plan
        self.results: list[tuple[ReplayTrial, ArmResult]] = []
        self.counts: dict[int, Count] = {}
        self.comparisons: list[Comparison] = plan.earlier_comparisons()
        self._location: tuple[dict[int, Count], Location] | None = None

    def count(self, position: int, result: ArmResult) -> None:
        """Add a replay that kept everything up to and including a position."""
        if result.success is not None:
            successes, runs = self.counts.get(position, (0, 0))
            self.counts[position] = (successes + result.success, runs + 1)

    def runs(self, *phases: str) -> int:
        """Return the number of results of some phases."""
        return sum(trial.phase in phases for trial, _ in self.results)

    @property
    def searched(self) -> int:
        """Number of replays of the search, with those of its share that the proof has taken."""
        lent = self.runs("pairs") - self.plan.limits.pair_runs
        return self.runs(*SEARCH) + max(0, lent)

    def outcomes(self, phase: str) -> list[bool | None]:
        """Return the outcomes of a phase, in order."""
        return [result.success for trial, result in self.results if trial.phase == phase]

    @property
    def deterministic(self) -> bool:
        """True if replays of the same arm never differed in live calls, answer and outcome.

        A program counts as deterministic only after `REPEATS` such replays.
        """
        seen: dict[ReplayArm, tuple[str, str, bool | None]] = {}
        repeats = 0
        for trial, result in self.results:
            if trial.phase in LIVE:
                found = (result.calls_hash, result.answer, result.success)
                if result.success is None or seen.setdefault(trial.arm, found) != found:
                    return False
                if result.live_calls and not result.calls_hash:
                    return False
                repeats += 1
        return repeats - len(seen) >= REPEATS

    @property
    def without_outcome(self) -> str:
        """The reason why the last `CENSORED` live replays had no outcome; empty if one had."""
        live = [result for trial, result in self.results if trial.phase in LIVE][-CENSORED:]
        if len(live) < CENSORED or any(each.success is not None for each in live):
            return ""
        return f"{live[-1].status} {live[-1].reason}".strip()

    @property
    def falls_once(self) -> bool:
        """True if no replay succeeded at or after a position at which one failed."""
        failed = [each for each, (hits, runs) in self.counts.items() if hits < runs]
        succeeded = [each for each, (hits, _) in self.counts.items() if hits]
        return not failed or not succeeded or max(succeeded) < min(failed)

    def proved(self) -> list[Comparison]:
        """Return the comparisons that prove a fix."""
        known = self.deterministic
        return [each for each in self.comparisons if each.proved(deterministic=known)]

    @property
    def calls(self) -> int:
        """Live model calls so far."""
        return sum(result.live_calls for _, result in self.results)

    @property
    def search_calls(self) -> int:
        """Live model calls of the search so far."""
        return sum(result.live_calls for trial, result in self.results if trial.phase in SEARCH)

    @property
    def cost(self) -> float:
        """Known cost of live calls so far, in dollars."""
        return sum(result.cost_usd or 0.0 for _, result in self.results)

    @property
    def location(self) -> Location:
        """The posterior of the location; replays of pairs count, too.

        The search may use them: the proof holds for any rule by which fixes are chosen.
        """
        if self._location is None or self._location[0] != self.counts:
            self._location = (dict(self.counts), Location(self.plan.location, self.counts))
        return self._location[1]
