"""Hand-offs and roles: whether the next speaker is open and who chooses, and whether agents do different things."""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import combinations, pairwise
from typing import Final

from mast_trace.trajectory import Step, StepKind
from mast_trace_judge.multi_agent.measure import Measure, Question, TeamRun, mean, measure, ratio

ROLES: Final = Question(
    "roles",
    "Role differentiation",
    "share",
    "Which share of the uncertainty about the next kind of action does the agent's name remove?",
    "the same actions with the agents' names shuffled within each run",
    "Different actions are not yet different abilities: one agent with all tools may do as well.",
)
_ROLE_SHUFFLES: Final = 50
_ROLE_SEED: Final = 13

Counts = Counter[tuple[str, str]]


def roles(runs: Sequence[TeamRun]) -> Measure:
    """Return I(agent; action) / H(action), pooled over runs.

    Kinds of action are the tools by name, the hand-over and the message. After Riedl (arXiv
    2510.05174): 0 means that the agents differ in name only.
    """
    draw = random.Random(_ROLE_SEED)  # noqa: S311  # reproducible, not secret
    parts: list[Counts] = []
    shuffled: list[Counts] = [Counter() for _ in range(_ROLE_SHUFFLES)]
    for run in runs:
        pairs = [(step.agent, _kind(step)) for step in run.actions if step.agent]
        if len({agent for agent, _ in pairs}) < 2:
            continue
        parts.append(Counter(pairs))
        names = [agent for agent, _ in pairs]
        for counts in shuffled:
            draw.shuffle(names)
            counts.update(zip(names, (kind for _, kind in pairs), strict=True))
    chance = [value for value in map(differentiation, shuffled) if value is not None]
    return measure(
        ROLES,
        parts,
        lambda drawn: differentiation(_sum(drawn)),
        null=mean(chance),
        detail=_equipment(runs),
        lacking="in which several agents act in different ways",
    )


def differentiation(counts: Counts) -> float | None:
    """Return I(agent; kind) / H(kind) of counted pairs; None if there is one kind only."""
    kinds: Counter[str] = Counter()
    agents: Counter[str] = Counter()
    for (agent, kind), count in counts.items():
        agents[agent] += count
        kinds[kind] += count
    of_kinds = entropy(kinds.values())
    if not of_kinds:
        return None
    return (of_kinds + entropy(agents.values()) - entropy(counts.values())) / of_kinds


def entropy(counts: Iterable[int]) -> float:
    """Return Shannon's entropy of counts, in bits."""
    found = [count for count in counts if count]
    total = sum(found)
    return -sum(count / total * math.log2(count / total) for count in found)


def _kind(step: Step) -> str:
    if step.kind is not StepKind.TOOL:
        return "message"
    return "hand-over" if step.handoff_to else f"tool {step.tool}"


def _sum(parts: Iterable[Counts]) -> Counts:
    total: Counts = Counter()
    for part in parts:
        total.update(part)
    return total


def _equipment(runs: Sequence[TeamRun]) -> list[str]:
    """Return the models of the agents, and what the tools of two agents have in common, in words."""
    tools: dict[str, set[str]] = defaultdict(set)
    models: set[str] = set()
    agents: set[str] = set()
    for run in runs:
        agents.update(run.agents)
        models.update(each.model for each in run.trajectory.invocations if each.model)
        for step in run.actions:
            if step.kind is StepKind.TOOL and not step.handoff_to:
                tools[step.agent].add(step.tool)
    shared = [
        len(tools[a] & tools[b]) / len(tools[a] | tools[b])
        for a, b in combinations(sorted(agents), 2)
        if tools[a] | tools[b]
    ]
    words = [f"{len(agents)} agents, {len(models)} models" if models else f"{len(agents)} agents"]
    if (overlap := mean(shared)) is not None:
        words.append(f"two agents share {overlap:.0%} of their tools on average (Jaccard)")
    return words


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
