"""Reads spans into a `Trajectory`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mast_trace import semconv
from mast_trace.trajectory import vocabulary
from mast_trace.trajectory.agent_requests import as_call, hand_offs
from mast_trace.trajectory.copies import one_span_per_call, without_copies
from mast_trace.trajectory.foreign import translate
from mast_trace.trajectory.model import Invocation, SpanRecord, Step, Trajectory
from mast_trace.trajectory.span_messages import Texts, aliases_of, key, texts_of
from mast_trace.trajectory.span_tree import parallel_branches
from mast_trace.trajectory.steps import error_of, steps_of, tokens_of
from mast_trace.trajectory.vocabulary import text

if TYPE_CHECKING:
    from mast_trace.messages import Message


def read_trajectory(spans: Iterable[SpanRecord]) -> Trajectory:
    """See `read_trajectory`. A span id that comes twice counts once; an ended span takes precedence."""
    # A stable order, in which open spans come first and are overwritten.
    unique = {key(span): span for span in sorted(spans, key=lambda span: not span.is_open)}
    translated = without_copies(translate(in_order(unique.values())))
    requests = hand_offs(translated)
    ordered, _ = one_span_per_call([as_call(s, requests.get(s.span_id)) for s in translated])
    aliases = aliases_of(ordered)
    texts = texts_of(ordered)
    agents = acting_agents(ordered, texts)
    branches = parallel_branches(in_order(unique.values()))
    steps = tuple(
        replace(step, branch=branch) if (branch := branches.get(step.span_id)) else step
        for step in steps_of(ordered, agents, texts, aliases)
    )
    root = root_of(ordered)
    task = _task(root.attributes if root else {}, texts.by_id, steps)
    return replace(
        head_of(ordered, root, task),
        steps=steps,
        invocations=tuple(
            invocation_of(
                span,
                agents[key(span)],
                texts.answer_of(span),
                aliases,
                branches.get(span.span_id, ""),
            )
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
        task: the text of its task.
    """
    attributes = root.attributes if root else {}
    outcome, outcome_reason, expected = _outcome(ordered)
    chats = [span for span in ordered if span.operation == semconv.CHAT]
    return Trajectory(
        trace_id=ordered[0].trace_id if ordered else "",
        steps=(),
        name=vocabulary.workflow(attributes) or (name_of(root) if root else ""),
        framework=_first(ordered, "framework"),
        service=next((span.service for span in ordered if span.service), ""),
        conversation_id=_first(ordered, "conversation"),
        task=task,
        outcome=outcome,
        outcome_reason=outcome_reason,
        expected=expected,
        termination_reason=text(attributes, semconv.RUN_TERMINATION_REASON),
        human_inputs=vocabulary.strings(attributes.get(semconv.HUMAN_INPUTS)),
        human_input_spans=vocabulary.strings(attributes.get(semconv.HUMAN_INPUT_SPANS)),
        given_lessons=vocabulary.strings(attributes.get(semconv.FEEDBACK_TEXTS)),
        seed=text(attributes, semconv.RANDOM_SEED),
        hash_seed=text(attributes, semconv.HASH_SEED),
        resumes=text(attributes, semconv.RUN_RESUMES),
        redacted=vocabulary.strings(attributes.get(semconv.CONTENT_REDACTED)),
        cut=vocabulary.strings(attributes.get(semconv.CONTENT_TRUNCATED)),
        open_items=vocabulary.strings(attributes.get(semconv.PLAN_OPEN_ITEMS)),
        error=error_of(root) if root else None,
        finished=root is not None and not root.is_open,
        start=min((span.start for span in ordered), default=0),
        end=max((span.end for span in ordered), default=0),
        input_tokens=sum(tokens_of(span, "input_tokens") for span in chats),
        output_tokens=sum(tokens_of(span, "output_tokens") for span in chats),
    )


def name_of(root: SpanRecord) -> str:
    """Return the name of a run whose root names no workflow: an agent's, else the span's."""
    return root.name.removeprefix(f"{semconv.INVOKE_AGENT} ")


def in_order(spans: Iterable[SpanRecord]) -> list[SpanRecord]:
    """Return spans by start time; of those that begin together the longest first.

    Spans of one time have the order of their ids: numbers of steps are the same wherever they come
    from.
    """
    return sorted(spans, key=lambda span: (span.start, -span.end, span.span_id))


def root_of(spans: Sequence[SpanRecord]) -> SpanRecord | None:
    """The span of the run as a whole.

    It is a run without a parent; else a run inside an application's own trace, whose root belongs
    to the application; else, where no span is marked as a run, the span without a parent. Among
    several the longest counts. An open run counts above all runs inside it.
    """
    runs = _outside_of_open_ones(
        [s for s in spans if s.operation == semconv.INVOKE_WORKFLOW], spans
    )
    tops = [span for span in spans if not span.parent_span_id.strip("0")]
    top_runs = [span for span in runs if not span.parent_span_id.strip("0")]
    return max(top_runs or runs or tops, key=lambda span: span.end - span.start, default=None)


def _outside_of_open_ones(
    runs: Sequence[SpanRecord], spans: Sequence[SpanRecord]
) -> Sequence[SpanRecord]:
    """Return the runs that have ended outside of an open one; the open ones if there is none."""
    if not any(run.is_open for run in runs):
        return runs
    by_id = {span.span_id: span for span in spans}

    def lies_in_an_open_one(span: SpanRecord | None) -> bool:
        seen: set[str] = set()
        while span is not None and span.span_id not in seen:
            if span.is_open:
                return True
            seen.add(span.span_id)
            span = by_id.get(span.parent_span_id)
        return False

    return [run for run in runs if not lies_in_an_open_one(run)] or [r for r in runs if r.is_open]


def _outcome(spans: Sequence[SpanRecord]) -> tuple[str, str, str]:
    """The last outcome that was recorded for the run, its reason, and the expected answer: on its root, or later on a span of its own."""
    said = [span for span in spans if text(span.attributes, semconv.RUN_OUTCOME)]
    if not said:
        return "", "", ""
    last = max(said, key=lambda span: span.end).attributes
    names = (semconv.RUN_OUTCOME, semconv.RUN_OUTCOME_REASON, semconv.RUN_EXPECTED)
    outcome, reason, expected = (text(last, name) for name in names)
    return outcome, reason, expected


def acting_agents(spans: Sequence[SpanRecord], texts: Texts) -> dict[str, str]:
    """Map each span, by its `key`, to its agent: its own, else that of the nearest span around it.

    A tool's run outside of all agents' spans belongs to the agent that called the tool last.

    Args:
        spans: by start time.
        texts: see `texts_of`.
    """
    by_id = {span.span_id: span for span in spans if span.span_id}
    known: dict[str, str] = {}
    for span in spans:
        agent = vocabulary.agent(span.attributes)
        if agent:
            known[key(span)] = agent
            continue
        path: dict[str, None] = {}
        current: SpanRecord | None = span
        while current is not None and key(current) not in path:
            if key(current) in known:
                agent = known[key(current)]
                break
            path[key(current)] = None
            agent = vocabulary.agent(current.attributes)
            if agent:
                break
            current = by_id.get(current.parent_span_id)
        known.update(dict.fromkeys(path, agent))
    callers: dict[str, str] = {}
    for span in spans:
        if span.operation == semconv.CHAT and (answer := texts.answer_of(span)):
            for call in answer.tool_calls:
                callers.update(dict.fromkeys((call.id or "", call.name), known[key(span)]))
        elif span.operation == semconv.EXECUTE_TOOL and not known[key(span)]:
            names = (vocabulary.read(span.attributes, each) for each in ("tool_call_id", "tool"))
            known[key(span)] = next((callers[n] for n in map(str, names) if n in callers), "")
    return known


def invocation_of(
    span: SpanRecord,
    agent: str,
    output: Message | None,
    aliases: Mapping[str, str],
    branch: str = "",
) -> Invocation:
    """Return the turn or the call of a model that a span is.

    Args:
        span: of a turn or a call.
        agent: the acting agent.
        output: its answer; see `Texts.answer_of`.
        aliases: see `aliases_of`.
        branch: path of its parallel branch.
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
        branch=branch,
        provider=text(attributes, semconv.PROVIDER_NAME),
        requested_model=text(attributes, semconv.REQUEST_MODEL),
        parameters=vocabulary.strings(attributes.get(semconv.REQUEST_PARAMETERS)),
        extra=text(attributes, semconv.RESPONSE_EXTRA),
        redacted=vocabulary.strings(attributes.get(semconv.CONTENT_REDACTED)),
        cut=vocabulary.strings(attributes.get(semconv.CONTENT_TRUNCATED)),
    )


def _task(
    attributes: Mapping[str, Any], texts: Mapping[str, Message], steps: Sequence[Step]
) -> str:
    shown = vocabulary.strings(attributes.get(semconv.INPUT_MESSAGE_IDS))
    if asked := task_ids(shown, texts):
        return in_one(texts[identity].content for identity in asked)
    said = next((step.text for step in steps if step.role == "user"), "")
    return said or next(
        (message.content for message in texts.values() if message.role == "user"), ""
    )


def task_ids(shown: Iterable[str], texts: Mapping[str, Message]) -> list[str]:
    """Return the messages of a run's input that are its task: the last words of it.

    That is its last message of a user, with those that the user sent directly before it, or its last
    one of an agent.

    Args:
        shown: ids of the input's messages, in order.
        texts: messages by their ids.
    """
    last: list[str] = []
    for identity in shown:
        role = texts[identity].role if identity in texts else ""
        if role not in {"user", "assistant"}:
            continue
        if last and not role == texts[last[-1]].role == "user":
            last = []
        last.append(identity)
    return last


def in_one(texts: Iterable[str]) -> str:
    """Return the texts of several messages as one, a paragraph each."""
    return "\n\n".join(filter(None, texts))


def _first(spans: Sequence[SpanRecord], field: str) -> str:
    values = (vocabulary.read(span.attributes, field) for span in spans)
    return str(next((value for value in values if value), ""))
