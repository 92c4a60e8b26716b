"""The replays of a run for its page: V as points of a chart, and both arms of each fix."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mast_trace_dashboards.certainty import (
    SOURCES,
    count_words,
    evidence_words,
    heading,
    interval_words,
    place,
    price,
)
from mast_trace_dashboards.web.text_changes import TextChange, changes
from mast_trace_judge.arms import START
from mast_trace_judge.proof import proved_step

if TYPE_CHECKING:
    from mast_trace_judge.confirmation import Confirmation, Contrast, FurtherFix, SuccessRate

WIDTH: Final = 440
HEIGHT: Final = 150
MOST_POINTS: Final = 60
"""Most steps in the chart and the table of V, the earliest first."""
LONGEST: Final = 20_000
"""Characters of a fix, and of the answer that it replaces, that are shown."""
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 12, 8, 26
_LABELS = 12
"""Most labels below the chart."""


@dataclass(frozen=True)
class ValuePoint:
    """V at one step.

    Attributes:
        step: index of the step; -1 for the start.
        agent: its agent; empty at the start.
        place: its part in the conclusion, such as "point of no return"; empty if it has none.
        counts: such as "3 of 8".
        interval: the 95 % interval in words.
        share: the success rate, in per cent.
        low: lower end of its interval, likewise.
        high: upper end, likewise.
        x: horizontal place in the chart.
        y: vertical place of the rate.
        top: of the interval's upper end.
        bottom: of its lower end.
        labelled: whether the chart has a label for it.
    """

    step: int
    agent: str
    place: str
    counts: str
    interval: str
    share: float
    low: float
    high: float
    x: float
    y: float
    top: float
    bottom: float
    labelled: bool

    @property
    def name(self) -> str:
        """The name of the point: a step, or the start."""
        return "start" if self.step == START else f"step {self.step}"


@dataclass(frozen=True)
class TestedFix:
    """One fix that was run against keeping the recorded step.

    Attributes:
        contrast: the counts.
        source: the origin of the fix in words.
        fixed: successes of the arm with the fix, such as "6 of 8".
        kept: successes of the arm without it.
        evidence: the e-value as a sentence.
        changes: the recorded answer against the fix; empty where a model was asked again.
        confirms: whether the fix is the proof of the decisive error, or of a joint fix.
        also: the later parts of a joint fix.
    """

    contrast: Contrast
    source: str
    fixed: str
    kept: str
    evidence: str
    changes: Sequence[TextChange]
    confirms: bool
    also: Sequence[FurtherPart] = ()


@dataclass(frozen=True)
class FurtherPart:
    """A later part of a joint fix.

    Attributes:
        step: index of its step.
        agent: its agent.
        source: its origin in words.
        changes: the recorded answer or result against it; empty where a model was asked.
        result: whether it replaces the result of a tool.
    """

    step: int
    agent: str
    source: str
    changes: Sequence[TextChange]
    result: bool


@dataclass(frozen=True)
class ConfirmationView:
    """The view of a conclusion.

    Attributes:
        confirmation: the conclusion.
        headline: a few words for it.
        proved: the step that is proved to be the decisive error; None if there is none.
        points: V, earliest step first, as far as it is shown.
        fixes: the tested fixes, earliest step first.
        cost: the effort in words.
    """

    confirmation: Confirmation
    headline: str
    proved: int | None
    points: Sequence[ValuePoint]
    fixes: Sequence[TestedFix]
    cost: str

    @property
    def by_step(self) -> Mapping[int, ValuePoint]:
        """V by step."""
        return {point.step: point for point in self.points}


def confirmation_view(
    confirmation: Confirmation,
    actor: Callable[[int], str],
    answers: Mapping[int, str],
    results: Mapping[int, str] | None = None,
) -> ConfirmationView:
    """Return the view of a conclusion.

    Args:
        confirmation: the conclusion.
        actor: returns the agent of a step, "" where the run has no such step.
        answers: the recorded answer of each step that a contrast has a fix text for.
        results: the recorded result of each tool's call that a contrast has another result for.
    """
    shown = confirmation.curve[:MOST_POINTS]
    proved = proved_step(confirmation)
    return ConfirmationView(
        confirmation=confirmation,
        headline=heading(confirmation),
        proved=proved,
        points=[
            _point(rate, place(confirmation, rate.step), n, len(shown), actor)
            for n, rate in enumerate(shown)
        ],
        fixes=[
            _tested(each, answers, results or {}, _proof(confirmation, proved))
            for each in confirmation.contrasts
        ],
        cost=price(confirmation),
    )


def _point(
    rate: SuccessRate, part: str, number: int, count: int, actor: Callable[[int], str]
) -> ValuePoint:
    share = rate.successes / rate.runs if rate.runs else 0.0
    width = WIDTH - _LEFT - _RIGHT
    every = -(-count // _LABELS)
    return ValuePoint(
        step=rate.step,
        agent=actor(rate.step) if rate.step != START else "",
        place=part,
        counts=count_words(rate.successes, rate.runs),
        interval=interval_words(rate.low, rate.high),
        share=round(100 * share, 1),
        low=round(100 * rate.low, 1),
        high=round(100 * rate.high, 1),
        x=round(_LEFT + width * (number + 0.5) / count, 1),
        y=_height(share),
        top=_height(rate.high),
        bottom=_height(rate.low),
        labelled=number % every == 0,
    )


def _height(share: float) -> float:
    return round(_TOP + (HEIGHT - _TOP - _BOTTOM) * (1.0 - share), 1)


def _proof(confirmation: Confirmation, proved: int | None) -> Contrast | None:
    """Return the contrast that proves the decisive step, or the joint fix: the strongest of them.

    Among equally strong joint fixes the one with the fewest parts counts.
    """
    joint = confirmation.status == "overdetermined"
    there = [
        each
        for each in confirmation.contrasts
        if each.effect > 0 and (each.also if joint else each.steps == (proved,))
    ]
    return max(
        there,
        key=lambda each: (
            each.e_value >= each.threshold,
            each.effect,
            -len(each.also),
            each.e_value,
        ),
        default=None,
    )


def _tested(
    contrast: Contrast,
    answers: Mapping[int, str],
    results: Mapping[int, str],
    proof: Contrast | None,
) -> TestedFix:
    def changed(part: Contrast | FurtherFix) -> Sequence[TextChange]:
        return _changes(part, results if part.result else answers)

    proves = contrast is proof
    return TestedFix(
        contrast=contrast,
        source=_source(contrast),
        fixed=count_words(contrast.fix_successes, contrast.pairs),
        kept=count_words(contrast.keep_successes, contrast.pairs),
        evidence=evidence_words(contrast, alike=proves and contrast.e_value < contrast.threshold),
        changes=changed(contrast),
        confirms=proves,
        also=[
            FurtherPart(
                each.step,
                each.agent,
                _source(each),
                changed(each),
                each.result,
            )
            for each in contrast.also
        ],
    )


def _source(fix: Contrast | FurtherFix) -> str:
    source = SOURCES.get(fix.source, fix.source)
    return f"{source}, as the tool's result" if fix.result else source


def _changes(fix: Contrast | FurtherFix, recorded: Mapping[int, str]) -> Sequence[TextChange]:
    """Return the recorded text against a fix; nothing where a model was asked."""
    if not fix.fix_text:
        return ()
    return changes(recorded.get(fix.step, "")[:LONGEST], fix.fix_text[:LONGEST])
