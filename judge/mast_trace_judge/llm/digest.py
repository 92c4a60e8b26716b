"""The record of a run that was read in parts: the readers' notes, and the notable steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mast_trace_judge.llm.transcript import estimate_tokens

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from mast_trace.trajectory import Step
    from mast_trace_judge.llm.transcript import Renderer
    from mast_trace_judge.llm.verification import Point

_SEVERITIES = ("decisive", "major", "minor")
_SHARE = 0.75
"""Share of the window for notable steps; the task and the question need the rest."""
_NOTE = 1200


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
