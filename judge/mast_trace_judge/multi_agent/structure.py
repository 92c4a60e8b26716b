"""Structure: the shape of the conversation, and the plain counts of protocol and environment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mast_trace_judge.multi_agent.measure import Measure, Question, mean, measure, ratio
from mast_trace_judge.multi_agent.uptake import words_of

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterable, Sequence

    from mast_trace_judge.multi_agent.team_run import TeamRun

PRICE: Final = Question(
    "talk",
    "Price of talk",
    "share",
    "Which share of the tokens that models write is text between agents, neither tool call nor answer?",
    "",
    "Talk may be the work itself: the share says what it costs, not whether it was worth it.",
)
READING: Final = Question(
    "reading",
    "Tokens read for each one written",
    "times",
    "How much context do the team's models read for one token that they write?",
    "",
    "Cached input costs less than its tokens: `mast-trace cost` knows the price.",
)
ECHO: Final = Question(
    "echo",
    "Echoes",
    "share",
    "Which share of the agents' messages has less than a tenth of words that nobody in the run had used?",
    "",
    "A confirmation is an echo too, and may be wanted.",
)
_NEW: Final = 0.1

CENTRALISATION: Final = Question(
    "centralisation",
    "Centralisation",
    "share",
    "How near is the conversation to a star, in which all talk to one agent (1), and how far from a ring (0)?",
    "",
    "A star may be the framework's choice: a supervisor that only routes is one.",
)
RECIPROCITY: Final = Question(
    "reciprocity",
    "Reciprocity",
    "share",
    "Of the pairs in which one agent addresses another, in which share does the other address it too?",
    "",
    "An answer to the whole group counts for each of its members.",
)
PROTOCOL: Final = Question(
    "protocol",
    "Protocol share",
    "share",
    "Which share of messages and requests carries an explicit speech act, or is one of A2A or MCP?",
    "",
    "It counts what spans carry: an act that is only in the words is not seen.",
)
ENVIRONMENT: Final = Question(
    "environment",
    "Coordination through the environment",
    "share",
    "Of all ways in which one agent reaches another, which share are resources that one writes and one reads?",
    "",
    "Files that no span names are not seen.",
)


def talk(runs: Sequence[TeamRun]) -> list[Measure]:
    """Return price of talk, tokens read for each one written, and echoes.

    After arXiv 2512.08296 and GEMMAS (arXiv 2507.13190). Tokens after the decisive step are in the costs.
    """
    teams = [run for run in runs if len(run.agents) > 1]
    spoken = [(float(run.spoken), float(run.written)) for run in teams if run.written]
    read = [(float(run.read), float(run.written)) for run in teams if run.read and run.written]
    echoes = [part for part in map(_echoes, teams) if part[1]]
    tokens = "of several agents with counted tokens"
    return [
        measure(PRICE, spoken, ratio, lacking=tokens),
        measure(READING, read, ratio, lacking=tokens),
        measure(ECHO, echoes, ratio, lacking="of several agents that say something twice or more"),
    ]


def _echoes(run: TeamRun) -> tuple[float, float]:
    """Return the number of echoes, and of messages after the first one."""
    used = set(words_of(run.trajectory.task))
    echoes = total = 0
    for place, step in enumerate(run.said):
        words = words_of(step.text)
        if place and words:
            total += 1
            echoes += len(words - used) < _NEW * len(words)
        used |= words
    return echoes, total


def structure(runs: Sequence[TeamRun]) -> list[Measure]:
    """Return centralisation (Freeman 1979), reciprocity, protocol share and environment share.

    Centralisation needs runs of three agents and more.
    """
    edges = [run.edges for run in runs]
    stars = [value for value in map(centralisation, edges) if value is not None]
    mutual = [_mutual(each) for each in edges if each]
    acts = [
        (float(run.acts + run.requests), float(run.messages + run.requests))
        for run in runs
        if run.messages or run.requests
    ]
    shared = [
        (float(run.shared), float(sum(each.values()) + run.shared))
        for run, each in zip(runs, edges, strict=True)
        if run.shared is not None and (each or run.shared)
    ]
    talk = "in which agents address each other"
    return [
        measure(CENTRALISATION, stars, mean, lacking=f"{talk}, three or more"),
        measure(RECIPROCITY, mutual, ratio, lacking=talk),
        measure(PROTOCOL, acts, ratio, lacking=talk),
        measure(ENVIRONMENT, shared, ratio, lacking="with spans that name a resource"),
    ]


def centralisation(edges: Counter[tuple[str, str]]) -> float | None:
    """Return sum(max d - d_i) / ((n - 1)(n - 2)) of the undirected graph; None below three agents."""
    neighbours: dict[str, set[str]] = {}
    for one, other in edges:
        neighbours.setdefault(one, set()).add(other)
        neighbours.setdefault(other, set()).add(one)
    degrees = [len(found) for found in neighbours.values()]
    size = len(degrees)
    if size < 3:
        return None
    return sum(max(degrees) - degree for degree in degrees) / ((size - 1) * (size - 2))


def _mutual(edges: Iterable[tuple[str, str]]) -> tuple[float, float]:
    pairs = set(edges)
    return float(sum((other, one) in pairs for one, other in pairs)), float(len(pairs))
