"""Counts how much of the truth a recording holds.

Every tool's spans are read by the same reader, the one that the collector and the judge use
(`Trajectory`, which knows the vocabularies of the peers), so that a peer gets what its spans hold,
under whichever names. Data that the reader ignores is translated first: see `dialects`.
"""

from __future__ import annotations

import ast
import json
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dialects import plain
from scripted_llm import messages_of

from mast_trace import semconv
from mast_trace.trajectory import SpanRecord, StepKind, Trajectory, read_trajectory, vocabulary
from mast_trace.trajectory.foreign import translate

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from truth import Truth

ROWS = {
    "messages": "messages between agents",
    "senders": "… with the right sender",
    "extra_messages": "messages that nobody sent, or twice",
    "tools": "tool calls with name and arguments",
    "callers": "… with the right agent",
    "failures": "failed tool calls, recorded as failed",
    "extra_tools": "tool calls that nobody made, or twice",
    "handoffs": "hand-offs with source and target",
    "extra_handoffs": "hand-offs that did not happen, or twice",
    "calls": "calls of the model",
    "inputs": "… whose input can be rebuilt from the spans",
    "tokens": "input tokens, percent",
    "terminations": "runs that say why they ended",
    "traces": "traces",
    "orphans": "spans without their parent",
    "false_errors": "spans that say error where nothing failed",
}
"""Field of `Counts` -> its title in the table."""


@dataclass(frozen=True)
class Counts:
    """A column of the table: see `ROWS`."""

    messages: int
    senders: int
    extra_messages: int
    tools: int
    callers: int
    failures: int
    extra_tools: int
    handoffs: int
    extra_handoffs: int
    calls: int
    inputs: int
    tokens: int
    terminations: int
    traces: int
    orphans: int
    false_errors: int


def expected(truth: Truth, requests: Sequence[dict[str, Any]], runs: int) -> Counts:
    """Return the counts of a perfect recording of ``runs`` runs.

    Args:
        truth: of one run.
        requests: those that the model's server received in all of them.
        runs: number of runs of the program.
    """
    return Counts(
        messages=runs * len(truth.messages),
        senders=runs * len(truth.messages),
        extra_messages=0,
        tools=runs * len(truth.tools),
        callers=runs * len(truth.tools),
        failures=runs * sum(tool.failed for tool in truth.tools),
        extra_tools=0,
        handoffs=runs * len(truth.handoffs),
        extra_handoffs=0,
        calls=len(requests),
        inputs=len(requests),
        tokens=100,
        terminations=runs if truth.termination else 0,
        traces=runs,
        orphans=0,
        false_errors=0,
    )


def counted(
    spans: Sequence[SpanRecord], truth: Truth, requests: Sequence[dict[str, Any]], runs: int
) -> Counts:
    """Return the counts of a recording of ``runs`` runs, and its surplus."""
    traces: dict[str, list[SpanRecord]] = {}
    for span in plain(spans):
        traces.setdefault(span.trace_id, []).append(span)
    read = [read_trajectory(trace) for trace in traces.values()]
    steps = [step for run in read for step in run.steps]
    recorded = Counter(_messages_of(read))
    recorded[truth.messages[0]] += min(runs, _asked(read, truth.messages[0][1]))
    used = [step for step in steps if step.kind is StepKind.TOOL]
    sent = Counter(truth.messages * runs)
    tools = Counter((t.name, _flat(t.arguments)) for t in truth.tools * runs)
    callers = Counter((t.agent, t.name, _flat(t.arguments)) for t in truth.tools * runs)
    failed = Counter(t.name for t in truth.tools * runs if t.failed)
    handed = Counter(truth.handoffs * runs)
    found_tools = Counter((_named(step.tool), _flat(step.arguments)) for step in used)
    found_handoffs = Counter(_handoffs(traces.values()))
    messages = Counter(t for _, t in sent.elements()) & Counter(t for _, t in recorded.elements())
    return Counts(
        messages=messages.total(),
        senders=(sent & recorded).total(),
        extra_messages=recorded.total() - messages.total(),
        tools=(tools & found_tools).total(),
        callers=(
            callers & Counter((s.agent, _named(s.tool), _flat(s.arguments)) for s in used)
        ).total(),
        failures=(failed & Counter(s.tool for s in used if s.error is not None)).total(),
        extra_tools=found_tools.total() - (tools & found_tools).total(),
        handoffs=(handed & found_handoffs).total(),
        extra_handoffs=found_handoffs.total() - (handed & found_handoffs).total(),
        calls=sum(call.kind == "model" for run in read for call in run.invocations),
        inputs=(Counter(map(_shown, requests)) & Counter(_rebuilt(read))).total(),
        tokens=round(100 * sum(run.input_tokens for run in read) / sum(map(_tokens, requests))),
        terminations=min(runs, sum(map(_terminated, traces.values()))),
        traces=len(traces),
        orphans=sum(map(_orphans, traces.values())),
        false_errors=sum(map(_false_errors, traces.values())),
    )


def _messages_of(runs: Iterable[Trajectory]) -> Iterable[tuple[str, str]]:
    """Author and first line of every message, except texts of frameworks and results of tools.

    Only the first line counts, because CrewAI adds its expectations of an answer to a task.
    """
    for step in (step for run in runs for step in run.steps if step.kind is StepKind.MESSAGE):
        if step.text and step.role != "tool" and not step.synthetic:
            yield step.agent, step.text.split("\n")[0]


def _asked(runs: Iterable[Trajectory], question: str) -> int:
    """Number of runs whose user message is not a message, but known as the task."""
    return sum(
        question in run.task and not any(step.role == "user" for step in run.steps) for run in runs
    )


def _handoffs(traces: Iterable[Sequence[SpanRecord]]) -> Iterable[tuple[str, str]]:
    """Source and target of each hand-off that a span names, by the convention or in metadata."""
    for trace in traces:
        steps = {step.span_id: step for step in read_trajectory(trace).steps}
        for span in translate(trace):
            target = vocabulary.text(span.attributes, semconv.HANDOFF_TARGET)
            source = vocabulary.text(span.attributes, semconv.HANDOFF_SOURCE)
            if target:
                step = steps.get(span.span_id)
                yield source or (step.agent if step else ""), target


def _terminated(trace: Sequence[SpanRecord]) -> bool:
    """Return whether any span has an attribute that speaks of termination."""
    return any("terminat" in name for span in trace for name in span.attributes)


def _rebuilt(runs: Iterable[Trajectory]) -> Iterable[tuple[str, ...]]:
    """The texts that each call of the model was shown, as far as the spans hold them."""
    for run in runs:
        for call in run.invocations:
            if call.kind == "model":
                yield _texts(message.content for message in run.seen_by(call))


def _shown(request: dict[str, Any]) -> tuple[str, ...]:
    """The texts of a request, tools' results included."""
    return _texts(_joined(message.get("content")) for message in messages_of(request))


def _texts(texts: Iterable[str]) -> tuple[str, ...]:
    """Texts without white space: readers differ in what they put between the parts of a message."""
    return tuple("".join(text.split()) for text in texts if text)


def _joined(content: Any) -> str:
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content)
    return str(content or "")


def _tokens(request: dict[str, Any]) -> int:
    """The tokens of a request, as reported by the scripted server."""
    return sum(len(json.dumps(message)) for message in messages_of(request)) // 4 + 1


def _named(tool: str) -> str:
    """The name under which the model knows a tool, of which CrewAI has a form for people too."""
    return tool.lower().replace(" ", "_")


def _flat(arguments: Any) -> str:
    """Arguments as text that is equal for equal values."""
    value = vocabulary.loaded(arguments) if isinstance(arguments, str) else arguments
    if value is None and arguments:  # the literals of Python are as readable
        try:
            value = ast.literal_eval(arguments)
        except (ValueError, SyntaxError):
            value = arguments
    return json.dumps(value or {}, sort_keys=True)


def _orphans(trace: Sequence[SpanRecord]) -> int:
    known = {span.span_id for span in trace}
    return sum(bool(s.parent_span_id) and s.parent_span_id not in known for s in trace)


def _false_errors(trace: Sequence[SpanRecord]) -> int:
    """Spans with an error's status that are no failed tool."""
    errors = [span for span in translate(trace) if span.status == "Error"]
    return sum(vocabulary.operation(span.attributes) != semconv.EXECUTE_TOOL for span in errors)
