"""Steps as the run page shows them: marked, timed, repetitions folded, quotes found."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mast_trace.trajectory import Step, Trajectory
    from mast_trace_judge.verdict import Verdict

PAGE = 500
"""Steps that are sent at once."""
CLIP = 1500
"""Characters of a text that are shown before it is unfolded."""
_COLOURS = 8


@dataclass(frozen=True)
class Row:
    """One step on the page.

    Attributes:
        step: the step.
        colour: number of its agent's colour.
        rank: 1 for the likeliest decisive step, 2 and 3 for the next, else 0.
        modes: codes whose evidence it is.
        quotes: passages of it that the verdict quotes.
        left: where its bar begins, in per cent of the run.
        width: of its bar, likewise.
        repeats: number of the earlier step that it repeats; None if it is new.
        clipped: the beginning of its text; None if that is all of it.
    """

    step: Step
    colour: int
    rank: int = 0
    modes: tuple[str, ...] = ()
    quotes: tuple[str, ...] = ()
    left: float = 0.0
    width: float = 0.0
    repeats: int | None = None
    clipped: str | None = None


@dataclass(frozen=True)
class Edge:
    """How often one agent wrote to another."""

    sender: str
    recipient: str
    times: int


@dataclass(frozen=True)
class Page:
    """A run's steps."""

    rows: Sequence[Row]
    colours: dict[str, int]
    edges: Sequence[Edge]
    handed: Sequence[Edge] = field(default=())


def page_of(run: Trajectory, verdict: Verdict | None) -> Page:
    """Return all steps of a run as rows."""
    colours = {agent: number % _COLOURS for number, agent in enumerate(run.agents)}
    ranks, modes, quotes = _findings(verdict)
    first_seen: dict[tuple[str, ...], int] = {}
    rows: list[Row] = []
    span = max(run.end - run.start, 1)
    for step in run.steps:
        content = (step.kind.value, step.agent, step.tool, step.arguments, step.text)
        repeats = first_seen.setdefault(content, step.index)
        rows.append(
            Row(
                step=step,
                colour=colours.get(step.agent, 0),
                rank=ranks.get(step.index, 0),
                modes=tuple(modes.get(step.index, ())),
                quotes=tuple(q for q in quotes if q and q in step.text),
                left=round(100 * max(step.start - run.start, 0) / span, 2),
                width=round(max(100 * max(step.end - step.start, 0) / span, 0.4), 2),
                repeats=repeats if repeats != step.index else None,
                clipped=step.text[:CLIP] if len(step.text) > CLIP else None,
            )
        )
    said = Counter((s.agent, to) for s in run.steps for to in s.recipients if s.agent)
    handed = Counter((s.agent, s.handoff_to) for s in run.steps if s.handoff_to)
    return Page(rows, colours, _edges(said), _edges(handed))


def _findings(
    verdict: Verdict | None,
) -> tuple[dict[int, int], dict[int, list[str]], list[str]]:
    ranks: dict[int, int] = {}
    modes: dict[int, list[str]] = {}
    quotes: list[str] = []
    if verdict is None:
        return ranks, modes, quotes
    likeliest = [verdict.decisive.step] if verdict.decisive else []
    likeliest += [candidate.step for candidate in verdict.candidates]
    ranks |= {number: rank for rank, number in enumerate(list(dict.fromkeys(likeliest))[:3], 1)}
    for finding in verdict.modes:
        quotes += finding.quotes
        for number in finding.steps:
            modes.setdefault(number, []).append(finding.code)
    return ranks, modes, quotes


def _edges(counted: Counter[tuple[str, str]]) -> list[Edge]:
    return [Edge(sender, to, times) for (sender, to), times in counted.most_common(60)]
