"""A measure of a system: its value, its interval over runs, and the value that its null reaches; and a run as measures read it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, TypeVar

from mast_trace import semconv
from mast_trace.trajectory import (
    SpanRecord,
    Step,
    StepKind,
    Trajectory,
    agent_requests,
    read_trajectory,
    vocabulary,
)
from mast_trace_judge.intervals import wilson
from mast_trace_judge.local.acts import is_said, ordinary

_PROTOCOLS: Final = frozenset({semconv.MCP_METHOD_NAME, agent_requests.METHOD})


@dataclass(frozen=True)
class TeamRun:
    """One run.

    Attributes:
        trajectory: its steps.
        read: input tokens of all model calls.
        written: output tokens of all model calls.
        spoken: output tokens of the calls that asked for no tool, without the last of them, whose text is
            the answer: the tokens of talk between agents.
        chosen_by: how often an ``agent``, a ``model``, ``code`` or a ``user`` selected the next speaker.
        messages: number of messages that spans record.
        acts: of these, those with an explicit speech act.
        requests: requests of the protocols A2A and MCP.
        shared: writes to a resource that another agent read later; None if no span names a resource.
    """

    trajectory: Trajectory
    read: int = 0
    written: int = 0
    spoken: int = 0
    chosen_by: Mapping[str, int] = field(default_factory=dict)
    messages: int = 0
    acts: int = 0
    requests: int = 0
    shared: int | None = None

    @cached_property
    def actions(self) -> list[Step]:
        """The steps that agents and tools made, in order."""
        return ordinary(self.trajectory)

    @cached_property
    def said(self) -> list[Step]:
        """The messages that agents wrote themselves, in order; repeated deliveries count once."""
        kept: list[Step] = []
        for step in ordinary(self.trajectory):
            if not is_said(step):
                continue
            if kept and (kept[-1].agent, kept[-1].text) == (step.agent, step.text):
                continue
            kept.append(step)
        return kept

    @cached_property
    def agents(self) -> tuple[str, ...]:
        """The agents that act, in the order of their first step."""
        return tuple(dict.fromkeys(step.agent for step in self.actions if step.agent))

    @cached_property
    def edges(self) -> Counter[tuple[str, str]]:
        """Messages and hand-offs between different agents of the run, by sender and recipient."""
        inside = set(self.agents)
        found: Counter[tuple[str, str]] = Counter()
        for step in self.actions:
            targets = step.recipients if step.kind is StepKind.MESSAGE else (step.handoff_to,)
            found.update((step.agent, to) for to in targets if to in inside - {step.agent})
        return found


def team_run(spans: Sequence[SpanRecord], trajectory: Trajectory | None = None) -> TeamRun:
    """Return a run from its spans.

    Args:
        spans: of one run.
        trajectory: the same run, if it was read already.
    """
    calls = [span for span in spans if span.operation == semconv.CHAT]
    calls.sort(key=lambda span: (span.start, span.span_id))
    messages = [span for span in spans if span.operation == semconv.SEND_MESSAGE]
    texts = [call for call in calls if "tool" not in _finish(call.attributes)]
    return TeamRun(
        trajectory or read_trajectory(spans),
        read=sum(_number(call.attributes, "input_tokens") for call in calls),
        written=sum(_number(call.attributes, "output_tokens") for call in calls),
        spoken=sum(_number(call.attributes, "output_tokens") for call in texts[:-1]),
        chosen_by=Counter(
            str(span.attributes[semconv.SELECTED_BY])
            for span in spans
            if semconv.SELECTED_BY in span.attributes
        ),
        messages=len(messages),
        acts=sum(semconv.MESSAGE_PERFORMATIVE in span.attributes for span in messages),
        requests=sum(not _PROTOCOLS.isdisjoint(span.attributes) for span in spans),
        shared=_shared(spans),
    )


def _finish(attributes: Mapping[str, Any]) -> str:
    """Return the reasons for which a model call ended, as one text."""
    return str(attributes.get(semconv.FINISH_REASONS) or "").lower()


def _number(attributes: Mapping[str, Any], field: str) -> int:
    try:
        return max(0, int(vocabulary.read(attributes, field) or 0))
    except (TypeError, ValueError):
        return 0


def _shared(spans: Iterable[SpanRecord]) -> int | None:
    """Return the number of writes to a resource that another agent read later; None without resources."""
    named = [span for span in spans if span.attributes.get(semconv.RESOURCE_ID)]
    unread: dict[str, set[str]] = {}
    count = 0
    for span in sorted(named, key=lambda span: span.start):
        writers = unread.setdefault(str(span.attributes[semconv.RESOURCE_ID]), set())
        agent = vocabulary.agent(span.attributes)
        if span.attributes.get(semconv.RESOURCE_ACCESS) == "write":
            writers.add(agent)
        else:
            count += len(writers - {agent})
            writers &= {agent}
    return count if named else None


LEAST_RUNS: Final = 20
"""Runs below which nothing is measured."""
_RESAMPLES: Final = 400
_SEED: Final = 20250521
_EACH_SIDE: Final = 0.025

T = TypeVar("T")


@dataclass(frozen=True)
class Question:
    """The fixed part of a measure: what it asks, and what it leaves open.

    Attributes:
        code: its name in tables and queries.
        title: a heading.
        unit: ``share``, ``bits``, ``times`` or ``number``.
        asks: one sentence.
        null: the system that the null stands for; empty if the measure needs none, because it is a count.
        leaves_open: one sentence on what the value does not say.
    """

    code: str
    title: str
    unit: str
    asks: str
    null: str
    leaves_open: str


@dataclass(frozen=True)
class Measure:
    """The value of a question for one system.

    Attributes:
        question: what is measured.
        runs: number of runs that say something about it.
        value: None where it was not measured; ``silent`` gives the reason then.
        low: lower end of the 95 % interval, by resampling runs.
        high: its upper end.
        null: the value that the null reaches on the same runs; None if the question has none.
        detail: further counts in words.
        silent: the reason for which there is no value; empty if there is one.
    """

    question: Question
    runs: int
    value: float | None = None
    low: float | None = None
    high: float | None = None
    null: float | None = None
    detail: tuple[str, ...] = ()
    silent: str = ""


def measure(
    question: Question,
    parts: Sequence[T],
    statistic: Callable[[Sequence[T]], float | None],
    *,
    null: float | None = None,
    detail: Sequence[str] = (),
    lacking: str = "",
) -> Measure:
    """Return the measure of a system from the parts that its runs contribute.

    The interval takes 2.5 % and 97.5 % of the statistic over resampled runs (percentile bootstrap,
    Efron 1979): runs are independent of each other, steps of one run are not. Where all runs show a
    share of 0 or of 1, resampling shows no other, and Wilson's interval over runs takes its place.

    Args:
        question: what is measured.
        parts: one for each run that says something about it.
        statistic: of parts; None where they allow none.
        null: the value of the null on the same runs.
        detail: further counts in words.
        lacking: what a run needs in order to say something, for the reason of silence.
    """
    if len(parts) < LEAST_RUNS:
        reason = f"{len(parts)} of at least {LEAST_RUNS} runs"
        return Measure(question, len(parts), silent=f"{reason} {lacking}".strip())
    value = statistic(parts)
    if value is None:
        return Measure(question, len(parts), silent=f"no run {lacking}".strip())
    low, high = _interval(question, parts, statistic, value)
    return Measure(question, len(parts), value, low, high, null, tuple(detail))


def _interval(
    question: Question,
    parts: Sequence[T],
    statistic: Callable[[Sequence[T]], float | None],
    value: float,
) -> tuple[float, float]:
    """Return the 95 % interval of a statistic over runs."""
    if question.unit == "share" and value in {0, 1}:
        return wilson(round(value) * len(parts), len(parts))
    draw = random.Random(_SEED)  # noqa: S311  # reproducible, not secret
    again = (statistic(draw.choices(parts, k=len(parts))) for _ in range(_RESAMPLES))
    found = sorted(each for each in again if each is not None)
    last = len(found) - 1
    return found[int(_EACH_SIDE * last)], found[round((1 - _EACH_SIDE) * last)]


def ratio(parts: Sequence[tuple[float, float]]) -> float | None:
    """Return the sum of the first numbers by that of the second; None if that is 0."""
    whole = sum(part[1] for part in parts)
    return sum(part[0] for part in parts) / whole if whole else None


def mean(parts: Sequence[float]) -> float | None:
    """Return the mean; None of nothing."""
    return sum(parts) / len(parts) if parts else None
