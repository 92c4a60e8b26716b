"""Texts that a person types while a program runs: what Python's `input` returns.

Frameworks ask a person through `input`, too. The texts are written on the root of the run in which they
were typed, or of the next one if none was open, so that a replay can type them again. Input without an
echo (`getpass`) and commands for a debugger are not noted.
"""

from __future__ import annotations

import builtins
import functools
import sys
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from opentelemetry.trace import Span, format_span_id

from mast_trace import semconv
from mast_trace.fork_safe import reentrant_lock
from mast_trace.spans.guard import guarded
from mast_trace.spans.message_attributes import Alterations
from mast_trace.spans.run_state import Run, current_run, open_tool

if TYPE_CHECKING:
    from mast_trace.content import ContentPolicy

_MOST_WAITING = 100
_DEBUGGERS = {"IPython", "code", "ipdb", "pdb", "pdbpp", "pudb"}

# Reentrant: the garbage collector may end a run's span while it is held.
_lock = reentrant_lock()
_open: dict[int, Run] = {}
_waiting: deque[tuple[str, Span | None]] = deque(maxlen=_MOST_WAITING)
_wrapped: tuple[Callable[..., str], Callable[..., str]] | None = None
"""The original `input` and its replacement, while inputs are noted."""


def note_inputs() -> None:
    """Note what `input` returns from now on."""
    global _wrapped  # noqa: PLW0603  # there is one builtin
    with _lock:
        if _wrapped is None or builtins.input is not _wrapped[1]:
            _open.clear()
            original = builtins.input
            _wrapped = (original, _noting(original))
            builtins.input = _wrapped[1]


def ignore_inputs() -> None:
    """Restore `input`, and forget texts that no run has taken."""
    global _wrapped  # noqa: PLW0603
    with _lock:
        if _wrapped is not None and builtins.input is _wrapped[1]:
            builtins.input = _wrapped[0]
        _wrapped = None
        _waiting.clear()
        # Runs of this session that never end would take the inputs of a later one.
        _open.clear()


def run_began(run: Run) -> None:
    """Give a run, which is no part of another, the texts that were typed before it."""
    with _lock:
        _open[id(run)] = run
        run.typed.extend(_waiting)
        _waiting.clear()


def run_ended(run: Run, content: ContentPolicy) -> dict[str, Any]:
    """Return the attributes with the texts that were typed for a run."""
    with _lock:
        _open.pop(id(run), None)
    if not run.typed or not content.capture:
        return {}
    altered = Alterations(content)
    kept = [altered.kept(altered.clean(text)) for text, _ in run.typed]
    attributes: dict[str, Any] = {semconv.HUMAN_INPUTS: kept}
    if any(tool for _, tool in run.typed):
        attributes[semconv.HUMAN_INPUT_SPANS] = [_span_id(tool) for _, tool in run.typed]
    attributes.update(altered.marks(semconv.HUMAN_INPUTS))
    return attributes


def _noting(original: Callable[..., str]) -> Callable[..., str]:
    @functools.wraps(original)
    def noted(prompt: object = "", /) -> str:
        text = original(prompt)
        with guarded("noting an input"):
            if not _is_for_debugger(sys._getframe(1)):  # noqa: SLF001
                _note(text)
        return text

    return noted


def _note(text: str) -> None:
    run, typed = current_run(), (text, open_tool())
    with _lock:
        if run is None and len(_open) == 1:  # asked in a thread that does not know its run
            run = next(iter(_open.values()))
        if run is None:
            _waiting.append(typed)
        else:
            (run.outermost or run).typed.append(typed)


def _span_id(span: Span | None) -> str:
    return "" if span is None else format_span_id(span.get_span_context().span_id)


def _is_for_debugger(caller: Any) -> bool:
    owner = type(caller.f_locals.get("self")).__module__
    names = (str(caller.f_globals.get("__name__")), str(owner))
    return any(name.partition(".")[0] in _DEBUGGERS for name in names)
