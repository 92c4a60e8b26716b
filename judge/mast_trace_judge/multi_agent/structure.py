"""Structure: the shape of the conversation, and the plain counts of protocol and environment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mast_trace_judge.multi_agent.measure import Measure, Question, mean, measure, ratio

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterable, Sequence

    from mast_trace_judge.multi_agent.team_run import TeamRun

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
