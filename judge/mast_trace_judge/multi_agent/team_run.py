"""A run as the measures read it: its steps, and the counts that only its spans hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

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
