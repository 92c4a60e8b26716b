"""What is remembered of one run while it lasts: which texts a span already holds, and as what id.

The state travels in the OpenTelemetry context beside the current span, so that it is right under
threads, tasks and generators wherever the context is.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from opentelemetry import context as otel_context
from opentelemetry import trace

from mast_trace.content import content_hash

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from opentelemetry.context import Context
    from opentelemetry.trace import Span

    from mast_trace.messages import Message, ToolCall

_KEY = "mast-trace-run"
_AGENT_KEY = "mast-trace-agent"
_CHAT_KEY = "mast-trace-chat"
_SPAN_KEY = "mast-trace-span"
UNNAMED_CALL = "?"
"""Stands for the id of a tool call where the framework gives the tool's execution none."""


@dataclass(eq=False)
class Run:
    """A run in progress.

    Attributes:
        root: the span of the run; ended or not.
        turn: messages sent so far.
        marks: free for instrumentations, for what must happen once a run.
        cleaned: texts and tool calls after redaction, by the `Message.key` from before it.
    """

    root: Span
    turn: int = 0
    marks: set[Hashable] = field(default_factory=set)
    cleaned: dict[str, tuple[str, tuple[ToolCall, ...]]] = field(default_factory=dict)
    _held: dict[tuple[str, str], str] = field(default_factory=dict)
    _first: dict[str, str] = field(default_factory=dict)
    _ids: dict[str, str] = field(default_factory=dict)
    # Reentrant: the garbage collector may end another span of the run while it is held.
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def once(self, mark: Hashable) -> bool:
        """Return True the first time that ``mark`` is seen in this run."""
        with self._lock:
            if mark in self.marks:
                return False
            self.marks.add(mark)
            return True

    def next_turn(self) -> int:
        """Count a message; the first is turn 0."""
        with self._lock:
            self.turn += 1
            return self.turn - 1

    def hold(self, messages: Sequence[Message]) -> list[tuple[str, bool]]:
        """Say that a span is about to hold the texts of these messages.

        A message's `Message.key` stands in for an id where the framework gives none; a different
        text under an id that is taken gets an id of its own; a tool's result under another call
        is held again.

        Returns:
            For each, the id under which its text is known in this run, and whether it was new.
        """
        # Keys are made before the lock is taken: they may run the user's own `__str__`.
        keys = [(message, message.key, message.calls) for message in messages]
        answers: list[tuple[str, bool]] = []
        held, first = self._held, self._first
        with self._lock:
            for message, key, calls in keys:
                known = held.get((key, calls))
                if known is None:
                    known = held.get((key, UNNAMED_CALL)) if calls else first.get(key)
                if known is None:
                    answers.append((self._keep(key, message.id, calls), True))
                else:
                    answers.append((known, False))
        return answers

    def say(self, key: str, proposed_id: str | None, calls: str = "") -> str:
        """Return the id of a message with the text of this key, which is sent now.

        The same words under another id are another message, whose span holds them again.
        """
        with self._lock:
            known = self._held.get((key, calls), self._first.get(key))
            if known is None:
                return self._keep(key, proposed_id, calls)
            if proposed_id and proposed_id != known:
                return self._own_id(key, proposed_id, calls)
            return known

    def _keep(self, key: str, proposed_id: str | None, calls: str) -> str:
        identity = self._held[key, calls] = self._own_id(key, proposed_id, calls)
        self._first.setdefault(key, identity)
        return identity

    def _own_id(self, key: str, proposed_id: str | None, calls: str) -> str:
        text = content_hash(f"{key}.{calls}") if calls else key
        identity = proposed_id or key
        if self._ids.setdefault(identity, text) != text:
            identity = f"{proposed_id}#{text}" if proposed_id else text
            self._ids[identity] = text
        return identity


def current_run(context: Context | None = None) -> Run | None:
    """Return the run to which ``context`` (default: the current one) belongs."""
    value = (context if context is not None else otel_context.get_current()).get(_KEY)
    return value if isinstance(value, Run) else None


def with_run(run: Run, context: Context) -> Context:
    """Return ``context`` with ``run`` in it."""
    return otel_context.set_value(_KEY, run, context)


def current_agent(context: Context | None = None) -> str | None:
    """Return the name of the agent that is acting in ``context`` (default: the current one)."""
    value = (context if context is not None else otel_context.get_current()).get(_AGENT_KEY)
    return value if isinstance(value, str) else None


def with_agent(name: str, context: Context) -> Context:
    """Return ``context`` in which the agent ``name`` acts."""
    return otel_context.set_value(_AGENT_KEY, name, context)


def chat_is_open(context: Context | None = None) -> bool:
    """Whether a model call of this context already has its span.

    An instrumentation of a model client under an instrumented framework asks this, so that no
    call is recorded twice.
    """
    return otel_context.get_value(_CHAT_KEY, context) is True


def with_chat(context: Context) -> Context:
    """Return ``context`` in which a model call has its span."""
    return otel_context.set_value(_CHAT_KEY, True, context)


def exported_with(other: Span, own: Span) -> bool:
    """Whether a span goes where ours go: a provider hands its resource to all of its spans.

    A span that does not record, such as a remote parent, goes nowhere from here and hides nothing.
    """
    resource = getattr(other, "resource", None)
    return resource is None or resource is getattr(own, "resource", None)


def beside_others(context: Context) -> Context:
    """Return ``context`` with a span of ours as the current one, if that of another tool hides it.

    Tools that send their spans elsewhere make them current inside of ours: below one of them, a
    span of ours would be an orphan where it is read.
    """
    own = context.get(_SPAN_KEY)
    if own is None:
        return context
    current = trace.get_current_span(context)
    if current is own or not isinstance(own, trace.Span) or exported_with(current, own):
        return context
    return trace.set_span_in_context(own, context)


def with_span(span: Span, context: Context) -> Context:
    """Return ``context`` in which a span of ours is the current one."""
    return otel_context.set_value(_SPAN_KEY, span, trace.set_span_in_context(span, context))
