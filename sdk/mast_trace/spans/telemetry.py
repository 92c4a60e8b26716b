"""The five kinds of spans: run, agent, message, tool, chat.

Instrumentations use this interface; `mast_trace.run()` and its siblings offer the same to hand-made
agents. Parents are explicit: every factory takes the parent's context, and every open span offers
its own, so that nothing depends on the current context.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.trace import Link, Span, SpanContext, SpanKind, TracerProvider

from mast_trace import semconv
from mast_trace.content import ContentPolicy, truncate, well_formed
from mast_trace.spans import given_lessons, human_input
from mast_trace.spans.carried import note_lost_call
from mast_trace.spans.guard import guarded
from mast_trace.spans.message_attributes import Attributes, MessageWriter
from mast_trace.spans.open_spans import AgentSpan, ChatSpan, RunSpan, ToolSpan, present
from mast_trace.spans.randomness import seeds
from mast_trace.spans.run_state import (
    OpenChat,
    Run,
    beside_others,
    current_agent,
    current_run,
    marks_of,
    run_began,
    with_agent,
    with_chat,
    with_run,
    with_span,
    with_tool,
)
from mast_trace.spans.within import end_at_exit

if TYPE_CHECKING:
    from opentelemetry.context import Context

    from mast_trace.messages import Message

_WHOLE_CALLS = 60
"""Calls outside of runs in a minute whose texts are kept; a loop may make a million."""
_kept_whole: deque[float] = deque(maxlen=_WHOLE_CALLS)
_NAME_LIMIT = 200  # characters: some frameworks put a whole task where others have a name


class Telemetry:
    """Makes the spans of one framework.

    Args:
        provider: creates and exports the spans.
        content: decides how much of the texts is recorded.
        framework: written on each span, with ``version``; empty for hand-made agents.
        version: the framework's installed version.
    """

    def __init__(
        self,
        provider: TracerProvider,
        content: ContentPolicy | None = None,
        *,
        framework: str = "",
        version: str = "",
    ) -> None:
        self.content = content or ContentPolicy()
        self.writer = MessageWriter(self.content)
        self._run_started = getattr(provider, "run_started", None)
        self._tracer = provider.get_tracer(
            f"mast_trace.{framework}".rstrip("."), schema_url=semconv.SCHEMA_URL
        )
        self._common: Attributes = {}
        if framework:
            self._common[semconv.FRAMEWORK] = framework
        if version:
            self._common[semconv.FRAMEWORK_VERSION] = version
        end_at_exit()

    def run(
        self,
        name: str,
        *,
        parent: Context | None = None,
        input: Sequence[Message] = (),  # noqa: A002  # the convention's word
        conversation_id: str | None = None,
        links: Sequence[Link] | None = None,
        attributes: Mapping[str, Any] | None = None,
        start_time: int | None = None,
    ) -> RunSpan:
        """Begin a run; inside another run it becomes a part of that one's trace.

        Args:
            name: of the workflow: few different values.
            parent: context of the caller; the current one if absent.
            input: the task of the run.
            conversation_id: id shared by several runs of one dialogue.
            links: spans of earlier runs that this one continues.
            attributes: more attributes.
            start_time: nanoseconds since the epoch; now if absent.
        """
        more = {
            semconv.WORKFLOW_NAME: name,
            semconv.CONVERSATION_ID: conversation_id,
            **(attributes or {}),
        }
        context = parent if parent is not None else otel_context.get_current()
        around = current_run(context)
        if around is None:
            more.update(marks_of(context))
            more.update(seeds())
        span, context = self._start(
            semconv.INVOKE_WORKFLOW, name, context, more, links=links, start_time=start_time
        )
        run = Run(
            root=span,
            outermost=None if around is None else around.outermost or around,
            content=self.content,
        )
        opened = RunSpan(self, span, with_run(run, context))
        opened.run = run
        opened.nested = around is not None
        if not opened.nested and span.is_recording():
            run_began(span.get_span_context())
            human_input.run_began(run)
            given_lessons.run_began(run, context)
        if input:
            opened.set(self.inputs(input, opened.context))
        # The record leaves before the span has ended, which a killed process never sees. With a
        # provider of the application's no record is sent: its export is not ours to change.
        if self._run_started is not None and not opened.nested:
            with guarded("announcing a run"):
                self._run_started(span)
        return opened

    def agent(
        self,
        name: str,
        *,
        parent: Context | None = None,
        agent_id: str | None = None,
        description: str | None = None,
        input: Sequence[Message] = (),  # noqa: A002
        conversation_id: str | None = None,
        links: Sequence[Link] | None = None,
        attributes: Mapping[str, Any] | None = None,
    ) -> AgentSpan:
        """Begin an agent's turn, on ``input``: the messages that it sees."""
        more: Attributes = {
            semconv.AGENT_NAME: name,
            semconv.AGENT_ID: agent_id,
            semconv.AGENT_DESCRIPTION: self._described(description),
            semconv.CONVERSATION_ID: conversation_id,
            **(attributes or {}),
        }
        context = parent if parent is not None else otel_context.get_current()
        if input:
            more.update(self.inputs(input, context))
        span, own = self._start(semconv.INVOKE_AGENT, name, context, more, links=links)
        return AgentSpan(self, span, with_agent(name, own))

    def message(
        self,
        sender: str,
        recipients: Sequence[str],
        message: Message,
        *,
        parent: Context | None = None,
        in_reply_to: str | None = None,
        performative: str | None = None,
        attributes: Mapping[str, Any] | None = None,
        timestamp: int | None = None,
    ) -> str:
        """Record that ``message`` went from ``sender`` to ``recipients``: a span without duration.

        Its text is written here even if a `chat` span holds it too: message spans stand alone.

        Args:
            sender: name of the speaking agent.
            recipients: names of those who receive it; empty if nobody does.
            message: the message.
            parent: context of the sender; the current one if absent.
            in_reply_to: id of the message that it answers.
            performative: the speech act where the protocol names one (FIPA-ACL, A2A).
            attributes: more attributes.
            timestamp: nanoseconds since the epoch; now if absent.

        Returns:
            The id of the message.
        """
        context = parent if parent is not None else otel_context.get_current()
        run = current_run(context)
        sent = self.writer.sent(sender, message, context)
        identity = str(sent[semconv.MESSAGE_ID])
        if run and in_reply_to:
            in_reply_to = run.messages.known_as(in_reply_to)
        more: Attributes = {
            semconv.AGENT_NAME: sender,
            semconv.MESSAGE_SENDER: sender,
            semconv.MESSAGE_RECIPIENTS: list(recipients),
            semconv.MESSAGE_IN_REPLY_TO: None if in_reply_to == identity else in_reply_to,
            semconv.MESSAGE_PERFORMATIVE: performative,
            semconv.TURN: run.next_turn() if run else None,
            **sent,
            **(attributes or {}),
        }
        start = timestamp or time.time_ns()
        span, _ = self._start(semconv.SEND_MESSAGE, sender, context, more, start_time=start)
        span.end(start)
        return identity

    def identify(
        self, sender: str, message: Message, *, parent: Context | None = None, kept: bool = False
    ) -> Message:
        """Return ``message`` with its id for the rest of the run.

        For messages that are shown, or passed on, before it is known who receives them.

        Args:
            sender: name of the speaking agent.
            message: the message, to be given to `message` later.
            parent: context of the sender; the current one if absent.
            kept: inputs will show the message under this id, even if the framework gives it another
                one later.
        """
        context = parent if parent is not None else otel_context.get_current()
        identity = self.writer.identify(sender, message, context)
        run = current_run(context)
        if kept and run is not None and message.id is None:
            run.messages.keep(identity)
        return message.with_id(identity)

    def tool(
        self,
        name: str,
        *,
        parent: Context | None = None,
        arguments: Any = None,
        call_id: str | None = None,
        agent: str | None = None,
        requested_by: str | None = None,
        description: str | None = None,
        handoff: tuple[str, str] | None = None,
        attributes: Mapping[str, Any] | None = None,
    ) -> ToolSpan:
        """Begin the execution of a tool.

        Args:
            name: of the tool.
            parent: context of the executing agent; the current one if absent.
            arguments: JSON text or a value; leave out what the framework injects.
            call_id: the model's id of the call.
            agent: the executing agent; the one acting in ``parent`` if absent.
            requested_by: the agent that asked, if another one.
            description: of the tool.
            handoff: source and target, where the tool hands control over.
            attributes: more attributes.
        """
        context = parent if parent is not None else otel_context.get_current()
        source, target = handoff or (None, None)
        more: Attributes = {
            semconv.TOOL_NAME: name,
            semconv.TOOL_TYPE: "function",
            semconv.TOOL_DESCRIPTION: self._described(description),
            semconv.TOOL_CALL_ID: call_id,
            **self.writer.called(arguments),
            semconv.AGENT_NAME: agent or current_agent(context),
            semconv.TOOL_REQUESTED_BY: requested_by,
            semconv.HANDOFF_SOURCE: source,
            semconv.HANDOFF_TARGET: target,
            **(attributes or {}),
        }
        span, own = self._start(semconv.EXECUTE_TOOL, name, context, more)
        opened = ToolSpan(self, span, with_tool(span, own))
        opened.call_id = call_id
        return opened

    def chat(
        self,
        model: str,
        *,
        parent: Context | None = None,
        provider: str | None = None,
        agent: str | None = None,
        input: Sequence[Message] = (),  # noqa: A002
        attributes: Mapping[str, Any] | None = None,
    ) -> ChatSpan:
        """Begin a call of ``model`` on ``input``: all messages of the request, in order."""
        context = parent if parent is not None else otel_context.get_current()
        more: Attributes = {
            semconv.REQUEST_MODEL: model,
            semconv.PROVIDER_NAME: provider,
            semconv.AGENT_NAME: agent or current_agent(context),
            **(attributes or {}),
        }
        links, whole = None, True
        if current_run(context) is None:
            context, links, whole = self._alone(context, more)
        if input and whole:
            more.update(self.inputs(input, context))
        span, own = self._start(
            semconv.CHAT, model, context, more, kind=SpanKind.CLIENT, links=links
        )
        opened = ChatSpan(self, span, with_chat(own, OpenChat(span)))
        opened.whole = whole
        return opened

    @property
    def _resource(self) -> Any:
        # A tracer that was made before the application's provider stands for its tracer.
        return getattr(getattr(self._tracer, "_tracer", self._tracer), "resource", None)

    def shares_exporter(self, span: Span) -> bool:
        """Return whether a span of another tool is exported with those made here."""
        resource = getattr(span, "resource", None)
        return resource is not None and resource is self._resource

    def records_lone_calls(self) -> bool:
        """Return whether calls outside of runs are recorded; in processes of a kind, such as replays, none are."""
        return semconv.RUN_KIND not in getattr(self._resource, "attributes", ())

    def _alone(self, context: Context, more: Attributes) -> tuple[Context, list[Link] | None, bool]:
        """Return the parent and the links of a call outside of any run, and whether its texts are kept.

        Inside of a span that is exported with it, it is a part of that one's trace. Otherwise it is a run
        of a kind of its own, with a link to the span around it.
        """
        note_lost_call()
        around = trace.get_current_span(context)
        if self.shares_exporter(around):
            return context, None, True
        more[semconv.RUN_KIND] = semconv.CALL_KIND
        outside = around.get_span_context()
        links = [trace.Link(outside)] if outside.is_valid else None
        now = time.monotonic()
        whole = len(_kept_whole) < _WHOLE_CALLS or now - _kept_whole[0] > 60.0
        if whole:
            _kept_whole.append(now)
        return trace.set_span_in_context(trace.INVALID_SPAN, context), links, whole

    def outcome(
        self,
        root: Span | SpanContext,
        outcome: str,
        reason: str = "",
        ended_by: str | None = None,
        expected: Any = None,
    ) -> None:
        """Record whether a run reached its goal.

        Args:
            root: the run's root span; its context alone once it has ended.
            outcome: ``success`` or ``failure``.
            reason: the reason, for people.
            ended_by: `semconv.Termination`, where only the caller knows it.
            expected: the right answer; None if it is not known.
        """
        outcome_attributes = {
            semconv.RUN_TERMINATION_REASON: ended_by,
            semconv.RUN_OUTCOME: outcome,
            semconv.RUN_OUTCOME_REASON: self.content.render(reason) if reason else None,
            semconv.RUN_EXPECTED: None if expected is None else self.content.render(expected),
        }
        if isinstance(root, trace.Span):
            if root.is_recording():
                root.set_attributes(present(outcome_attributes))
                return
            root = root.get_span_context()
        # The root has ended: a span of its own adds the outcome to the same trace.
        parent = trace.set_span_in_context(trace.NonRecordingSpan(root), otel_context.Context())
        span, _ = self._start(semconv.RECORD_OUTCOME, outcome, parent, outcome_attributes)
        span.end()

    def inputs(self, messages: Sequence[Message], context: Context) -> Attributes:
        """Return the attributes of an input: ids of all its messages, the texts of new ones.

        With ``capture_content="full"`` all texts are written out.
        """
        return self.writer.inputs(messages, context)

    def _described(self, description: str | None) -> str | None:
        if not description or not self.content.capture:
            return None
        return truncate(self.content.clean(description), 4096)

    def _start(
        self,
        operation: str,
        name: str,
        parent: Context,
        attributes: Mapping[str, Any],
        *,
        kind: SpanKind = SpanKind.INTERNAL,
        links: Sequence[Link] | None = None,
        start_time: int | None = None,
    ) -> tuple[Span, Context]:
        context = beside_others(parent)
        span = self._tracer.start_span(
            well_formed(f"{operation} {name}"[:_NAME_LIMIT]),
            context,
            kind,
            {semconv.OPERATION_NAME: operation, **self._common, **present(attributes)},
            links,
            start_time,
        )
        return span, with_span(span, context)
