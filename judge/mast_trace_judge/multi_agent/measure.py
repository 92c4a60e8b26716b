"""A measure of a system: its value, its interval over runs, and the value that its null reaches."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from mast_trace_judge.intervals import wilson

LEAST_RUNS: Final = 20
"""Runs below which nothing is measured."""
_RESAMPLES: Final = 400
_SEED: Final = 20250521
_EACH_SIDE: Final = 0.025

T = TypeVar("T")


@dataclass(frozen=True)
class Question:
    """The fixed part of a measure: what it asks, and what it leaves open.

    Attributes:
        code: its name in tables and queries.
        title: a heading.
        unit: ``share``, ``bits``, ``times`` or ``number``.
        asks: one sentence.
        null: the system that the null stands for; empty if the measure needs none, because it is a count.
        leaves_open: one sentence on what the value does not say.
    """

    code: str
    title: str
    unit: str
    asks: str
    null: str
    leaves_open: str


@dataclass(frozen=True)
class Measure:
    """The value of a question for one system.

    Attributes:
        question: what is measured.
        runs: number of runs that say something about it.
        value: None where it was not measured; ``silent`` gives the reason then.
        low: lower end of the 95 % interval, by resampling runs.
        high: its upper end.
        null: the value that the null reaches on the same runs; None if the question has none.
        detail: further counts in words.
        silent: the reason for which there is no value; empty if there is one.
    """

    question: Question
    runs: int
    value: float | None = None
    low: float | None = None
    high: float | None = None
    null: float | None = None
    detail: tuple[str, ...] = ()
    silent: str = ""


def measure(
    question: Question,
    parts: Sequence[T],
    statistic: Callable[[Sequence[T]], float | None],
    *,
    null: float | None = None,
    detail: Sequence[str] = (),
    lacking: str = "",
) -> Measure:
    """Return the measure of a system from the parts that its runs contribute.

    The interval takes 2.5 % and 97.5 % of the statistic over resampled runs (percentile bootstrap,
    Efron 1979): runs are independent of each other, steps of one run are not. Where all runs show a
    share of 0 or of 1, resampling shows no other, and Wilson's interval over runs takes its place.

    Args:
        question: what is measured.
        parts: one for each run that says something about it.
        statistic: of parts; None where they allow none.
        null: the value of the null on the same runs.
        detail: further counts in words.
        lacking: what a run needs in order to say something, for the reason of silence.
    """
    if len(parts) < LEAST_RUNS:
        reason = f"{len(parts)} of at least {LEAST_RUNS} runs"
        return Measure(question, len(parts), silent=f"{reason} {lacking}".strip())
    value = statistic(parts)
    if value is None:
        return Measure(question, len(parts), silent=f"no run {lacking}".strip())
    low, high = _interval(question, parts, statistic, value)
    return Measure(question, len(parts), value, low, high, null, tuple(detail))


def _interval(
    question: Question,
    parts: Sequence[T],
    statistic: Callable[[Sequence[T]], float | None],
    value: float,
) -> tuple[float, float]:
    """Return the 95 % interval of a statistic over runs."""
    if question.unit == "share" and value in {0, 1}:
        return wilson(round(value) * len(parts), len(parts))
    draw = random.Random(_SEED)  # noqa: S311  # reproducible, not secret
    again = (statistic(draw.choices(parts, k=len(parts))) for _ in range(_RESAMPLES))
    found = sorted(each for each in again if each is not None)
    last = len(found) - 1
    return found[int(_EACH_SIDE * last)], found[round((1 - _EACH_SIDE) * last)]


def ratio(parts: Sequence[tuple[float, float]]) -> float | None:
    """Return the sum of the first numbers by that of the second; None if that is 0."""
    whole = sum(part[1] for part in parts)
    return sum(part[0] for part in parts) / whole if whole else None


def mean(parts: Sequence[float]) -> float | None:
    """Return the mean; None of nothing."""
    return sum(parts) / len(parts) if parts else None
