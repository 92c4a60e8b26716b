"""Hand-offs: whether the next speaker is open, and who chooses."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from mast_trace_judge.multi_agent.measure import Measure, Question, mean, measure, ratio
from mast_trace_judge.multi_agent.roles import entropy

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mast_trace_judge.multi_agent.team_run import TeamRun

NEXT: Final = Question(
    "next_speaker",
    "Openness of the next speaker",
    "bits",
    "How uncertain is it who acts next, when it is known who acts now? 0 is a fixed pipeline.",
    "the same turns in a random order within each run",
    "Openness is no merit by itself: a pipeline is right where the work has one order.",
)
CHOICE: Final = Question(
    "chosen_by_agents",
    "Hand-offs that agents choose",
    "share",
    "Of the hand-offs of which it is recorded, which share did an agent or a model choose, and not code?",
    "",
    "A model that always makes the same choice chooses too; see the openness of the next speaker.",
)
_SHUFFLES: Final = 20
_SEED: Final = 14
_FREE: Final = ("agent", "model")

Turns = Counter[tuple[str, str]]


def hand_offs(runs: Sequence[TeamRun]) -> list[Measure]:
    """Return the conditional entropy of the next speaker, and the share of hand-offs that agents choose."""
    draw = random.Random(_SEED)  # noqa: S311  # reproducible, not secret
    parts: list[Turns] = []
    shuffled: list[Turns] = [Counter() for _ in range(_SHUFFLES)]
    for run in runs:
        turns = _turns(run)
        if len(set(turns)) < 2:
            continue
        parts.append(Counter(pairwise(turns)))
        for counts in shuffled:
            draw.shuffle(turns)
            counts.update((one, other) for one, other in pairwise(turns) if one != other)
    chance = [value for value in map(next_speaker, shuffled) if value is not None]
    chosen = [
        (float(sum(run.chosen_by.get(by, 0) for by in _FREE)), float(sum(run.chosen_by.values())))
        for run in runs
        if run.chosen_by
    ]
    totals: Counter[str] = Counter()
    for run in runs:
        totals.update(run.chosen_by)
    told = [f"{by}: {count:,}" for by, count in totals.most_common()]
    return [
        measure(
            NEXT,
            parts,
            lambda drawn: next_speaker(_sum(drawn)),
            null=mean(chance),
            lacking="in which several agents act",
        ),
        measure(CHOICE, chosen, ratio, detail=told, lacking="that record who chose"),
    ]


def next_speaker(turns: Turns) -> float | None:
    """Return H(next | current) of counted turns, in bits; None of none."""
    of_current: dict[str, list[int]] = defaultdict(list)
    for (current, _), count in turns.items():
        of_current[current].append(count)
    total = sum(turns.values())
    if not total:
        return None
    return sum(sum(counts) / total * entropy(counts) for counts in of_current.values())


def _turns(run: TeamRun) -> list[str]:
    """Return the acting agents in order, each stretch of one agent once."""
    turns: list[str] = []
    for step in run.actions:
        if step.agent and (not turns or turns[-1] != step.agent):
            turns.append(step.agent)
    return turns


def _sum(parts: Iterable[Turns]) -> Turns:
    total: Turns = Counter()
    for part in parts:
        total.update(part)
    return total
