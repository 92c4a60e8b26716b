"""Answers of `mast_trace.feedback` that a run was given, written on its root so that a replay gives them again.

An answer belongs to the run in which it was fetched; else to those that begin in a block of
`mast_trace.using_feedback`; else to the next run that begins in the context that fetched it, or in a copy of
that context. A thread or a task that fetches and ends leaves nothing behind: its context ends with it.
"""

from __future__ import annotations

import json
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

from opentelemetry import context as otel_context

from mast_trace import semconv
from mast_trace.fork_safe import reentrant_lock
from mast_trace.spans.message_attributes import Alterations, with_earlier_marks
from mast_trace.spans.run_state import Given, Run, current_run

if TYPE_CHECKING:
    from opentelemetry.context import Context

    from mast_trace.content import ContentPolicy


MOST_ANSWERS: Final = 32
MOST_BYTES: Final = 64 * 1024
"""Bytes of all answers of a run; later ones are not recorded."""
_KEY = "mast-trace-given-lessons"
_TEXTS: Final = frozenset({"text", "reason", "quote", "advice", "agent"})
"""Parts of an answer that are redacted as every text is."""


# Reentrant, as every lock that a finalizer may need.
_lock = reentrant_lock()
# Immutable: tasks that copy a context must not see what their siblings fetch.
_fetched: ContextVar[tuple[tuple[int, Given], ...]] = ContextVar(
    "mast-trace-fetched-lessons", default=()
)
"""Answers that were fetched outside of runs, with the session's number; a run that began in a copy of the
context may have taken some of them."""
_session = 0


def note(given: Given | None) -> None:
    """Note an answer for the open run, or for the next one."""
    run = current_run()
    if given is None:
        return
    if run is not None:
        give(run.outermost or run, (given,))
        return
    left = [each for each in _fetched.get() if each[0] == _session and each[1].waiting]
    _fetched.set((*left, (_session, given))[-MOST_ANSWERS:])


def forget() -> None:
    """Forget answers that no run has taken: runs of a later session were not given them."""
    global _session  # noqa: PLW0603  # a process has one session at a time
    with _lock:
        _session += 1


def with_given(context: Context, given: Given | None) -> Context:
    """Return ``context`` in which runs begin with an answer more."""
    if given is None:
        return context
    return otel_context.set_value(_KEY, (*_of(context), given), context)


def run_began(run: Run, context: Context) -> None:
    """Give a run, which is no part of another, the answers of its context."""
    given = _of(context)
    if waiting := _fetched.get():
        _fetched.set(())
        given = (
            *given,
            *(each for session, each in waiting if session == _session and _taken(each)),
        )
    give(run, given)


def give(run: Run, given: tuple[Given, ...]) -> None:
    """Write answers on the root of a run, each once."""
    for each in given:
        each.waiting = False
    content = run.content
    if not given or content is None or not content.capture or not run.root.is_recording():
        return
    with _lock:
        new = [each for each in dict.fromkeys(given) if each not in run.lessons]
        new = new[: MOST_ANSWERS - len(run.lessons)]
        run.lessons.extend(new)
        known = tuple(run.lessons)
    if not new:
        return
    # Outside of the lock: the user's redaction may be slow, or wait for a thread that is given lessons, too.
    attributes = _attributes(known, content)
    with _lock:
        if attributes and len(known) > run.lessons_written and run.root.is_recording():
            run.lessons_written = len(known)
            run.root.set_attributes(with_earlier_marks(attributes, run.root))


def _attributes(known: tuple[Given, ...], content: ContentPolicy) -> dict[str, Any]:
    """Return the attributes of a run's answers; none if not even the first fits."""
    written: list[str] = []
    altered = Alterations(content)
    left = min(MOST_BYTES, content.limit)
    for each in known:
        text = json.dumps(_cleaned(each.shape, altered), ensure_ascii=False)
        left -= len(text.encode("utf-8", "replace"))
        if left < 0:
            break
        written.append(text)
    if not written:
        return {}
    return {semconv.FEEDBACK_TEXTS: written, **altered.marks(semconv.FEEDBACK_TEXTS)}


def _taken(given: Given) -> bool:
    """Return True the first time, unless a run has the answer already; other contexts hold copies."""
    with _lock:
        waited, given.waiting = given.waiting, False
        return waited


def _of(context: Context) -> tuple[Given, ...]:
    value = otel_context.get_value(_KEY, context)
    return value if isinstance(value, tuple) else ()


def _cleaned(value: Any, altered: Alterations, name: str = "") -> Any:
    if isinstance(value, dict):
        return {key: _cleaned(each, altered, key) for key, each in value.items()}
    if isinstance(value, list):
        return [_cleaned(each, altered, name) for each in value]
    return altered.clean(value) if isinstance(value, str) and name in _TEXTS else value
