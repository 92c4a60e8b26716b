"""Uptake: whether agents use what other agents were the first to say.

Words that are specific to a run: few other runs of the system have them.

Measures of who uses whose words need them: with all words, two agents of different runs share as many
as two of one run, because they share a vocabulary.
"""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from mast_trace.trajectory import StepKind
from mast_trace_judge.multi_agent.measure import Measure, Question, TeamRun, measure, ratio

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
_SHUFFLES: Final = 20
_SEED: Final = 11
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
    draw = random.Random(_SEED)  # noqa: S311  # reproducible, not secret
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
        for _ in range(_SHUFFLES):
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
