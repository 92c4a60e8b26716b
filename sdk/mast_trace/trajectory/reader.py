"""Reads spans into a `Trajectory`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mast_trace import semconv
from mast_trace.trajectory import vocabulary
from mast_trace.trajectory.copies import without_copies
from mast_trace.trajectory.foreign import translate
from mast_trace.trajectory.model import Invocation, Trajectory
from mast_trace.trajectory.span_messages import aliases_of, key, texts_of
from mast_trace.trajectory.steps import error_of, steps_of, tokens_of
from mast_trace.trajectory.vocabulary import text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mast_trace.messages import Message
    from mast_trace.trajectory.model import SpanRecord, Step


def read_trajectory(spans: Iterable[SpanRecord]) -> Trajectory:
    """See `read_trajectory`. A span id that comes twice counts once."""
    unique = {key(span): span for span in list(spans)}
    ordered = translate(without_copies(in_order(unique.values())))
    agents = acting_agents(ordered)
    aliases = aliases_of(ordered)
    texts = texts_of(ordered)
    steps = steps_of(ordered, agents, texts, aliases)
    root = root_of(ordered)
    task = _task(root.attributes if root else {}, texts.by_id, steps)
    return replace(
        head_of(ordered, root, task),
        steps=steps,
        invocations=tuple(
            invocation_of(span, agents[key(span)], texts.answer_of(span), aliases)
            for span in ordered
            if span.operation in {semconv.INVOKE_AGENT, semconv.CHAT}
        ),
        texts=texts.by_id,
    )


def head_of(ordered: Sequence[SpanRecord], root: SpanRecord | None, task: str) -> Trajectory:
    """Return a run without its steps, turns and texts.

    Args:
        ordered: its spans, by start time.
        root: see `root_of`.
        task: what it was asked to do.
    """
    attributes = root.attributes if root else {}
    outcome, outcome_reason = _outcome(ordered)
    chats = [span for span in ordered if span.operation == semconv.CHAT]
    return Trajectory(
        trace_id=ordered[0].trace_id if ordered else "",
        steps=(),
        name=text(attributes, semconv.WORKFLOW_NAME) or (root.name if root else ""),
        framework=_first(ordered, "framework"),
        service=next((span.service for span in ordered if span.service), ""),
        conversation_id=_first(ordered, "conversation"),
        task=task,
        outcome=outcome,
        outcome_reason=outcome_reason,
        termination_reason=text(attributes, semconv.RUN_TERMINATION_REASON),
        open_items=vocabulary.strings(attributes.get(semconv.PLAN_OPEN_ITEMS)),
        error=error_of(root) if root else None,
        finished=root is not None,
        start=min((span.start for span in ordered), default=0),
        end=max((span.end for span in ordered), default=0),
        input_tokens=sum(tokens_of(span, "input_tokens") for span in chats),
        output_tokens=sum(tokens_of(span, "output_tokens") for span in chats),
    )


def in_order(spans: Iterable[SpanRecord]) -> list[SpanRecord]:
    """Return spans by start time; of those that begin together the longest first.

    Spans of one time have the order of their ids: numbers of steps are the same wherever they come
    from.
    """
    return sorted(spans, key=lambda span: (span.start, -span.end, span.span_id))


def root_of(spans: Sequence[SpanRecord]) -> SpanRecord | None:
    """The span of the run as a whole.

    That is a run without a parent; else a run inside an application's own trace, whose root is
    about something else; else, where nobody marks runs, the span without a parent. Of several the
    longest.
    """
    runs = [span for span in spans if span.operation == semconv.INVOKE_WORKFLOW]
    tops = [span for span in spans if not span.parent_span_id.strip("0")]
    top_runs = [span for span in runs if not span.parent_span_id.strip("0")]
    return max(top_runs or runs or tops, key=lambda span: span.end - span.start, default=None)


def _outcome(spans: Sequence[SpanRecord]) -> tuple[str, str]:
    """What was said of the run's outcome last: on its root, or after its end on a span of its own."""
    said = [span for span in spans if text(span.attributes, semconv.RUN_OUTCOME)]
    if not said:
        return "", ""
    last = max(said, key=lambda span: span.end).attributes
    return text(last, semconv.RUN_OUTCOME), text(last, semconv.RUN_OUTCOME_REASON)


def acting_agents(spans: Sequence[SpanRecord]) -> dict[str, str]:
    """Map each span, by its `key`, to its agent: its own, else that of the nearest span around it."""
    by_id = {span.span_id: span for span in spans if span.span_id}
    known: dict[str, str] = {}
    for span in spans:
        path: dict[str, None] = {}
        current: SpanRecord | None = span
        agent = ""
        while current is not None and key(current) not in path:
            if key(current) in known:
                agent = known[key(current)]
                break
            path[key(current)] = None
            agent = str(vocabulary.read(current.attributes, "agent") or "")
            if agent:
                break
            current = by_id.get(current.parent_span_id)
        known.update(dict.fromkeys(path, agent))
    return known


def invocation_of(
    span: SpanRecord, agent: str, output: Message | None, aliases: Mapping[str, str]
) -> Invocation:
    """Return the turn or the call of a model that a span is.

    Args:
        span: of a turn or a call.
        agent: who acts in it.
        output: its answer; see `Texts.answer_of`.
        aliases: see `aliases_of`.
    """
    attributes = span.attributes
    finish = vocabulary.strings(attributes.get(semconv.FINISH_REASONS))
    return Invocation(
        kind="agent" if span.operation == semconv.INVOKE_AGENT else "model",
        agent=agent,
        span_id=span.span_id,
        parent_span_id=span.parent_span_id,
        start=span.start,
        end=span.end,
        input_ids=tuple(
            aliases.get(identity, identity)
            for identity in vocabulary.strings(attributes.get(semconv.INPUT_MESSAGE_IDS))
        ),
        input_roles=vocabulary.strings(attributes.get(semconv.INPUT_MESSAGE_ROLES)),
        input_length=vocabulary.integer(attributes.get(semconv.INPUT_LENGTH)),
        output_id=aliases.get(identity := text(attributes, semconv.MESSAGE_ID), identity),
        output_text=output.content if output else "",
        error=error_of(span),
        model=str(vocabulary.read(attributes, "model") or ""),
        finish_reason=finish[0] if finish else "",
    )


def _task(
    attributes: Mapping[str, Any], texts: Mapping[str, Message], steps: Sequence[Step]
) -> str:
    for identity in reversed(vocabulary.strings(attributes.get(semconv.INPUT_MESSAGE_IDS))):
        if identity in texts and texts[identity].role in {"user", "assistant"}:
            return texts[identity].content
    asked = next((step.text for step in steps if step.role == "user"), "")
    return asked or next(
        (message.content for message in texts.values() if message.role == "user"), ""
    )


def _first(spans: Sequence[SpanRecord], field: str) -> str:
    values = (vocabulary.read(span.attributes, field) for span in spans)
    return str(next((value for value in values if value), ""))
