"""Decides how much of a run is shown to a model at once, and divides runs that no model can read at once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mast_trace.exceptions import RunTokensExhausted
from mast_trace_judge.llm.quotes import sources
from mast_trace_judge.llm.transcript import Renderer, estimate_tokens

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from mast_trace.trajectory import Step
    from mast_trace_judge.llm.verification import Point

_SHARE = 0.75
"""Share of the window for the steps that stood out; the task and the question need the rest."""
_NOTE = 1200
"""Characters of the notes on one part."""
_NOTES = 1500
"""Limit of the answer for one part, in tokens."""
_LEAST_AT_ONCE = 1000
"""Characters below which no text is shortened to read a run at once: its parts are read whole instead."""
_LEAST_CLIP = 60
_FILLED = 0.6
"""Share of the window that a part fills at least, where the next step does not fit any more."""


@dataclass(frozen=True)
class ReadingPlan:
    """The plan for reading a run.

    Attributes:
        renderer: writes the run's texts at the planned lengths.
        segments: the parts; one if the run is read at once.
    """

    renderer: Renderer
    segments: tuple[tuple[Step, ...], ...]

    @property
    def at_once(self) -> bool:
        """True if one prompt holds the whole record."""
        return len(self.segments) == 1


def plan_reading(renderer: Renderer, *, window: int, budget: int, question: int) -> ReadingPlan:
    """Choose how to read a run: whole, else with its longest texts shortened, else in parts.

    Args:
        renderer: of the run.
        window: limit of a record in tokens.
        budget: limit of all calls together in tokens.
        question: tokens of the question and of the task, which each call has beside its record.

    Raises:
        RunTokensExhausted: even in parts and with the shortest texts the run exceeds the budget.
    """
    steps = renderer.trajectory.read_steps
    limit = min(window, budget - question - _NOTES)
    fitted = longest(renderer, limit, least=_LEAST_AT_ONCE)
    if tokens_of(fitted) <= limit:
        return ReadingPlan(fitted, (steps,))
    # The parts are read once, each beside the question; then their notes, which fill the window at most.
    beside = question + _NOTES
    room = (budget - window - 2 * beside) / (1 + beside / (_FILLED * window))
    fitted = longest(renderer, int(room), least=_LEAST_CLIP)
    # No text may be longer than a part.
    fitted = _clipped(fitted, min(fitted.clip, window), min(fitted.full, window))
    segments = _divide(fitted, window)
    needed = tokens_of(fitted) + (1 + len(segments)) * beside + window
    if needed > budget:
        raise RunTokensExhausted(
            f"reading {len(steps)} steps takes about {needed} tokens, and the run may take {budget}"
        )
    return ReadingPlan(fitted, segments)


def longest(renderer: Renderer, tokens: int, *, least: int) -> Renderer:
    """Return the writer that shortens no text more than its record has to be to take so many tokens.

    All texts get the same limit, so that the longest ones are shortened first; those of steps with findings
    are whole as long as the record holds them, and share half of it where it does not.

    Args:
        renderer: of the run.
        tokens: that the record may take.
        least: characters below which no text is shortened, even if the record takes more.
    """
    steps = renderer.trajectory.read_steps
    low, high = least, max([least, *(len(text) for step in steps for text in sources(step))])
    full = high
    if estimate_tokens(_clipped(renderer, least, high).record(once=False)) > tokens:
        full = max(least, 2 * tokens // max(1, len(renderer.in_full)))
    if tokens_of(_clipped(renderer, high, full)) <= tokens:
        return _clipped(renderer, high, full)
    while low < high - 1:
        middle = (low + high) // 2
        shorter = _clipped(renderer, middle, full)
        # With all passages written out: to look for those that come again in each try would cost far more.
        fits = estimate_tokens(shorter.record(once=False)) <= tokens
        low, high = (middle, high) if fits else (low, middle)
    return _clipped(renderer, low, full)


def _clipped(renderer: Renderer, clip: int, full: int) -> Renderer:
    return replace(renderer, clip=clip, full=max(clip, full))


def tokens_of(renderer: Renderer) -> int:
    """Return the estimated tokens of a run's record."""
    return estimate_tokens(renderer.record())


def _divide(renderer: Renderer, window: int) -> tuple[tuple[Step, ...], ...]:
    """Fill parts up to the window."""
    parts: list[list[Step]] = [[]]
    filled = 0
    for step in renderer.trajectory.read_steps:
        size = estimate_tokens(renderer.step(step))
        if parts[-1] and filled + size > window:
            parts.append([])
            filled = 0
        parts[-1].append(step)
        filled += size
    return tuple(map(tuple, parts))


def digest_of(
    renderer: Renderer, parts: Sequence[tuple[Sequence[Step], str, Sequence[Point]]], *, window: int
) -> str:
    """Write the notes on each part with the steps that stood out, whole as far as they fit.

    Args:
        renderer: of the run.
        parts: the steps of each part, its reader's summary and the errors found in it.
        window: limit of the record in tokens.
    """
    notes = [list(renderer.quoted(summary, _NOTE)) for _, summary, _ in parts]
    left = int(window * _SHARE) - sum(estimate_tokens("\n".join(lines)) for lines in notes)
    shown = _standing_out(renderer, [point for _, _, points in parts for point in points], left)
    blocks: list[str] = []
    for (steps, _, _), lines in zip(parts, notes, strict=True):
        blocks.append(f"Steps {steps[0].index} to {steps[-1].index}, notes of a first reader:")
        blocks.extend(lines)
        chosen = [step for step in steps if step.index in shown]
        if chosen:
            blocks.append("Steps of this part that stood out:")
            blocks.extend(renderer.step(step) for step in chosen)
    return renderer.fenced("record", "\n".join(blocks))


def _standing_out(renderer: Renderer, points: Sequence[Point], room: int) -> Collection[int]:
    """Choose the steps to show, the most telling first, within the limit."""
    steps = renderer.trajectory.steps
    ranked = sorted(
        points, key=lambda point: (point.harmless, point.inherited_from is not None, point.step)
    )
    wanted = [*sorted(renderer.in_full), len(steps) - 1, *(point.step for point in ranked)]
    wanted += [point.inherited_from for point in ranked if point.inherited_from is not None]
    shown: set[int] = set()
    for index in dict.fromkeys(wanted):
        size = estimate_tokens(renderer.step(steps[index]))
        if size <= room:
            shown.add(index)
            room -= size
    return shown
