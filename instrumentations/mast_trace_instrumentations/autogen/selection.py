"""Selection of the next speaker in a group, and hand-offs that no tool made."""

from __future__ import annotations

from typing import Any

from mast_trace_instrumentations.autogen.reading import is_quiet, name_of
from mast_trace_instrumentations.autogen.run import Chat, current_chat

_NOBODY = {"Terminate", "Stay"}


def selecting() -> Chat | None:
    """Forget the previous selection."""
    chat = current_chat()
    if chat is not None:
        chat.selection = None
        chat.by_model = False
    return chat


def selected(chat: Chat, group: Any, speaker: Any) -> None:
    """Note the selected agent and who chose it, for the span of its turn."""
    by = "code"
    if chat.by_model:
        by = "model"
    elif chat.handed_over:
        by = "agent"
    elif getattr(group, "speaker_selection_method", None) == "manual":
        by = "user"
    chat.selection = (name_of(speaker), by)
    chat.handed_over = False


def asked_a_model() -> None:
    """Note that a model is asked for the next speaker."""
    chat = current_chat()
    if chat is not None:
        chat.by_model = True


_HANDED_OVER = {"AfterWorksTransitionEvent", "OnContextConditionTransitionEvent"}
_TELLING = {"TerminationEvent", "ErrorEvent", *_HANDED_OVER}


def is_telling(event: Any) -> bool:
    """Return whether an event has a fact for `note_event`; most are lines for the screen."""
    return type(event).__name__ in _TELLING


def note_event(event: Any) -> None:
    """Take facts from AutoGen's events that no function call shows: a chat's end, hand-offs by rule."""
    chat = None if is_quiet() else current_chat()
    if chat is None:
        return
    kind = type(event).__name__
    if kind == "TerminationEvent":
        chat.reason = str(event.termination_reason)
    elif kind == "ErrorEvent" and isinstance(event.error, BaseException):
        chat.error = event.error
    elif kind in _HANDED_OVER:
        target = event.transition_target.display_name()
        if target not in _NOBODY:
            chat.handoff = (name_of(event.source_agent), target)
