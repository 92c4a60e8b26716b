"""A model's answers after verification against the run."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from mast_trace_judge.llm.prompts import prompt
from mast_trace_judge.llm.transcript import clip
from mast_trace_judge.local.addressing.recognition import clean
from mast_trace_judge.verdict import CorrectedCall, CorrectedStep, Evidence, ModeFinding

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mast_trace_judge.llm.answers import Counterfactual, FailurePoint, MappedMode
    from mast_trace_judge.llm.quotes import QuoteCheck

_TEXT = 600
_QUOTES = 6
_LISTED = 10
_DOUBTED = 0.5
"""Factor for a fix that needed later knowledge, or whose step is only a consequence: otherwise the
last step would always seem decisive.
"""
_LEAST_SHOWN = 0.25
_UNQUOTED = 0.5
"""Factor for a flip at a step in which the model has quoted no error."""


@dataclass(frozen=True)
class Point:
    """An error at an existing step, with verified quotes."""

    step: int
    what: str
    severity: Literal["minor", "major", "decisive"]
    caused_by: int | None
    repaired_at: int | None
    quotes: tuple[str, ...]


@dataclass(frozen=True)
class Flip:
    """The model's estimate for a run in which one step had been right.

    Attributes:
        weight: probability that the run would have succeeded, discounted where the answer is
            doubtful.
        reason: of the estimate.
        minimal_fix: description of the change.
        corrected: the step as it should have been; None where the model wrote no such step, or says
            itself that it needs later knowledge.
    """

    weight: float
    reason: str
    minimal_fix: str
    corrected: CorrectedStep | None = None


@dataclass(frozen=True)
class ModelReading:
    """The reading of a run by one model, or the one on which several readings agree.

    Attributes:
        outcome: ``unknown`` where the model cannot tell, or contradicts itself.
        flips: for each step that was tried, the effect of its correction.
        modes: failure modes with verified quotes.
        problems: questions without an answer, with the reason.
        dropped: number of quotes and steps that the model made up.
        models: names of the models.
        grounded: steps with an error and a verified quote.
        addressed: whether the run contains text that addresses its judge, and may have influenced
            the model.
        voters: the readings that have voted; empty for a single one.
    """

    outcome: Literal["success", "failure", "unknown"]
    failure_probability: float
    reason: str
    flips: Mapping[int, Flip] = field(default_factory=lambda: MappingProxyType({}))
    modes: tuple[ModeFinding, ...] = ()
    problems: tuple[str, ...] = ()
    dropped: int = 0
    models: tuple[str, ...] = ()
    grounded: frozenset[int] = frozenset()
    addressed: bool = False
    voters: tuple[ModelReading, ...] = ()

    @property
    def readings(self) -> tuple[ModelReading, ...]:
        """The single readings behind this one."""
        return self.voters or (self,)

    @property
    def likeliest(self) -> int | None:
        """The step whose correction would most probably have saved the run; None if none was tried.

        A step without a verified quote of an error counts half; among equals the earliest is taken.
        """
        weights = {step: self.weight(step) for step in sorted(self.flips)}
        best = max(weights, key=lambda step: weights[step], default=None)
        return best if best is not None and weights[best] > 0.0 else None

    def weight(self, step: int) -> float:
        """Return the weight of a step's correction, discounted where no quote shows an error there."""
        flip = self.flips.get(step)
        if flip is None:
            return 0.0
        return flip.weight * (1.0 if step in self.grounded else _UNQUOTED)

    def is_shared(self, step: int) -> bool:
        """True if at least half of the readings quote an error in the step."""
        named = sum(step in reading.grounded for reading in self.readings)
        return 2 * named >= len(self.readings)

    @property
    def has_evidence(self) -> bool:
        """True if a verified quote shows any error of this reading."""
        return bool(self.grounded or self.modes)


class Verifier:
    """Verifies a model's answers against the run.

    Attributes:
        unknown_steps: step numbers that the run does not have, or that were not shown.
        ungrounded: steps of points without a verified quote.
        ungrounded_modes: failure modes without a verified quote.
    """

    def __init__(self, quotes: QuoteCheck, steps: int) -> None:
        self.quotes = quotes
        self.unknown_steps = 0
        self.ungrounded: list[int] = []
        self.ungrounded_modes: list[str] = []
        self._steps = steps

    @property
    def dropped(self) -> int:
        """Number of quotes and steps that the model made up."""
        return self.quotes.dropped + self.unknown_steps

    def points(self, points: Iterable[FailurePoint]) -> list[Point]:
        """Verify the points of a reading; a point without a verified quote is dropped."""
        checked = []
        for point in points:
            known = self._existing([point.step])
            found = self.quotes.verify(point.quotes, known)
            if not found:
                self.ungrounded.append(point.step)
                continue
            step = known[0] if known else found[0][0]
            if all(place != step for place, _ in found):
                step = found[0][0]  # every quote is in another step: that one is meant
            checked.append(
                Point(
                    step=step,
                    what=plain(point.what),
                    severity=point.severity,
                    caused_by=self._earlier(point.caused_by, step),
                    repaired_at=self._later(point.repaired_at, step),
                    quotes=tuple(text for place, text in found if place == step)[:_QUOTES],
                )
            )
        return sorted(checked, key=lambda point: point.step)

    def flip(self, answer: Counterfactual, step: int) -> Flip:
        """Weigh a counterfactual; a step with later knowledge in it is not kept, for it proves nothing."""
        weight, corrected = answer.flip_probability, _corrected(answer)
        if not answer.uses_only_earlier_information:
            weight, corrected = weight * _DOUBTED, None
        if self._earlier(answer.earlier_cause, step) is not None:
            weight *= _DOUBTED
        return Flip(weight, plain(answer.reason), plain(answer.minimal_fix), corrected)

    def modes(self, answers: Iterable[MappedMode]) -> tuple[ModeFinding, ...]:
        """Verify failure modes; a mode without a verified quote is not reported."""
        checked: dict[str, ModeFinding] = {}
        for answer in sorted(answers, key=lambda answer: -answer.probability):
            known = self._existing(answer.steps)
            found = self.quotes.verify(answer.quotes, known)
            if answer.code in checked or answer.probability < _LEAST_SHOWN:
                continue
            if not found:
                self.ungrounded_modes.append(answer.code)
                continue
            steps = sorted({*known, *(step for step, _ in found)})
            checked[answer.code] = ModeFinding(
                code=answer.code,
                probability=round(answer.probability, 4),
                evidence=Evidence.MODEL,
                reason=plain(answer.reason),
                steps=tuple(steps),
                quotes=tuple(dict.fromkeys(text for _, text in found))[:_QUOTES],
            )
        return tuple(checked.values())

    def notes(self) -> list[str]:
        """Describe the claims that were dropped for lack of a verified quote."""
        notes = []
        if self.ungrounded:
            steps = ", ".join(str(step) for step in sorted(set(self.ungrounded))[:_LISTED])
            notes.append(
                "points of the model's were dropped, for no quote of theirs is in the run: "
                f"steps {steps}"
            )
        if self.ungrounded_modes:
            codes = ", ".join(dict.fromkeys(self.ungrounded_modes))
            notes.append(
                f"failure modes of the model's were dropped, for no quote is in the run: {codes}"
            )
        return notes

    def _existing(self, steps: Sequence[int]) -> list[int]:
        known = list(dict.fromkeys(step for step in steps if 0 <= step < self._steps))
        self.unknown_steps += len({step for step in steps if not 0 <= step < self._steps})
        return known

    @staticmethod
    def _earlier(step: int | None, than: int) -> int | None:
        return step if step is not None and 0 <= step < than else None

    def _later(self, step: int | None, than: int) -> int | None:
        return step if step is not None and than < step < self._steps else None


def _corrected(answer: Counterfactual) -> CorrectedStep | None:
    """Return the step that a model has written; None if it is no answer."""
    calls = tuple(
        CorrectedCall(name=each.name.strip(), arguments=clean(each.arguments))
        for each in answer.corrected_calls
    )
    version = prompt("counterfactual").version
    step = CorrectedStep(
        prompt=version, text=clean(answer.corrected_text).strip(), tool_calls=calls
    )
    return step if step.is_answer else None


def plain(text: str) -> str:
    """Return a model's own words as one clean, short line."""
    return clip(" ".join(clean(text).split()), _TEXT)
