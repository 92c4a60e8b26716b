"""The stack of spans that are open where an event is emitted.

CrewAI's events come in pairs, in the thread and context of the work that they report, so a stack in
a context variable pairs them. CrewAI's own pairing (`started_event_id`) is not used: it closes the
wrong scope when a failed model call is reported twice.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from opentelemetry import context as otel_context

from mast_trace.fork_safe import lock

if TYPE_CHECKING:
    from opentelemetry.context import Context

    from mast_trace.spans import OpenSpan, Telemetry


@dataclass(eq=False)
class Frame:
    """An open span with the data for its end.

    Attributes:
        kind: of the work: run, agent, tool, chat, guardrail.
        key: distinguishes works of one kind, where the framework gives one.
        span: the open span.
        outside: the context to restore.
        notes: data of the start that the end of the work needs.
        owners: ids under which other threads find the frame.
        borrowed: whether another thread opened the frame and is to end it.
    """

    kind: str
    key: Any
    span: OpenSpan
    outside: Context
    notes: dict[str, Any] = field(default_factory=dict)
    owners: tuple[str, ...] = ()
    borrowed: bool = False


_frames: ContextVar[tuple[Frame, ...]] = ContextVar("mast_trace_crewai_frames", default=())
_owners: dict[str, Frame] = {}
"""Open agent and run spans by the id of their agent, task or crew: threads of versions before 1.13,
which do not carry context variables over, find them here.
"""
_lock = lock()
_guarded: ContextVar[bool] = ContextVar("mast_trace_crewai_guarded", default=False)
"""True if a patched call is being made here, which closes on its return what it leaves open."""


def frames() -> tuple[Frame, ...]:
    """Return the open frames of this context, outermost first."""
    return _frames.get()


def top(*kinds: str) -> Frame | None:
    """Return the innermost open frame, of one of these kinds if any are given."""
    for frame in reversed(_frames.get()):
        if not kinds or frame.kind in kinds:
            return frame
    return None


def push(frame: Frame) -> None:
    """Open a frame and make its span current."""
    _frames.set((*_frames.get(), frame))
    otel_context.attach(frame.span.context)
    if frame.owners:
        with _lock:
            _owners.update(dict.fromkeys(frame.owners, frame))


def pop(kind: str, key: Any = None) -> Frame | None:
    """Close the innermost frame of this kind and key, ending the frames left open above it.

    Returns:
        The frame, whose span the caller ends, or None where its start was never seen.
    """
    stack = frames()
    for depth in range(len(stack) - 1, -1, -1):
        if stack[depth].kind == kind and key in {None, stack[depth].key}:
            if stack[depth].borrowed:
                return None
            *left_open, found = unwind(depth)
            for frame in left_open:
                frame.span.end()
            return found
    return None


def unwind(depth: int) -> list[Frame]:
    """Return to ``depth`` open frames and their context.

    Returns:
        The frames that were above, innermost first, whose spans the caller ends. A borrowed frame
        is left to the thread that opened it.
    """
    above = frames()[depth:]
    if not above:
        return []
    _frames.set(frames()[:depth])
    # Not detach(token): the token may belong to another task's copy of the context.
    otel_context.attach(above[0].outside)
    with _lock:
        for frame in above:
            for owner in frame.owners:
                if _owners.get(owner) is frame:
                    del _owners[owner]
    return [frame for frame in reversed(above) if not frame.borrowed]


def guard(*, on: bool) -> bool:
    """Say whether a patched call is being made here; return what held before."""
    before = _guarded.get()
    _guarded.set(on)
    return before


def abandoned() -> list[Frame]:
    """Close the run whose start was reported outside of every patched call, before another run begins.

    Such a start, as of a crew that is prepared and never kicked off, has no end. The next crew of this
    context would be taken into its run.

    Returns:
        The frames of that run, innermost first, whose spans the caller ends.
    """
    here = frames()
    if _guarded.get() or not here or here[-1].kind != "run" or here[-1].borrowed:
        return []
    return unwind(0)


def is_cut_off() -> bool:
    """Return whether no frame is open here, as in a thread without context, which may `adopt` one."""
    here = _frames.get()
    return not here or (here[-1].borrowed and not here[-1].span.span.is_recording())


def adopt(*owner_ids: str | None) -> None:
    """Continue the open frame of one of these ids, in a thread without context."""
    with _lock:
        found = next((_owners[owner] for owner in owner_ids if owner and owner in _owners), None)
    if found is not None:
        _frames.set((replace(found, outside=otel_context.get_current(), borrowed=True),))
        otel_context.attach(found.span.context)


class Recorder:
    """Opens spans on the stack, each as a child of the innermost open one."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry

    @staticmethod
    def _open(kind: str, key: Any, span: OpenSpan, *owner_ids: str) -> Frame:
        outside = otel_context.get_current()
        frame = Frame(kind, key, span, outside, owners=owner_ids)
        push(frame)
        return frame


def text(value: Any) -> str:
    """Return a value as text; nothing for None."""
    return "" if value is None else str(value)
