"""Fix against keep at one step, in interleaved pairs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from mast_trace_judge.confirmation import Contrast
from mast_trace_lab.confirm.statistics.betting import Bet

if TYPE_CHECKING:
    from mast_trace_judge.arms import Arm, ArmResult
    from mast_trace_judge.confirmation import FurtherFix

EFFECT: Final = 0.2
"""Smallest difference of success rates that counts as a proof."""

State = Literal["open", "confirmed", "abandoned", "exhausted"]

_ALIKE: Final = 2
"""Equal pairs that decide on a fix of a deterministic program."""

_FEW: Final = 4
"""Pairs after which a fix is given up that never succeeded, or not more often than the kept step did."""

_MANY: Final = 10
"""Pairs after which a fix is given up whose effect is below `EFFECT`."""


@dataclass
class Comparison:
    """The pairs of one fix at one step.

    Attributes:
        position: position of the step's decision.
        agent: its agent.
        fix: arm with the fix.
        keep: arm without it.
        source: the origin of the fix.
        text: the fix; empty where a model is asked again.
        threshold: e-value from which the fix counts as proved.
        most: pairs at most, of this plan.
        bet: the evidence.
        earlier: record of the same fix in earlier plans.
        further: the later parts of a joint fix.
    """

    position: int
    agent: str
    fix: Arm
    keep: Arm
    source: str
    text: str
    threshold: float
    most: int
    bet: Bet = field(default_factory=Bet)
    earlier: Contrast | None = None
    further: tuple[FurtherFix, ...] = ()
    _results: list[tuple[ArmResult, ArmResult]] = field(default_factory=list)

    def after(self, earlier: Contrast) -> Comparison:
        """Return it as the continuation of an earlier plan: evidence is multiplied."""
        self.earlier, self.threshold = earlier, earlier.threshold
        self.bet = Bet(earlier.e_value)
        return self

    def add(self, fix: ArmResult, keep: ArmResult) -> None:
        """Take the two results of a pair.

        Without an outcome, the fix counts as a failure and the kept step as a success.
        """
        self._results.append((fix, keep))
        self.bet.add(fix=bool(fix.success), keep=keep.success is not False)

    @property
    def step(self) -> int:
        """Index of the step."""
        return self.fix.step

    @property
    def pairs(self) -> int:
        """Pairs of this plan."""
        return len(self._results)

    def contrast(self) -> Contrast:
        """Return the record of it, with the pairs of earlier plans."""
        before = self.earlier
        fix = sum(bool(fix.success) for fix, _ in self._results)
        keep = sum(keep.success is not False for _, keep in self._results)
        censored = sum(None in {fix.success, keep.success} for fix, keep in self._results)
        pairs = self.pairs
        if before:
            fix, keep = fix + before.fix_successes, keep + before.keep_successes
            pairs, censored = pairs + before.pairs, censored + before.censored
        return Contrast(
            step=self.step,
            agent=self.agent,
            source=self.source,
            fix_text=self.text,
            result=self.fix.fix is not None and self.fix.fix.result,
            fix_successes=fix,
            keep_successes=keep,
            pairs=pairs,
            censored=censored,
            e_value=self.bet.e_value,
            threshold=self.threshold,
            effect=(fix - keep) / pairs if pairs else 0.0,
            also=self.further,
        )

    @property
    def alike(self) -> bool:
        """True if the pairs were all alike: equal live calls, answers and outcomes in each arm."""
        if self.pairs < _ALIKE or self.earlier:
            return False
        arms = zip(*self._results, strict=True)
        return all(
            len({(each.calls_hash, each.answer, each.success) for each in arm}) == 1
            and arm[0].success is not None
            for arm in arms
        )

    def proved(self, *, deterministic: bool) -> bool:
        """Return whether the fix turns failure into success more often than keeping the step.

        Equal pairs of a deterministic program are one pair, however often they are run: they count if
        the fix succeeds and the kept step fails. The same holds for a cache or a fixed seed, which the
        conclusion says.

        Args:
            deterministic: whether all repeated replays of the experiment were alike.
        """
        record = self.contrast()
        if deterministic and self.alike and record.effect == 1:
            return True
        return record.e_value >= self.threshold and record.effect >= EFFECT

    def state(self, *, deterministic: bool) -> State:
        """Return the state: further pairs are run while it is open."""
        if self.proved(deterministic=deterministic):
            return "confirmed"
        if (deterministic and self.alike) or self._hopeless():
            return "abandoned"
        return "exhausted" if self.pairs >= self.most else "open"

    def _hopeless(self) -> bool:
        record = self.contrast()
        if self.pairs >= _MANY:
            return record.effect < EFFECT
        return self.pairs >= _FEW and record.effect <= 0
