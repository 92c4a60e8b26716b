"""What a model's answers amount to once they are checked against the run."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from mast_trace_judge.llm.sanitise import clean
from mast_trace_judge.llm.transcript import clip
from mast_trace_judge.verdict import Evidence, ModeFinding

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mast_trace_judge.llm.answers import Counterfactual, FailurePoint, MappedMode
    from mast_trace_judge.llm.quotes import QuoteCheck

_TEXT = 600
_QUOTES = 6
_DOUBTED = 0.5
"""What is left of a fix that needed later knowledge, or whose step is only a consequence: without
it the last step would always seem decisive."""
_LEAST_SHOWN = 0.25


@dataclass(frozen=True)
class Point:
    """A point at which something went wrong, at a step that exists, with quotes that are true."""

    step: int
    what: str
    severity: Literal["minor", "major", "decisive"]
    caused_by: int | None
    repaired_at: int | None
    quotes: tuple[str, ...]


@dataclass(frozen=True)
class Flip:
    """What the model says of a run in which one step had been right.

    Attributes:
        weight: how likely the run would have succeeded, discounted where the answer is doubtful.
        reason: why.
        minimal_fix: what the step should have been.
    """

    weight: float
    reason: str
    minimal_fix: str


@dataclass(frozen=True)
class ModelReading:
    """What one model, or a panel of several, makes of a run.

    Attributes:
        outcome: ``unknown`` where the model cannot tell, or contradicts itself.
        flips: for each step that was tried, what its correction would have changed.
        modes: failure modes with quotes that are in the run.
        problems: what could not be found out, and why.
        dropped: quotes and steps that the model made up.
        models: whose reading it is.
    """

    outcome: Literal["success", "failure", "unknown"]
    failure_probability: float
    reason: str
    flips: Mapping[int, Flip] = field(default_factory=lambda: MappingProxyType({}))
    modes: tuple[ModeFinding, ...] = ()
    problems: tuple[str, ...] = ()
    dropped: int = 0
    models: tuple[str, ...] = ()


class Verifier:
    """Keeps of a model's answers what the run bears out.

    Attributes:
        unknown_steps: numbers of steps that the run does not have, or that were not shown.
    """

    def __init__(self, quotes: QuoteCheck, steps: int) -> None:
        self.quotes = quotes
        self.unknown_steps = 0
        self._steps = steps

    @property
    def dropped(self) -> int:
        """Quotes and steps that the model made up."""
        return self.quotes.dropped + self.unknown_steps

    def points(self, points: Iterable[FailurePoint]) -> list[Point]:
        """Check the points of a reading; one whose step does not exist needs a true quote elsewhere."""
        checked = []
        for point in points:
            known = self._existing([point.step])
            found = self.quotes.verify(point.quotes, known)
            step = known[0] if known else found[0][0] if found else None
            if known and found and all(place != known[0] for place, _ in found):
                step = found[0][0]  # every quote stands in another step: that is the one meant
            if step is None:
                continue
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
        """Weigh a counterfactual."""
        weight = answer.flip_probability
        if not answer.uses_only_earlier_information:
            weight *= _DOUBTED
        if self._earlier(answer.earlier_cause, step) is not None:
            weight *= _DOUBTED
        return Flip(weight, plain(answer.reason), plain(answer.minimal_fix))

    def modes(self, answers: Iterable[MappedMode]) -> tuple[ModeFinding, ...]:
        """Check failure modes; one without a quote that is in the run is not reported."""
        checked: dict[str, ModeFinding] = {}
        for answer in sorted(answers, key=lambda answer: -answer.probability):
            known = self._existing(answer.steps)
            found = self.quotes.verify(answer.quotes, known)
            if not found or answer.code in checked or answer.probability < _LEAST_SHOWN:
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

    def _existing(self, steps: Sequence[int]) -> list[int]:
        known = list(dict.fromkeys(step for step in steps if 0 <= step < self._steps))
        self.unknown_steps += len({step for step in steps if not 0 <= step < self._steps})
        return known

    @staticmethod
    def _earlier(step: int | None, than: int) -> int | None:
        return step if step is not None and 0 <= step < than else None

    def _later(self, step: int | None, than: int) -> int | None:
        return step if step is not None and than < step < self._steps else None


def plain(text: str) -> str:
    """Return a model's own words as one clean, short line."""
    return clip(" ".join(clean(text).split()), _TEXT)
