"""Concurrency: agents that work at the same time, and those that all others wait for."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Final

from mast_trace.trajectory import StepKind
from mast_trace_judge.multi_agent.measure import Measure, Question, measure, ratio

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mast_trace_judge.multi_agent.team_run import TeamRun

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
