"""A model's answers after verification against the run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from mast_trace_judge.intervals import asserts
from mast_trace_judge.llm.prompts import prompt
from mast_trace_judge.llm.transcript import clip
from mast_trace_judge.local.addressing.recognition import clean
from mast_trace_judge.verdict import CorrectedCall, CorrectedStep, Evidence, ModeFinding

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mast_trace_judge.llm.answers import Correction, MappedMode, NotedError, Reading
    from mast_trace_judge.llm.quotes import QuoteCheck

_TEXT = 600
_QUOTES = 6
_LISTED = 10
_LEAST_SHOWN = 0.25
_RANKED = 3
"""Steps that a reading may suggest."""


@dataclass(frozen=True)
class Point:
    """An error at an existing step, with verified quotes."""

    step: int
    what: str
    right: str
    inherited_from: int | None
    harmless: bool
    quotes: tuple[str, ...]


@dataclass(frozen=True)
class Suggestion:
    """A step that a model suggests as the decisive one.

    Attributes:
        step: its number.
        reason: the model's.
        quotes: passages of the step that show an error; none where it has no text of its own.
        weight: 1 for the step that the model puts first, a half for the second, a third for the third; a mean
            where several readings were joined.
        minimal_fix: description of the change that makes the step right.
        corrected: the step as it should have been, where the model was asked for it.
    """

    step: int
    reason: str
    quotes: tuple[str, ...] = ()
    weight: float = 1.0
    minimal_fix: str = ""
    corrected: CorrectedStep | None = None


@dataclass(frozen=True)
class ModelReading:
    """The reading of a run by one model, or the one on which several readings agree.

    Attributes:
        outcome: ``unknown`` where the model cannot tell, or contradicts itself.
        failure_probability: from 0 to 1, by the model's own word.
        suggestions: steps with an error and a verified quote, likeliest first.
        undecided: why no single step decided the failure by the model; empty where one did.
        confidence: from 0 to 1, by the model's own word, which orders readings and is never shown.
        modes: failure modes with verified quotes.
        problems: questions without an answer, with the reason.
        models: names of the models.
        voters: the readings that have voted; empty for a single one.
        right: blind labels of such runs in which the first suggestion of this model, with this prompt, was right.
        cases: blind labels of such runs that it has read.
    """

    outcome: Literal["success", "failure", "unknown"]
    failure_probability: float
    suggestions: tuple[Suggestion, ...] = ()
    undecided: str = ""
    confidence: float = 0.5
    modes: tuple[ModeFinding, ...] = ()
    problems: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    voters: tuple[ModelReading, ...] = ()
    right: int = 0
    cases: int = 0

    @property
    def readings(self) -> tuple[ModelReading, ...]:
        """The single readings behind this one."""
        return self.voters or (self,)

    @property
    def name(self) -> str:
        """The names of the models, as verdicts have them."""
        return ", ".join(self.models)

    @property
    def likeliest(self) -> int | None:
        """The step that is suggested first; None if none is."""
        return self.suggestions[0].step if self.suggestions else None

    @property
    def asserted(self) -> int | None:
        """The step that is suggested first, where the model's word is asserted; else None."""
        return self.likeliest if asserts(self.right, self.cases) else None

    @property
    def has_evidence(self) -> bool:
        """True if a verified quote shows any error of this reading."""
        return bool(self.suggestions or self.modes)


UNDECIDED: Final[Mapping[str, str]] = {
    "several": "the model finds no single step: several would have had to be right together",
    "cut off": "the model finds no single step: the run was cut off from outside",
    "nothing": "the model finds no step that went wrong",
}
"""The words for failures that no single step decided, by a reading's answer."""


class Verifier:
    """Verifies a model's answers against the run.

    Attributes:
        ungrounded: steps of errors without a verified quote.
        ungrounded_modes: failure modes without a verified quote.
    """

    def __init__(self, quotes: QuoteCheck, steps: int) -> None:
        self.quotes = quotes
        self.ungrounded: list[int] = []
        self.ungrounded_modes: list[str] = []
        self._steps = steps

    def points(self, errors: Iterable[NotedError]) -> list[Point]:
        """Verify errors, in the order of time; one without a verified quote is dropped.

        A step without text of its own can be named by its number alone.
        """
        checked = []
        for error in errors:
            known = self._existing([error.step])
            found = self.quotes.verify(error.quotes, known)
            if not found and not (known and self.quotes.has_no_text_of_its_own(known[0])):
                self.ungrounded.append(error.step)
                continue
            step = known[0] if known else found[0][0]
            if found and all(place != step for place, _ in found):
                step = found[0][0]  # every quote is in another step: that one is meant
            origin = error.inherited_from
            checked.append(
                Point(
                    step=step,
                    what=plain(error.what),
                    right=plain(error.right),
                    inherited_from=origin if origin is not None and 0 <= origin < step else None,
                    harmless=error.harmless,
                    quotes=tuple(text for place, text in found if place == step)[:_QUOTES],
                )
            )
        return sorted(checked, key=lambda point: point.step)

    def suggestions(self, reading: Reading) -> tuple[Suggestion, ...]:
        """Return the steps that a reading suggests, likeliest first; those without a verified error are dropped."""
        points = self.points(reading.errors)
        first = reading.decisive
        if first.kind in {"cut off", "nothing"}:
            return ()
        decisive = self.points(reading.decisive.as_errors)
        shown: dict[int, Point] = {}
        for point in [*decisive, *points]:
            if not point.harmless:
                shown.setdefault(point.step, point)
        named = dict.fromkeys([*(point.step for point in decisive), *reading.ranking])
        return tuple(
            Suggestion(
                step=step,
                reason=shown[step].what,
                quotes=shown[step].quotes,
                weight=1 / rank,
                minimal_fix=shown[step].right,
            )
            for rank, step in enumerate([step for step in named if step in shown][:_RANKED], 1)
        )

    def modes(self, answers: Iterable[MappedMode]) -> tuple[ModeFinding, ...]:
        """Verify failure modes; one without a verified quote, or that did no harm, is not reported."""
        checked: dict[str, ModeFinding] = {}
        for answer in sorted(answers, key=lambda answer: -answer.probability):
            known = self._existing(answer.steps)
            found = self.quotes.verify(answer.quotes, known)
            if answer.code in checked or answer.probability < _LEAST_SHOWN or answer.harmless:
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
        return list(dict.fromkeys(step for step in steps if 0 <= step < self._steps))


def corrected(answer: Correction) -> CorrectedStep | None:
    """Return the step that a model has written; None if it is no answer, or needs later knowledge: it would prove nothing."""
    calls = tuple(
        CorrectedCall(name=each.name.strip(), arguments=clean(each.arguments))
        for each in answer.corrected_calls
    )
    version = prompt("counterfactual").version
    step = CorrectedStep(
        prompt=version, text=clean(answer.corrected_text).strip(), tool_calls=calls
    )
    return step if step.is_answer and answer.uses_only_earlier_information else None


def plain(text: str) -> str:
    """Return a model's own words as one clean, short line."""
    return clip(" ".join(clean(text).split()), _TEXT)
