"""State of a run and of an agent's turn while they last.

The state travels in the OpenTelemetry context beside the current span: threads, tasks and
generators see the state of their own context.

Finds the run that a late record_outcome() call refers to.

A program usually learns whether a run was good after the framework's call has returned, when the
run's span has ended and is no longer current. Only its span context is kept.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Hashable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from opentelemetry import context as otel_context
from opentelemetry import trace

from mast_trace.fork_safe import lock, reentrant_lock
from mast_trace.spans.message_ids import MessageIds

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span, SpanContext

    from mast_trace.content import ContentPolicy
    from mast_trace.messages import ToolCall


@dataclass(eq=False)
class Given:
    """One answer; equal only to itself, since a program may ask the same twice.

    Attributes:
        shape: its parts as JSON types.
        waiting: no run has been given it yet.
    """

    shape: Mapping[str, Any]
    waiting: bool = True


_MARKS = "mast-trace-run-marks"


def with_marks(attributes: Mapping[str, Any], context: Context | None = None) -> Context:
    """Return ``context`` (default: the current one) in which runs begin with these attributes."""
    marks = {**marks_of(context), **attributes}
    return otel_context.set_value(_MARKS, marks, context)


def marks_of(context: Context | None = None) -> Mapping[str, Any]:
    """Return the attributes with which runs begin in ``context`` (default: the current one)."""
    value = otel_context.get_value(_MARKS, context)
    return value if isinstance(value, Mapping) else {}


_in_context: ContextVar[_Ended | None] = ContextVar("mast_trace_ended_run", default=None)
_in_thread = threading.local()
_KEY = "mast-trace-run"
_AGENT_KEY = "mast-trace-agent"
_CHAT_KEY = "mast-trace-chat"
_TOOL_KEY = "mast-trace-tool"
_SPAN_KEY = "mast-trace-span"


class _Runs:
    """Counts the runs of a period during which at least one run was always open."""

    def __init__(self) -> None:
        self._lock = lock()
        self._open: dict[int, int] = {}  # the thread in which each run began, by the id of its root
        self._runs = 0
        self._last: SpanContext | None = None

    def began(self, root: SpanContext) -> None:
        with self._lock:
            if not self._open:
                self._runs = 0
            self._open[root.span_id] = threading.get_ident()
            self._runs += 1

    def ended(self, root: SpanContext) -> None:
        with self._lock:
            self._open.pop(root.span_id, None)
            self._last = root

    def elsewhere(self) -> bool:
        """Return whether a run is open that began in another thread, and none that began in this one."""
        with self._lock:
            return bool(self._open) and threading.get_ident() not in self._open.values()

    def left_behind(self) -> None:
        """Forget the open runs of other threads, in a forked child, which has none of these threads."""
        here = threading.get_ident()
        self._open = {run: thread for run, thread in self._open.items() if thread == here}

    def only(self) -> SpanContext | None:
        """Return the run that ended last, if no other ran at the same time."""
        with self._lock:
            return self._last if not self._open and self._runs == 1 else None


_runs = _Runs()
_Ended = tuple[_Runs, "SpanContext", int]


def run_began(root: SpanContext) -> None:
    """Note that a run which is no part of another begins in this thread."""
    _runs.began(root)


def runs_elsewhere() -> bool:
    """Return whether runs are open and all of them began in other threads than this one."""
    return _runs.elsewhere()


def run_ended(root: SpanContext) -> None:
    """Note that a run ended in this context and thread."""
    ended = (_runs, root, time.time_ns())
    _in_context.set(ended)
    _in_thread.last = ended
    _runs.ended(root)


def forget() -> None:
    """Forget ended runs of an earlier instrument() session."""
    global _runs  # noqa: PLW0603  # contexts of other tasks cannot be emptied, but outdated
    _runs = _Runs()


def last_run(failed: Run | None = None) -> SpanContext | None:
    """Return the root of the run that the caller most likely refers to, if there is one.

    A run that ended with the error that the caller handles counts, unless one ended here since.
    In a coroutine this is the run that ended in the same task; elsewhere the run that ended in the
    same thread, even inside an event loop that is closed by now. A run that ended in another task
    or thread (frameworks run agents in their own) counts only if no other ran at the same time.
    """
    places: list[_Ended | None] = [_in_context.get()]
    if not _in_coroutine():
        places.insert(0, getattr(_in_thread, "last", None))
    here, at = next((e[1:] for e in filter(None, places) if e[0] is _runs), (None, 0))
    if failed is not None and (getattr(failed.root, "end_time", None) or 0) > at:
        return failed.root.get_span_context()
    return here or _runs.only()


def _in_coroutine() -> bool:
    asyncio = sys.modules.get("asyncio")
    if asyncio is None:  # then no event loop runs either, and importing asyncio is slow
        return False
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _left_behind() -> None:
    _runs.left_behind()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_left_behind)


@dataclass(eq=False)
class Run:
    """A run in progress.

    Attributes:
        root: the span of the run; ended or not.
        turn: messages sent so far.
        marks: free for instrumentations, for work that must happen once a run.
        cleaned: texts and tool calls after redaction, whether it changed them, and whether a call was cut,
            by the `Message.key` from before it.
        messages: the ids of its messages.
        outermost: the run of which it is a part; None for one that is no part of another.
        typed: texts that a person typed while it was open, each with the span of the tool that asked.
        content: the rules by which texts are recorded; None if they are not known.
        lessons: answers of `mast_trace.feedback` that it was given.
        lessons_written: number of these when they were last written on the root.
    """

    root: Span
    turn: int = 0
    marks: set[Hashable] = field(default_factory=set)
    cleaned: dict[str, tuple[str, tuple[ToolCall, ...], bool, bool]] = field(default_factory=dict)
    messages: MessageIds = field(default_factory=MessageIds)
    outermost: Run | None = None
    typed: list[tuple[str, Span | None]] = field(default_factory=list)
    content: ContentPolicy | None = None
    lessons: list[Given] = field(default_factory=list)
    lessons_written: int = 0
    # Reentrant: the garbage collector may end another span of the run while it is held.
    _lock: threading.RLock = field(default_factory=reentrant_lock)

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


@dataclass(eq=False)
class Turn:
    """A turn of an agent in progress.

    Attributes:
        agent: name of the acting agent.
        sent: ids of its models' answers and of its messages, by `Message.key`.
    """

    agent: str
    sent: dict[str, str] = field(default_factory=dict)


@dataclass(eq=False)
class OpenChat:
    """A model call in progress.

    Attributes:
        span: its span; None where it begins after the context of the call has been made.
    """

    span: Span | None = None


def current_run(context: Context | None = None) -> Run | None:
    """Return the run to which ``context`` (default: the current one) belongs."""
    value = (context if context is not None else otel_context.get_current()).get(_KEY)
    return value if isinstance(value, Run) else None


def with_run(run: Run, context: Context) -> Context:
    """Return ``context`` with ``run`` in it."""
    return otel_context.set_value(_KEY, run, context)


def current_agent(context: Context | None = None) -> str | None:
    """Return the name of the agent that is acting in ``context`` (default: the current one)."""
    turn = current_turn(context)
    return None if turn is None else turn.agent


def current_turn(context: Context | None = None) -> Turn | None:
    """Return the turn of the agent that is acting in ``context`` (default: the current one)."""
    value = (context if context is not None else otel_context.get_current()).get(_AGENT_KEY)
    return value if isinstance(value, Turn) else None


def with_agent(name: str, context: Context) -> Context:
    """Return ``context`` in which the agent ``name`` acts: in a turn that begins, in no tool."""
    if context.get(_TOOL_KEY) is not None:
        context = otel_context.set_value(_TOOL_KEY, None, context)
    return otel_context.set_value(_AGENT_KEY, Turn(name), context)


def chat_is_open(context: Context | None = None) -> bool:
    """Return whether a model call of this context already has its span.

    An instrumentation of a model client under an instrumented framework asks this, so that no
    call is recorded twice.
    """
    return isinstance(otel_context.get_value(_CHAT_KEY, context), OpenChat)


def open_chat(context: Context | None = None) -> Span | None:
    """Return the span of the model call that is being made in ``context`` (default: the current one)."""
    value = otel_context.get_value(_CHAT_KEY, context)
    return value.span if isinstance(value, OpenChat) else None


def with_chat(context: Context, chat: OpenChat | None = None) -> Context:
    """Return ``context`` in which a model call has its span."""
    return otel_context.set_value(_CHAT_KEY, chat or OpenChat(), context)


def open_tool(context: Context | None = None) -> Span | None:
    """Return the span of the tool that is being executed in ``context`` (default: the current one).

    An instrumentation of a library that implements tools asks this, so that no execution is
    recorded twice.
    """
    value = otel_context.get_value(_TOOL_KEY, context)
    return value if isinstance(value, trace.Span) else None


def with_tool(span: Span, context: Context) -> Context:
    """Return ``context`` in which the tool of ``span`` is being executed."""
    return otel_context.set_value(_TOOL_KEY, span, context)


def exported_with(other: Span, own: Span) -> bool:
    """Return whether a span is exported with ours: all spans of one provider share its resource.

    A span that does not record, such as a remote parent, is not exported from here and hides
    nothing.
    """
    resource = getattr(other, "resource", None)
    return resource is None or resource is getattr(own, "resource", None)


def beside_others(context: Context) -> Context:
    """Return ``context`` with the innermost span of ours as the current one, if another tool's hides it.

    Tools that export their spans elsewhere make them current inside of ours. A span of ours below
    one of these would lack its parent in the span store.
    """
    own = context.get(_SPAN_KEY)
    if own is None:
        return context
    current = trace.get_current_span(context)
    if current is own or not isinstance(own, trace.Span):
        return context
    # A thread to which the run was carried has no current span.
    if current.get_span_context().is_valid and exported_with(current, own):
        return context
    return trace.set_span_in_context(own, context)


def innermost_span(context: Context | None = None) -> Span | None:
    """Return the innermost span of ours that is open in ``context`` (default: the current one)."""
    value = otel_context.get_value(_SPAN_KEY, context)
    return value if isinstance(value, trace.Span) else None


def with_span(span: Span, context: Context) -> Context:
    """Return ``context`` in which a span of ours is the current one."""
    return otel_context.set_value(_SPAN_KEY, span, trace.set_span_in_context(span, context))
