"""The channels of a hub: each is a run, its envelopes are the messages.

Deliveries run in tasks that a hub client starts when it registers, so no context flows from sender
to receiver. In one process the channel's id finds its run; between processes the envelope carries it
in AG2's own field for trace contexts.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from mast_trace import semconv
from mast_trace.fork_safe import lock
from mast_trace.messages import Message
from mast_trace.spans.run_state import Run, current_run, with_run
from mast_trace_instrumentations.ag2.message import (
    is_message,
    name_of,
    read,
    recipients,
    routing,
    title_of,
)
from mast_trace_instrumentations.ag2.state import here, nested, unlike_others

if TYPE_CHECKING:
    from mast_trace.spans import RunSpan, Telemetry

CLOSE_REASON = "ag2.network.close_reason"
"""AG2's own reason for the end of a channel, beside the common one."""
ENVELOPE_ID = "ag2.network.envelope_id"
"""AG2's id of a message, under the attribute that its own telemetry uses."""
_CHANNEL = "mast-trace-ag2-channel"
_REMOTE_RUNS = 1024
_FAILED = {"invite_failed", "invite_timeout", "invite_rejected", "prompt_send_failed"}


@dataclass(eq=False)
class Channel:
    """A channel whose run is recorded.

    Attributes:
        id: the channel's.
        hub: the hub that holds it.
        span: its run.
        sent: ids of the messages sent in it, by `Message.key`.
        ids: ids of messages by envelope.
        failures: errors that a turn's span has recorded already.
    """

    id: str
    hub: weakref.ref[Any]
    span: RunSpan
    sent: dict[str, str] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)
    failures: list[BaseException] = field(default_factory=list)


def channel_in(context: Context) -> Channel | None:
    """Return the channel to which ``context`` belongs."""
    value = otel_context.get_value(_CHANNEL, context)
    return value if isinstance(value, Channel) else None


class Channels:
    """The open channels of all hubs of the process."""

    def __init__(self) -> None:
        self._open: dict[str, Channel] = {}
        self._remote: OrderedDict[int, Run] = OrderedDict()
        self._lock = lock()

    def hub_event(self, telemetry: Telemetry, hub: Any, name: str, *event: Any) -> None:
        """Handle an event of a hub: a channel's life, a failed turn."""
        if name == "on_channel_event":
            channel_id, kind, payload = event
            if kind == "created":
                self._channel(telemetry, hub, channel_id)
            elif kind in {"closed", "expired"}:
                self._close(telemetry, channel_id, kind, str(payload.get("reason") or ""))
        elif name == "on_turn_failed":
            channel_id, agent_id, _envelope_id, error = event
            self._turn_failed(telemetry, hub, channel_id, agent_id, error)

    def stamp(self, telemetry: Telemetry, hub: Any, envelope: Any) -> None:
        """Write the run into an envelope, unless AG2's own tracing has written its own."""
        if not is_message(envelope) or envelope.trace_id:
            return
        carrier: dict[str, str] = {}
        channel = self._channel(telemetry, hub, envelope.channel_id)
        TraceContextTextMapPropagator().inject(carrier, channel.span.context)
        envelope.trace_id = carrier.get("traceparent")

    def message(self, telemetry: Telemetry, hub: Any, envelope: Any, metadata: Any) -> None:
        """Record a message that is about to be delivered."""
        if not is_message(envelope):
            return
        channel = self._channel(telemetry, hub, envelope.channel_id)
        current = here()
        first = not channel.ids
        message = unlike_others(
            read(hub, envelope, first=first), envelope.envelope_id, channel.span.run
        )
        identity = telemetry.message(
            name_of(hub, envelope.sender_id),
            recipients(hub, envelope, metadata),
            message,
            parent=current if channel_in(current) is channel else channel.span.context,
            in_reply_to=channel.ids.get(envelope.causation_id or "", envelope.causation_id),
            attributes={
                ENVELOPE_ID: envelope.envelope_id,
                **routing(hub, envelope),
            },
        )
        channel.ids[envelope.envelope_id] = identity
        channel.sent.setdefault(message.key, identity)
        if first:
            task = Message(message.content, role="user")
            channel.span.set(telemetry.inputs([task], channel.span.context))

    def context_of(self, envelope: Any) -> Context | None:
        """Return the context in which ``envelope`` is handled; None if its run is unknown."""
        with self._lock:
            channel = self._open.get(envelope.channel_id)
        if channel is not None:
            return channel.span.context
        if not envelope.trace_id:
            return None
        remote = TraceContextTextMapPropagator().extract(
            {"traceparent": envelope.trace_id}, context=Context()
        )
        span = trace.get_current_span(remote)
        trace_id = span.get_span_context().trace_id
        if not trace_id:
            return None
        with self._lock:
            run = self._remote.setdefault(trace_id, Run(root=span))
            while len(self._remote) > _REMOTE_RUNS:
                self._remote.popitem(last=False)
        return with_run(run, remote)

    def close_all(self, hub: Any = None) -> None:
        """End the runs of open channels: those of ``hub``, or of all hubs."""
        with self._lock:
            left = [c for c in self._open.values() if hub is None or c.hub() is hub]
            for channel in left:
                del self._open[channel.id]
        for channel in reversed(left):
            channel.span.finish(semconv.Termination.INTERRUPTED)

    def _channel(self, telemetry: Telemetry, hub: Any, channel_id: str) -> Channel:
        """Return a channel, with a run that begins now if none is recorded yet.

        This applies to a channel that was created before `instrument()`, or restored from storage.
        """
        with self._lock:
            known = self._open.get(channel_id)
            if known is not None:
                return known
            parent = here()
            title = title_of(telemetry, hub, channel_id)
            span = telemetry.run(title, parent=parent, conversation_id=channel_id)
            outer = current_run(parent)
            if outer is not None:
                # A consultation inside a run is a part of it: both share the recorded texts.
                span.run = outer
                span.context = with_run(outer, span.context)
            channel = Channel(channel_id, weakref.ref(hub), span)
            span.context = otel_context.set_value(_CHANNEL, channel, span.context)
            self._open[channel_id] = channel
            nested(span)
            return channel

    def _close(self, telemetry: Telemetry, channel_id: str, kind: str, reason: str) -> None:
        with self._lock:
            channel = self._open.pop(channel_id, None)
        if channel is None:
            return
        # A program or a model may have written it.
        channel.span.set({CLOSE_REASON: telemetry.content.render(reason)})
        error = f"the channel did not open: {reason}" if reason in _FAILED else None
        channel.span.finish(_termination(kind, reason), error=error)

    def _turn_failed(
        self, telemetry: Telemetry, hub: Any, channel_id: str, agent_id: str, error: BaseException
    ) -> None:
        """Record a turn that failed outside of the agent: the framework only logs it."""
        with self._lock:
            channel = self._open.get(channel_id)
        if channel is None:
            return
        if any(error is known for known in channel.failures):
            channel.failures.remove(error)
            return
        telemetry.agent(
            name_of(hub, agent_id),
            parent=channel.span.context,
            conversation_id=channel_id,
        ).end(error)


def _termination(kind: str, reason: str) -> str:
    """Map the reason for a channel's end; reasons of the program's own count as completion."""
    if kind == "expired":
        return semconv.Termination.BUDGET
    if reason == "max_turns":
        return semconv.Termination.MAX_TURNS
    if reason == "no_participants":
        return semconv.Termination.NO_SPEAKER
    if reason in _FAILED:
        return semconv.Termination.ERROR
    if reason.startswith("expectation_violated"):
        return semconv.Termination.INTERRUPTED
    return semconv.Termination.COMPLETED
