"""Chats: one that the program initiates is a run, one inside of another a part of its run."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from opentelemetry import context as otel_context

from mast_trace import semconv
from mast_trace.spans.run_state import current_run, with_run

if TYPE_CHECKING:
    from opentelemetry.context import Context

    from mast_trace.spans import RunSpan, Telemetry

TERMINATION = "autogen.termination_reason"
"""AutoGen's own reason for the end of a chat, beside the common one."""
_CHAT = "mast-trace-autogen-conversation"

_REASONS = (
    ("maximum", semconv.Termination.MAX_TURNS),
    ("termination message", semconv.Termination.TERMINATE_MESSAGE),
    ("no next speaker", semconv.Termination.NO_SPEAKER),
    ("no reply", semconv.Termination.NO_SPEAKER),
    ("user requested", semconv.Termination.USER_ENDED),
)


@dataclass(eq=False)
class Chat:
    """A chat while it lasts.

    Attributes:
        span: its run.
        begun: whether a message was sent.
        received: id of the last message that each agent got.
        requested: the agent that asked for a tool call, by the call's id.
        selection: the next speaker and who chose it, until its turn.
        by_model: whether a model was asked for the next speaker.
        handed_over: whether a tool has handed over since the last selection.
        handoff: source and target of a hand-off without a tool, until it is written on a span.
        reason: AutoGen's own reason for the end.
        error: one that AutoGen swallowed.
    """

    span: RunSpan
    begun: bool = False
    received: dict[str, str] = field(default_factory=dict)
    requested: dict[str, str] = field(default_factory=dict)
    selection: tuple[str, str] | None = None
    by_model: bool = False
    handed_over: bool = False
    handoff: tuple[str, str] | None = None
    reason: str = ""
    error: BaseException | None = None

    @property
    def context(self) -> Context:
        """The context of spans in the chat."""
        return self.span.context

    def end(self, _result: Any, error: BaseException | None) -> None:
        """End the run; see `mast_trace.spans.Call`."""
        self.finish(error)

    def finish(self, error: BaseException | None = None) -> None:
        """End the run with the reason why it stopped."""
        error = error or self.error
        if self.reason:
            self.span.set({TERMINATION: self.reason})
        self.span.finish(termination(self.reason, error), error=error)


def current_chat(context: Context | None = None) -> Chat | None:
    """Return the chat to which ``context`` (default: the current one) belongs."""
    context = context if context is not None else otel_context.get_current()
    value = context.get(_CHAT)
    return value if isinstance(value, Chat) else None


def begin_run(telemetry: Telemetry, name: str) -> Chat:
    """Begin a run in this context."""
    parent = otel_context.get_current()
    span = telemetry.run(name, parent=parent)
    outer = current_run(parent)
    if outer is not None:
        # A nested chat is a part of its run: both share the recorded texts.
        span.run = outer
        span.context = with_run(outer, span.context)
    chat = Chat(span)
    span.context = otel_context.set_value(_CHAT, chat, span.context)
    return chat


def termination(reason: str, error: BaseException | None) -> str:
    """Map the reason for a chat's end to the common values."""
    if isinstance(error, asyncio.CancelledError | KeyboardInterrupt):
        return semconv.Termination.CANCELLED
    if error is not None:
        return semconv.Termination.ERROR
    lowered = reason.lower()
    return next(
        (ours for theirs, ours in _REASONS if theirs in lowered), semconv.Termination.COMPLETED
    )


def chat_name(sender: Any, recipient: Any) -> str:
    """Return the name of a chat: its two agents."""
    return f"{getattr(sender, 'name', sender)} to {getattr(recipient, 'name', recipient)}"
