"""The corrections that a confirmation tries, in order, and the reasons for those that it refuses."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mast_trace.exceptions import ConfigurationError
from mast_trace_judge.replay.arms import Fix
from mast_trace_judge.replay.leaks import known_before, leaked

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mast_trace.trajectory import Trajectory
    from mast_trace_judge.replay.arms import FixSource
    from mast_trace_judge.replay.oracle import Oracle
    from mast_trace_judge.replay.points import Point


@dataclass(frozen=True)
class RefusedFix:
    """A correction that is not tried.

    Attributes:
        step: index of the step.
        source: the origin.
        reason: one sentence.
    """

    step: int
    source: FixSource
    reason: str


@dataclass(frozen=True)
class Sources:
    """What corrections are made of.

    Attributes:
        person: a person's answers by step.
        resample: whether the same request is asked again, at any step.
        stronger_model: name of a model that is asked at any step; empty for none.
        judge: the judge's minimal fixes by step.
        reference: reference answers by step.
        answers: the right final answers and the reasons given with the outcome, as far as known: no
            correction may hold what only they know.
    """

    person: Mapping[int, str]
    resample: bool = True
    stronger_model: str = ""
    judge: Mapping[int, str] | None = None
    reference: Mapping[int, str] | None = None
    answers: Sequence[str] = ()

    def texts(self) -> Iterator[tuple[FixSource, Mapping[int, str]]]:
        """Yield the sources that hold texts by step, in the order in which they are tried."""
        yield "person", self.person
        yield "judge", self.judge or {}
        yield "reference", self.reference or {}


def planned_fixes(
    run: Trajectory, points: Sequence[Point], sources: Sources, oracle: Oracle | None = None
) -> tuple[dict[int, tuple[Fix, ...]], tuple[RefusedFix, ...]]:
    """Return the corrections of each decision point in the order of their sources, and the refused ones.

    A text is refused if it is the recorded answer, if it holds a number or quoted words that only the
    right answer knows, or if the oracle takes it for the right answer by itself, except at the last
    decision point, whose answer may be the final one.

    Raises:
        ConfigurationError: a person's or a reference's step is no decision point.
    """
    by_step = {point.step: point for point in points}
    texts: dict[int, list[Fix]] = defaultdict(list)
    refused: list[RefusedFix] = []
    for source, given in sources.texts():
        for step, text in given.items():
            if step not in by_step:
                if source == "judge":
                    reason = "The judge's step is made by no single model answer."
                    refused.append(RefusedFix(step, source, reason))
                    continue
                raise ConfigurationError(_no_point(step, points))
            last = by_step[step] is points[-1]
            reason = _objection(run, by_step[step], text, sources.answers, None if last else oracle)
            if reason:
                refused.append(RefusedFix(step, source, reason))
            else:
                texts[step].append(Fix(source, text))
    anywhere = [Fix("resample")] if sources.resample else []
    if sources.stronger_model:
        anywhere.append(Fix("stronger model", model=sources.stronger_model))
    return {step: _in_order([*texts[step], *anywhere]) for step in by_step}, tuple(refused)


_ORDER: tuple[FixSource, ...] = ("person", "resample", "stronger model", "judge", "reference")


def _in_order(fixes: Sequence[Fix]) -> tuple[Fix, ...]:
    return tuple(sorted(fixes, key=lambda fix: _ORDER.index(fix.source)))


def _objection(
    run: Trajectory, point: Point, text: str, answers: Sequence[str], oracle: Oracle | None
) -> str:
    """Return the reason why a text is no correction of a step; empty if it is one."""
    if not text.strip():
        return "It is empty."
    if " ".join(text.split()) == " ".join(point.text.split()):
        return "It is the recorded answer, which would change nothing."
    found = leaked(text, answers, known_before(run, point.step, point.span_id))
    if found:
        return f"It holds {found!r}, which the run did not know before, but the right answer holds."
    opinion = oracle.ask(text) if oracle else None
    if opinion is not None and opinion.success:
        return "The oracle takes its text for the right answer, so it would succeed at any step."
    if opinion is not None and opinion.success is None:
        return f"The oracle could not judge its text: {opinion.reason}."
    return ""


def _no_point(step: int, points: Sequence[Point]) -> str:
    known = ", ".join(str(point.step) for point in points)
    return (
        f"step {step} is not the first step of a model's answer, so it cannot be corrected; "
        f"steps that can: {known}"
    )
