"""Fix against keep at one step, in interleaved pairs.

Evidence against "the fix does not help", by a bet on pairs of replays.

A pair is one replay with the fix (outcome x) and one that keeps the recorded answer (outcome y). For an
alternative with success rates k (keep) < f (fix) and z = (k + f) / 2, the factor of a pair is
``P_f(x) P_k(y) / (P_z(x) P_z(y))``. Its expectation is at most 1 if the fix does not help, whatever the
two rates are: with d = f - z = z - k it is, at equal rates q, ``1 - ((q - z) d / (z (1 - z)))**2``, and
smaller where the fix is worse. Products of factors are therefore an e-process, and so is their mean over
alternatives: the chance that it ever reaches 1 / alpha is at most alpha (Ville's inequality), with any rule
of stopping, and with rates that drift between pairs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from mast_trace_judge.confirmation import Contrast, FurtherFix

if TYPE_CHECKING:
    from mast_trace_judge.arms import ArmResult, ReplayArm

_KEEP: Final = ((0.01, 0.5), (0.1, 0.25), (0.25, 0.15), (0.45, 0.1))
_FIX: Final = (0.3, 0.5, 0.7, 0.85, 0.97)
ALTERNATIVES: Final = tuple((k, f, w) for k, w in _KEEP for f in _FIX if f - k >= 0.2)
"""Triples of keep, fix and weight. A difference below 0.2 is not looked for; most weight has a step that
fails whenever it is kept, as the error is one that cannot be repaired."""

_TOTAL: Final = sum(weight for _, _, weight in ALTERNATIVES)

EFFECT: Final = 0.2
"""Smallest difference of success rates that counts as a proof.

A smaller one would take more pairs than the 40 replays of an experiment hold, and help in fewer than one run of five.
"""
State = Literal["open", "confirmed", "abandoned", "exhausted"]
_ALIKE: Final = 2
"""Equal pairs that decide on a fix of a deterministic program: a third would be the same pair again."""
_FEW: Final = 4
"""Pairs after which a fix is given up that never succeeded, or not more often than the kept step did.

A fix that succeeds half of the time is given up by chance in 6 % (0.5 to the 4th)."""
_MANY: Final = 10
"""Pairs after which a fix is given up whose effect is below `EFFECT`.

One that raises success from 0.1 to 0.5 is given up by chance in 9 %; one that raises it to 0.7, in 1 %.
"""


class Bet:
    """An e-process over the pairs of one fix at one step.

    Attributes:
        pairs: pairs so far.
    """

    def __init__(self, evidence: float = 1.0) -> None:
        """Start with `evidence`, the e-value of earlier pairs of the same fix."""
        self.pairs = 0
        self._earlier = math.log(evidence) if evidence > 0 else -math.inf
        self._logs = [math.log(weight / _TOTAL) for _, _, weight in ALTERNATIVES]

    def add(self, *, fix: bool, keep: bool) -> None:
        """Take the outcomes of one pair; a replay without outcome counts as its caller decides."""
        self.pairs += 1
        for index, (k, f, _) in enumerate(ALTERNATIVES):
            z = (k + f) / 2
            factor = (f / z if fix else (1 - f) / (1 - z)) * (k / z if keep else (1 - k) / (1 - z))
            self._logs[index] += math.log(factor)

    @property
    def e_value(self) -> float:
        """The weighted mean of the products, times the evidence of earlier pairs."""
        top = max(self._logs)
        mean = top + math.log(sum(math.exp(each - top) for each in self._logs))
        return math.exp(min(700.0, mean + self._earlier))


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
    fix: ReplayArm
    keep: ReplayArm
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
