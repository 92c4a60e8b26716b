"""The record that a model reads to name a pattern: the steps of a few runs that show it."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from mast_trace_judge.llm.quotes import QuoteCheck, sources
from mast_trace_judge.llm.sanitise import nonce
from mast_trace_judge.llm.transcript import Renderer, RenderOptions, estimate_tokens

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mast_trace.trajectory import Step, Trajectory
    from mast_trace_judge.patterns.unnamed import ShowingRun, Unnamed

RUNS: Final = 3
"""Most runs whose texts are read for one name."""
LEAST_RUNS: Final = 2
"""Runs that a name rests on, where so many have texts."""
_BEFORE: Final = 2
_AFTER: Final = 1
_CLIP: Final = 400
_FULL: Final = 1200
_LEAST_CLIP: Final = 40
_MARKED: Final = "  | "
_LEFT_OUT: Final = re.compile(r"\[\.\.\. \d+ characters \.\.\.\]")


@dataclass(frozen=True)
class ReadRun:
    """A run of which some steps are shown.

    Attributes:
        run: shows the pattern.
        texts: looks quotes up in it.
        steps: indices of the steps that are shown.
    """

    run: ShowingRun
    texts: QuoteCheck
    steps: tuple[int, ...]

    def passages(self, quote: str) -> list[str]:
        """Return the original passages of a quote in the shown steps; empty where it is not in them."""
        found = self.texts.verify([quote], self.steps)
        return [passage for step, passage in found if step in self.steps]


@dataclass(frozen=True)
class NameRecord:
    """The texts of some runs that show a pattern.

    Attributes:
        text: between fences, sanitised.
        place: the pattern's agent, recipient and tool, likewise.
        runs: those whose texts it holds.
    """

    text: str
    place: str
    runs: tuple[ReadRun, ...]

    @property
    def evidence(self) -> str:
        """The words of the runs alone, as they are shown: no headings, no numbers of steps."""
        lines = f"{self.place}\n{self.text}".split("\n")
        told = "\n".join(line[len(_MARKED) :] for line in lines if line.startswith(_MARKED))
        return _LEFT_OUT.sub(" ", told)


def readable(run: ShowingRun, trajectory: Trajectory) -> ReadRun | None:
    """Return a run with the steps to show, around the one that shows the pattern; None if they have no text."""
    count = len(trajectory.steps)
    place = min(run.step, count - 1)
    shown = range(max(0, place - _BEFORE), min(count, place + _AFTER + 1))
    steps = tuple(index for index in shown if sources(trajectory.steps[index]))
    return ReadRun(run, QuoteCheck(trajectory), steps) if steps else None


def name_record(pattern: Unnamed, runs: Sequence[ReadRun], version: str, tokens: int) -> NameRecord:
    """Write down the shown steps of runs, clipped until they take at most so many tokens, else of fewer runs.

    Args:
        pattern: to be named.
        runs: at least one; beyond `LEAST_RUNS` the last one is left out first.
        version: of the judge; the marks of the fences depend on it.
        tokens: most tokens of the record, where texts of `_LEAST_CLIP` characters allow it.
    """
    mark = nonce(pattern.pattern, *(run.run.trace_id for run in runs), version)
    writers = [
        Renderer(run.texts.trajectory, mark, in_full=frozenset({run.run.step})) for run in runs
    ]
    facts = {"agent": pattern.agent, "recipient": pattern.peer, "tool": pattern.tool}
    told = [f"{name}: {value}" for name, value in facts.items() if value]
    lines = [line for fact in told for line in writers[0].quoted(fact, _CLIP)]
    place = writers[0].fenced("place", "\n".join(lines))
    clip, count = _CLIP, len(runs)
    while True:
        text = "\n\n".join(
            f"Run {number} of {count}:\n{_shown(writer, run, clip)}"
            for number, (writer, run) in enumerate(
                zip(writers[:count], runs, strict=False), start=1
            )
        )
        if estimate_tokens(place + text) <= tokens or (clip <= _LEAST_CLIP and count <= LEAST_RUNS):
            return NameRecord(text, place, tuple(runs[:count]))
        if clip > _LEAST_CLIP:
            clip //= 2
        else:
            count -= 1


def _shown(writer: Renderer, run: ReadRun, clip: int) -> str:
    options = RenderOptions(clip=clip, full=min(_FULL, 3 * clip))
    steps: list[Step] = [run.texts.trajectory.steps[index] for index in run.steps]
    return replace(writer, options=options).record(steps)
