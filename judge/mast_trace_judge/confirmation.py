"""The conclusion of a confirmation: what replays have shown about a run's decisive error."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

ConfirmationStatus = Literal[
    "untested",
    "confirmed",
    "refuted",
    "inconclusive",
    "repairable",
    "systematic",
    "overdetermined",
    "diffuse",
    "unstable",
    "not isolated",
]
"""The words for what was found.

``confirmed``: a fix at the step turns failure into success more often than keeping it, and the step is the
earliest such one. ``repairable``: likewise, and later steps could still have repaired it: origin and point
of no return differ. ``systematic``: the program fails from the start, whatever is kept. ``overdetermined``:
no single fix helps, a joint one does. ``diffuse``: success declines without a single step that explains it.
``unstable``: the oracle does not judge the same answer alike. ``not isolated``: state outside the process,
or another model, makes arms incomparable. ``refuted``: the judge's candidate makes no difference.
``inconclusive``: the budget ended first, or too many replays were censored. ``untested``: no replay yet.
"""


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class SuccessRate(_Record):
    """V at one step: the success rate of replays that keep everything up to and including it.

    Attributes:
        step: index of the step; -1 for the start, at which nothing is kept.
        successes: replays that succeeded.
        runs: replays that ended with an outcome.
        low: lower end of the 95 % interval (Wilson).
        high: upper end.
    """

    step: int
    successes: int
    runs: int
    low: float
    high: float


class FurtherFix(_Record):
    """A later part of a joint fix.

    Attributes:
        step: index of the step.
        agent: its agent.
        source: the origin of the fix, such as ``person`` or ``judge``.
        fix_text: the fix; empty where a stronger model was asked.
        result: whether it replaces the result of a tool, and not an answer.
    """

    step: int
    agent: str
    source: str
    fix_text: str = ""
    result: bool = False


class Contrast(_Record):
    """Fix against keep at one step, from interleaved pairs.

    A joint fix of several steps is kept against the first of them.

    Attributes:
        step: index of the step.
        agent: its agent.
        source: the origin of the fix, such as ``person`` or ``resample``; of a joint fix that of its
            first part.
        fix_text: the fix, likewise; empty where a model was asked again.
        result: whether it replaces the result of a tool, and not an answer; likewise.
        fix_successes: successes of the fix arm.
        keep_successes: successes of the keep arm.
        pairs: pairs that were run.
        censored: pairs in which an arm had no outcome; they count against confirmation.
        e_value: evidence against "the fix does not help"; confirmed at ``threshold``.
        threshold: 20 times the number of planned contrasts.
        effect: difference of the success rates.
        also: the later parts of a joint fix; empty for a fix of one step.
    """

    step: int
    agent: str
    source: str
    fix_text: str = ""
    result: bool = False
    fix_successes: int
    keep_successes: int
    pairs: int
    censored: int = 0
    e_value: float
    threshold: float
    effect: float
    also: tuple[FurtherFix, ...] = ()

    @property
    def key(self) -> tuple[int, str, str, bool, tuple[FurtherFix, ...]]:
        """The name of the fix, which is equal in several plans."""
        return self.step, self.source, self.fix_text, self.result, self.also

    @property
    def parts(self) -> tuple[Contrast | FurtherFix, ...]:
        """The fixes of single steps that it consists of, the first one first: itself, and ``also``."""
        return self, *self.also

    @property
    def sources(self) -> str:
        """The origins of all its parts, such as ``person`` or ``person, judge at step 7``."""
        return ", ".join(
            [self.source, *(f"{each.source} at step {each.step}" for each in self.also)]
        )

    @property
    def steps(self) -> tuple[int, ...]:
        """Indices of all steps that are fixed, the first one first."""
        return self.step, *(each.step for each in self.also)


class Confirmation(_Record):
    """The conclusion about one run.

    Attributes:
        status: the word for it.
        text: one sentence for people.
        origin: the step at which success first fell, proved by a contrast; None if not proved.
        origin_agent: its agent.
        origin_span_id: its span; filled in when the conclusion is stored.
        point_of_no_return: the first step from which success stays near 0; None if not located. It
            alone is never called decisive.
        point_agent: its agent.
        curve: V by step, earliest first.
        contrasts: the tested fixes, earliest step first.
        likely: steps of the 90 % set of the location, with their posterior probability.
        refuted: steps whose fixes made no difference.
        plan_id: of the plan, by which stored replays are found.
        planned_contrasts: pairs of step and fix source that were planned in the run's lifetime.
        replays: replays so far.
        live_calls: model calls that were sent to a model.
        cost_usd: cost of live calls; None if unknown.
    """

    status: ConfirmationStatus = "untested"
    text: str = ""
    origin: int | None = None
    origin_agent: str = ""
    origin_span_id: str = ""
    point_of_no_return: int | None = None
    point_agent: str = ""
    curve: tuple[SuccessRate, ...] = ()
    contrasts: tuple[Contrast, ...] = ()
    likely: tuple[tuple[int, float], ...] = ()
    refuted: tuple[int, ...] = ()
    plan_id: str = ""
    planned_contrasts: int = 0
    replays: int = 0
    live_calls: int = 0
    cost_usd: float | None = 0.0
