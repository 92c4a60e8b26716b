"""Structure: the shape of the conversation, and the plain counts of protocol and environment."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from mast_trace.trajectory import StepKind
from mast_trace_judge.multi_agent.exchange import words_of
from mast_trace_judge.multi_agent.measure import Measure, Question, TeamRun, mean, measure, ratio

CONCURRENCY: Final = Question(
    "concurrency",
    "Concurrency",
    "share",
    "In which share of the working time do two or more agents work at once?",
    "",
    "One after the other is right where each needs the other's result.",
)
Span = tuple[int, int]


def concurrency(runs: Sequence[TeamRun]) -> Measure:
    """Return the time in which two or more agents work, by the time in which any does.

    An agent works while a model or a tool works for it; a tool inside which another agent works, such as
    an agent that is called as a tool, does not count. After arXiv 2505.21298, asynchrony.
    """
    parts: list[tuple[float, float]] = []
    waiting: list[tuple[float, float]] = []
    alone: Counter[str] = Counter()
    for run in runs:
        busy = working(run)
        if len(busy) < 2:
            continue
        times = overlaps(busy)
        active = sum(times.values())
        parts.append((sum(time for agents, time in times.items() if len(agents) > 1), active))
        length = run.trajectory.end - run.trajectory.start
        waiting.append((max(0, length - active), max(length, active)))
        alone.update(
            {next(iter(agents)): time for agents, time in times.items() if len(agents) == 1}
        )
    detail = []
    if (waits := ratio(waiting)) is not None:
        detail.append(f"{waits:.0%} of the runs' time nobody works")
    if alone:
        agent, time = alone.most_common(1)[0]
        detail.append(
            f"{agent} alone: {time / alone.total():.0%} of the time in which one agent works"
        )
    lacking = "in which several agents' work was timed"
    return measure(CONCURRENCY, parts, ratio, detail=detail, lacking=lacking)


def working(run: TeamRun) -> dict[str, list[Span]]:
    """Return the stretches of work of each agent, merged and in order, in nanoseconds since the epoch."""
    calls = [
        (each.agent, each.start, each.end)
        for each in run.trajectory.invocations
        if each.kind == "model" and each.agent and each.end > each.start
    ]
    tools = [
        (step.agent, step.start, step.end)
        for step in run.actions
        if step.kind is StepKind.TOOL and step.agent and step.end > step.start
        if not any(
            agent != step.agent and step.start <= start and end <= step.end
            for agent, start, end in calls
        )
    ]
    found: dict[str, list[Span]] = defaultdict(list)
    for agent, start, end in sorted([*calls, *tools], key=lambda each: each[1]):
        spans = found[agent]
        if spans and start <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(spans[-1][1], end))
        else:
            spans.append((start, end))
    return dict(found)


def overlaps(busy: Mapping[str, Iterable[Span]]) -> dict[frozenset[str], int]:
    """Return the nanoseconds in which exactly each set of agents works; without the empty set."""
    events = sorted(
        (time, begins, agent)
        for agent, spans in busy.items()
        for start, end in spans
        for time, begins in ((start, True), (end, False))
    )
    times: dict[frozenset[str], int] = defaultdict(int)
    inside: set[str] = set()
    before = 0
    for time, begins, agent in events:
        if inside and time > before:
            times[frozenset(inside)] += time - before
        before = time
        if begins:
            inside.add(agent)
        else:
            inside.discard(agent)
    return dict(times)


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
