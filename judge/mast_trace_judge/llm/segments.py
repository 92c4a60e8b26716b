"""Divides runs that no model can read at once into parts, at hand-overs of control."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mast_trace.exceptions import RunTokensExhausted
from mast_trace.trajectory import StepKind
from mast_trace_judge.llm.transcript import Renderer, RenderOptions, estimate_tokens

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from mast_trace.trajectory import Step, Trajectory
    from mast_trace_judge.llm.transcript import Renderer
    from mast_trace_judge.llm.verification import Point

_SEVERITIES = ("decisive", "major", "minor")
_SHARE = 0.75
"""Share of the window for notable steps; the task and the question need the rest."""
_NOTE = 1200

_NOTES = 1500
"""Limit of the answer for one part, in tokens."""
_LEAST_CLIP = 60
_EARLIEST_CUT = 0.6
"""Share of a part that must be full before it may end at a hand-over."""


def digest_of(
    renderer: Renderer, parts: Sequence[tuple[Sequence[Step], str, Sequence[Point]]], *, window: int
) -> str:
    """Write the notes on each part with its notable steps.

    Args:
        renderer: of the run.
        parts: the steps of each part, its reader's summary and the points found in it.
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
    ranked = sorted(points, key=lambda point: (_SEVERITIES.index(point.severity), point.step))
    wanted = [*sorted(renderer.in_full), len(steps) - 1, *(point.step for point in ranked)]
    wanted += [point.caused_by for point in ranked if point.caused_by is not None]
    shown: set[int] = set()
    for index in dict.fromkeys(wanted):
        size = estimate_tokens(renderer.step(steps[index]))
        if size <= room:
            shown.add(index)
            room -= size
    return shown


@dataclass(frozen=True)
class ReadingPlan:
    """The plan for reading a run.

    Attributes:
        options: lengths to which steps are clipped.
        segments: the parts; one if the run is read at once.
    """

    options: RenderOptions
    segments: tuple[tuple[Step, ...], ...]

    @property
    def at_once(self) -> bool:
        """True if one prompt holds the whole record."""
        return len(self.segments) == 1


def plan_reading(renderer: Renderer, *, window: int, budget: int, questions: int) -> ReadingPlan:
    """Choose how to read a run: at once if it fits, else in parts, with texts as long as affordable.

    Args:
        renderer: of the run, with the wished options.
        window: limit of a record in tokens.
        budget: limit of all calls together in tokens.
        questions: number of questions about the record.

    Raises:
        RunTokensExhausted: even in parts and with the shortest texts the run exceeds the budget.
    """
    wished = renderer.options
    for clip in (wished.clip, wished.clip // 2):
        options = _shorter(wished, clip)
        if _tokens(renderer, options) <= window:
            return ReadingPlan(options, (renderer.trajectory.read_steps,))
    clip, needed = wished.clip, 0
    while clip >= _LEAST_CLIP:
        options = _shorter(wished, clip)
        segments = _divide(renderer, options, window)
        # The parts are read once; the summary of them is read with every question.
        needed = _tokens(renderer, options) + len(segments) * _NOTES + questions * (window // 2)
        if needed <= budget:
            return ReadingPlan(options, segments)
        clip //= 2
    raise RunTokensExhausted(
        f"reading {len(renderer.trajectory.read_steps)} steps takes about {needed} tokens, and the run "
        f"may take {budget}"
    )


def _shorter(options: RenderOptions, clip: int) -> RenderOptions:
    return replace(options, clip=clip, full=min(options.full, 12 * clip))


def _tokens(renderer: Renderer, options: RenderOptions) -> int:
    return estimate_tokens(replace(renderer, options=options).record())


def _divide(
    renderer: Renderer, options: RenderOptions, window: int
) -> tuple[tuple[Step, ...], ...]:
    """Fill parts up to the window; each ends at a hand-over if there is one late enough."""
    writer = replace(renderer, options=options)
    parts: list[tuple[Step, ...]] = []
    part: list[Step] = []
    sizes: list[int] = []
    filled = 0
    for step in renderer.trajectory.read_steps:
        size = estimate_tokens(writer.step(step))
        if part and filled + size > window:
            cut = _cut(part, sizes, window, renderer.trajectory)
            parts.append(tuple(part[:cut]))
            part, sizes = part[cut:], sizes[cut:]
            filled = sum(sizes)
        part.append(step)
        sizes.append(size)
        filled += size
    parts.append(tuple(part))
    return tuple(parts)


def _cut(part: Sequence[Step], sizes: Sequence[int], window: int, trajectory: Trajectory) -> int:
    """Return the number of steps of a full part: up to its last hand-over, if late enough."""
    filled = sum(sizes)
    for cut in range(len(part), 0, -1):
        if filled < _EARLIEST_CUT * window:
            break
        following = trajectory.steps[part[cut - 1].index + 1]
        if _hands_over(part[cut - 1], following):
            return cut
        filled -= sizes[cut - 1]
    return len(part)


def _hands_over(step: Step, following: Step) -> bool:
    if step.handoff_to:
        return True
    return following.kind is StepKind.MESSAGE and following.agent != step.agent
