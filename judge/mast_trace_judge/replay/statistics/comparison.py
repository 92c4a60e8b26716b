"""Fix against keep at one step, in interleaved pairs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from mast_trace_judge.replay.confirmation import Contrast
from mast_trace_judge.replay.statistics.betting import Bet

if TYPE_CHECKING:
    from mast_trace_judge.replay.arms import Arm, ArmResult

EFFECT: Final = 0.2
"""Smallest difference of success rates that counts as a proof."""

State = Literal["open", "confirmed", "abandoned", "exhausted"]

_ALIKE = 2
"""Equal pairs after which a program counts as deterministic."""


@dataclass
class Comparison:
    """The pairs of one fix at one step.

    Attributes:
        step: index of the step.
        position: its position among the decisions.
        agent: its agent.
        fix: arm with the fix.
        keep: arm without it.
        source: the origin of the fix.
        text: the fix; empty where a model is asked again.
        threshold: e-value from which the fix counts as proved.
        most: pairs at most.
        bet: the evidence.
        successes: of fix and keep; a pair with a censored replay counts against the fix.
        censored: pairs in which a replay had no outcome.
    """

    step: int
    position: int
    agent: str
    fix: Arm
    keep: Arm
    source: str
    text: str
    threshold: float
    most: int
    bet: Bet = field(default_factory=Bet)
    successes: tuple[int, int] = (0, 0)
    censored: int = 0
    _results: list[tuple[ArmResult, ArmResult]] = field(default_factory=list)

    def add(self, fix: ArmResult, keep: ArmResult) -> None:
        """Take the two results of a pair.

        Without an outcome, the fix counts as a failure and the kept step as a success.
        """
        helped, kept = bool(fix.success), keep.success is None or keep.success
        self.bet.add(fix=helped, keep=kept)
        self.successes = (self.successes[0] + helped, self.successes[1] + kept)
        self.censored += fix.success is None or keep.success is None
        self._results.append((fix, keep))

    @property
    def pairs(self) -> int:
        """Number of pairs."""
        return len(self._results)

    @property
    def effect(self) -> float:
        """Difference of the success rates; 0 without pairs."""
        return (self.successes[0] - self.successes[1]) / self.pairs if self.pairs else 0.0

    @property
    def deterministic(self) -> bool:
        """Whether the pairs were all alike: equal live calls, answers and outcomes in each arm.

        At least two live calls must follow the kept step: a single one is asked the same whatever
        the model draws.
        """
        if self.pairs < _ALIKE or self.censored:
            return False
        for arm in zip(*self._results, strict=True):
            if len({(each.calls_hash, each.answer, each.success) for each in arm}) > 1:
                return False
            if not arm[0].calls_hash or arm[0].live_calls < 2:
                return False
        return True

    @property
    def proved(self) -> bool:
        """Whether the fix turns failure into success more often than keeping the step."""
        helped = self.successes[0] == self.pairs and not self.successes[1]
        if self.deterministic and helped:
            return True
        return self.bet.e_value >= self.threshold and self.effect >= EFFECT

    @property
    def state(self) -> State:
        """The state: further pairs are run while it is open."""
        if self.proved:
            return "confirmed"
        if self.pairs >= self.most:
            return "exhausted"
        return "abandoned" if self._hopeless() else "open"

    def _hopeless(self) -> bool:
        fix, keep = self.successes
        if self.deterministic and fix <= keep:
            return True
        if self.pairs >= 4 and fix <= keep:
            return self.pairs >= 6 or keep > 0
        return self.pairs >= 8 and self.effect < EFFECT

    def contrast(self) -> Contrast:
        """Return the record of it."""
        return Contrast(
            step=self.step,
            agent=self.agent,
            source=self.source,
            fix_text=self.text,
            fix_successes=self.successes[0],
            keep_successes=self.successes[1],
            pairs=self.pairs,
            censored=self.censored,
            e_value=self.bet.e_value,
            threshold=self.threshold,
            effect=self.effect,
        )
