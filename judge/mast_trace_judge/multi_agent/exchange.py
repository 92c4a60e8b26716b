"""Exchange: whether agents use what others were the first to say, who chooses the next speaker, and roles.

Words that are specific to a run: few other runs of the system have them.

Measures of who uses whose words need them: with all words, two agents of different runs share as many
as two of one run, because they share a vocabulary.
"""

from __future__ import annotations

import math
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, pairwise
from typing import Final

from mast_trace.trajectory import Step, StepKind
from mast_trace_judge.multi_agent.measure import Measure, Question, TeamRun, mean, measure, ratio

_WORD = re.compile(r"\d+(?:[.,:/-]\d+)*|[^\W\d_]{3,}", re.UNICODE)
_COMPARED: Final = 100_000
"""Characters of a text that are read."""
RARE: Final = 0.02
"""Share of the runs in which a specific word occurs at most; one run is always allowed."""

UPTAKE: Final = Question(
    "uptake",
    "Uptake of what is new",
    "share",
    "Of the words and numbers that an agent is the first to say, which share does another agent use later?",
    "the same messages with their authors shuffled within the run",
    "An agent may take up what is wrong, and may follow a message without repeating a word of it.",
)
_WORDS_SHUFFLES: Final = 20
_WORDS_SEED: Final = 11
_HASH: Final = re.compile(r"#[0-9a-f]{16}$")


@lru_cache(maxsize=4096)
def words_of(text: str) -> frozenset[str]:
    """Return the words of three letters or more and the numbers of a text, in lower case."""
    return frozenset(found.lower() for found in _WORD.findall(text[:_COMPARED]))


def specific_words(runs: Sequence[TeamRun]) -> frozenset[str]:
    """Return the words that at most `RARE` of the runs have in an agent's message."""
    occurs: Counter[str] = Counter()
    for run in runs:
        occurs.update(frozenset().union(*(words_of(step.text) for step in run.said)))
    most = max(1, int(RARE * len(runs)))
    return frozenset(word for word, count in occurs.items() if count <= most)


@dataclass(frozen=True)
class _Use:
    """A message or a tool call with the words that it uses, and those that its tools told the agent."""

    agent: str
    words: frozenset[str]
    is_message: bool
    message_id: str = ""


def uptake(runs: Sequence[TeamRun]) -> Measure:
    """Return the pooled share of new words that another agent uses later, with the share by chance.

    A word counts as used if another agent says it, or passes it to a tool, after it was said; not if a
    tool of that agent returned it. New words of messages after which no other agent acts are left out.
    """
    rare = specific_words(runs)
    draw = random.Random(_WORDS_SEED)  # noqa: S311  # reproducible, not secret
    parts: list[tuple[float, float]] = []
    chance: list[tuple[float, float]] = []
    seen: list[tuple[float, float]] = []
    for run in runs:
        uses, told = _uses(run, rare)
        authors = [use.agent for use in uses]
        if len(set(authors)) < 2:
            continue
        used, new = _counted(uses, authors, told)
        if not new:
            continue
        parts.append((used, new))
        if shown := _shown(run):
            seen.append((_counted(uses, authors, told, shown)[0], used))
        for _ in range(_WORDS_SHUFFLES):
            draw.shuffle(authors)
            chance.append(_counted(uses, authors, told))
    detail = [f"{sum(not used for used, _ in parts)} of {len(parts)} runs without any"]
    if (share := ratio(seen)) is not None:
        detail.append(
            f"{share:.0%} of it by agents that were shown the message, where inputs are recorded"
        )
    lacking = "in which an agent says something new before another one acts"
    return measure(UPTAKE, parts, ratio, null=ratio(chance), detail=detail, lacking=lacking)


def _uses(run: TeamRun, rare: frozenset[str]) -> tuple[list[_Use], dict[str, frozenset[str]]]:
    """Return what agents say and ask, and what tools told each agent."""
    task = words_of(run.trajectory.task)
    uses: list[_Use] = []
    told: dict[str, frozenset[str]] = {}
    messages = {step.index for step in run.said}
    for step in run.actions:
        if step.index in messages:
            words = (words_of(step.text) & rare) - task
            uses.append(_Use(step.agent, words, True, step.message_id))
        elif step.kind is StepKind.TOOL:
            uses.append(_Use(step.agent, (words_of(step.arguments) & rare) - task, False))
            known = told.get(step.agent, frozenset())
            told[step.agent] = known | (words_of(step.text) & rare)
    return uses, told


def _shown(run: TeamRun) -> dict[str, set[str]]:
    """Return the agents that were shown each message, by its id."""
    shown: dict[str, set[str]] = {}
    for invocation in run.trajectory.invocations:
        for identity in invocation.input_ids:
            # The same message with another text or role has the id with a hash behind it.
            for each in {identity, _HASH.sub("", identity)}:
                shown.setdefault(each, set()).add(invocation.agent)
    return shown


def _counted(
    uses: Sequence[_Use],
    authors: Sequence[str],
    told: Mapping[str, frozenset[str]],
    shown: Mapping[str, set[str]] | None = None,
) -> tuple[int, int]:
    """Return how many new words another author uses later, and how many there are.

    Args:
        uses: in order.
        authors: of each of them.
        told: the words that tools returned to each agent.
        shown: agents by message; only they use its words. All do if it is None.
    """
    last: dict[str, dict[str, int]] = defaultdict(dict)
    acted: dict[str, int] = {}
    for place, (use, author) in enumerate(zip(uses, authors, strict=True)):
        acted[author] = place
        for word in use.words:
            last[word][author] = place
    said: set[str] = set()
    used = new = 0
    for place, (use, author) in enumerate(zip(uses, authors, strict=True)):
        first = use.words - said if use.is_message else frozenset[str]()
        said |= use.words
        others = {other for other, end in acted.items() if other != author and end > place}
        if not first or not others:
            continue
        new += len(first)
        readers = others if shown is None else others & shown.get(use.message_id, set())
        used += sum(
            any(
                reader in readers and end > place and word not in told.get(reader, frozenset())
                for reader, end in last[word].items()
            )
            for word in first
        )
    return used, new


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
