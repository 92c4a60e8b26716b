"""AG2's classic API (``import autogen``): chats, group chats, tools, hand-offs.

Distributed as `ag2` before 1.0 and as `autogen`; both are the same code. The API of `ag2` 1.x is
another framework: see `mast_trace_instrumentations.ag2`.
"""

from __future__ import annotations

import sys
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opentelemetry import context as otel_context

from mast_trace.spans import current_run, guarded
from mast_trace_instrumentations.autogen import selection, threads
from mast_trace_instrumentations.autogen.agent import take_turn
from mast_trace_instrumentations.autogen.chat import create
from mast_trace_instrumentations.autogen.message import record_message
from mast_trace_instrumentations.autogen.reading import name_of
from mast_trace_instrumentations.autogen.run import (
    Conversation,
    begin,
    chat_name,
    current_conversation,
)
from mast_trace_instrumentations.autogen.state import is_quiet, quietly, within
from mast_trace_instrumentations.autogen.targets import AGENT, IMPORT_HOOKS, PATCHES, PATTERNS
from mast_trace_instrumentations.autogen.tool import execute_code, execute_function
from mast_trace_instrumentations.base import Instrumentor

if TYPE_CHECKING:
    from collections.abc import Callable

Args = tuple[Any, ...]
Kwargs = dict[str, Any]


class AutogenInstrumentor(Instrumentor):
    """Instruments AG2 classic: `ag2` 0.10 up to 0.14 and `autogen` 0.14."""

    framework = "autogen"
    distributions = ("autogen", "ag2")
    versions = ("0.10", "0.15")
    patches = PATCHES
    import_hooks = IMPORT_HOOKS

    def __init__(self) -> None:
        super().__init__()
        self._replaced: dict[str, dict[str, Any]] = {}

    def present(self) -> bool:
        """Whether the package `autogen` is there and is AG2's: others share its name."""
        spec = find_spec("autogen")
        folders = [Path(found) for found in (spec and spec.submodule_search_locations) or ()]
        return any((folder / "agentchat" / "group").exists() for folder in folders)

    def installed_version(self) -> str:
        """Return the version of the distribution that holds `autogen`."""
        from importlib import metadata

        for name in self.distributions:
            try:
                version = metadata.version(name)
            except metadata.PackageNotFoundError:
                continue
            if version.startswith("0."):
                return version
        return ""

    def keep_context_in_agents(self) -> None:
        """Let threads that agents start carry the context."""
        self._replaced[AGENT] = threads.replace_in(sys.modules[AGENT])

    def keep_context_in_patterns(self) -> None:
        """Let threads that group chats are run in carry the context."""
        self._replaced[PATTERNS] = threads.replace_in(sys.modules[PATTERNS])

    def stopped(self) -> None:
        """Give the modules back what they had."""
        for module, before in self._replaced.items():
            for name, original in before.items():
                setattr(sys.modules[module], name, original)
        self._replaced.clear()

    # -- chats ----------------------------------------------------------------------------------

    def chat(self, wrapped: Callable[..., Any], instance: Any, args: Args, kwargs: Kwargs) -> Any:
        """Record a chat as a run, or as a part of the run around it."""
        call = partial(wrapped, *args, **kwargs)
        if is_quiet():
            return call()
        recipient = _argument(args, kwargs, 0, "recipient")
        return self._in_run(chat_name(instance, recipient), call)

    def sequence(
        self, wrapped: Callable[..., Any], _instance: Any, args: Args, kwargs: Kwargs
    ) -> Any:
        """Keep chats that follow each other in one run."""
        call = partial(wrapped, *args, **kwargs)
        return call() if current_run() else self._in_run("initiate_chats", call)

    def background_sequence(
        self, wrapped: Callable[..., Any], _instance: Any, args: Args, kwargs: Kwargs
    ) -> Any:
        """Keep chats that follow each other in a thread or task in one run."""
        call = partial(wrapped, *args, **kwargs)
        conversation: Conversation | None = None
        with guarded("beginning a sequence of chats"):
            conversation = begin(self.telemetry, "sequential_run")
        if conversation is None:
            return call()
        # It ends with the thread or task; here only if it could not be started.
        context = threads.owned_by_what_it_starts(conversation)

        def end(_result: Any, error: BaseException | None) -> None:
            if error is not None:
                conversation.finish(error)

        return within(context, call, end)

    def outside_any_chat(self) -> bool:
        """Whether nobody has initiated the chat that is going on."""
        return self.state.active and current_conversation() is None and not is_quiet()

    def receive(
        self, wrapped: Callable[..., Any], instance: Any, args: Args, kwargs: Kwargs
    ) -> Any:
        """Make what comes of a message a run, where it was sent without initiating a chat."""
        sender = _argument(args, kwargs, 1, "sender")
        return self._in_run(chat_name(sender, instance), partial(wrapped, *args, **kwargs))

    def message(
        self, wrapped: Callable[..., Any], instance: Any, args: Args, kwargs: Kwargs
    ) -> Any:
        """Record a message that an agent takes in, before the replies to it."""
        taken = wrapped(*args, **kwargs)
        with guarded("recording a message"):
            if not is_quiet():
                message = _argument(args, kwargs, 0, "message")
                sender = _argument(args, kwargs, 1, "sender")
                record_message(self.telemetry, instance, message, sender)
        return taken

    def _in_run(self, name: str, call: Callable[[], Any]) -> Any:
        conversation: Conversation | None = None
        with guarded("beginning a run"):
            conversation = begin(self.telemetry, name)
        if conversation is None:
            return call()
        return within(conversation.context, call, lambda _result, error: conversation.finish(error))

    def should_terminate(
        self, wrapped: Callable[..., Any], _instance: Any, args: Args, kwargs: Kwargs
    ) -> Any:
        """Note that a message ended the chat: AutoGen says so only where it was no limit."""
        ended = wrapped(*args, **kwargs)
        with guarded("recording the end of a chat"):
            conversation = current_conversation()
            if ended and conversation is not None and not is_quiet():
                conversation.reason = conversation.reason or "Termination message received"
        return ended

    # -- agents ---------------------------------------------------------------------------------

    def generate_reply(
        self, wrapped: Callable[..., Any], instance: Any, args: Args, kwargs: Kwargs
    ) -> Any:
        """Record an agent's turn."""
        call = partial(wrapped, *args, **kwargs)
        if is_quiet():
            return call()
        messages = _argument(args, kwargs, 0, "messages")
        sender = _argument(args, kwargs, 1, "sender")
        turn = partial(take_turn, self.telemetry, instance, call, messages, sender)
        return turn() if current_run() else self._in_run(name_of(instance), turn)

    def execute_function(
        self, wrapped: Callable[..., Any], instance: Any, args: Args, kwargs: Kwargs
    ) -> Any:
        """Record a tool call."""
        function = _argument(args, kwargs, 0, "func_call") or {}
        call_id = _argument(args, kwargs, 1, "call_id")
        call = partial(wrapped, *args, **kwargs)
        if current_run() is None:
            return call()
        return execute_function(self.telemetry, instance, call, function, call_id)

    def execute_code_blocks(
        self, wrapped: Callable[..., Any], _instance: Any, args: Args, kwargs: Kwargs
    ) -> Any:
        """Record that code is run."""
        blocks = _argument(args, kwargs, 0, "code_blocks") or ()
        call = partial(wrapped, *args, **kwargs)
        return execute_code(self.telemetry, call, blocks) if current_run() else call()

    def create(self, wrapped: Callable[..., Any], instance: Any, args: Args, kwargs: Kwargs) -> Any:
        """Record a model call."""
        call = partial(wrapped, *args, **kwargs)
        return create(self.telemetry, instance, call, kwargs) if current_run() else call()

    # -- groups ---------------------------------------------------------------------------------

    def select_speaker(
        self, wrapped: Callable[..., Any], instance: Any, args: Args, kwargs: Kwargs
    ) -> Any:
        """Note who is to speak next and who decided it."""
        conversation: Conversation | None = None
        with guarded("following the selection of a speaker"):
            conversation = selection.selecting()
        if conversation is None:
            return wrapped(*args, **kwargs)

        def end(speaker: Any, error: BaseException | None) -> None:
            if error is None:
                selection.selected(conversation, instance, speaker)

        return within(otel_context.get_current(), partial(wrapped, *args, **kwargs), end)

    def auto_select_speaker(
        self, wrapped: Callable[..., Any], _instance: Any, args: Args, kwargs: Kwargs
    ) -> Any:
        """Hide the chat of two nameless agents in which a model is asked who speaks next."""
        with guarded("following the selection of a speaker"):
            selection.asked_a_model()
        return quietly(partial(wrapped, *args, **kwargs))

    def resume(
        self, wrapped: Callable[..., Any], _instance: Any, args: Args, kwargs: Kwargs
    ) -> Any:
        """Do not record again what an earlier run has said."""
        return quietly(partial(wrapped, *args, **kwargs))

    def event(self, wrapped: Callable[..., Any], instance: Any, args: Args, kwargs: Kwargs) -> None:
        """Take from the framework's events what nothing else tells."""
        wrapped(*args, **kwargs)
        with guarded("reading an event of AutoGen"):
            selection.note_event(instance)


def _argument(args: Args, kwargs: Kwargs, position: int, name: str) -> Any:
    """Return an argument, however it was passed; None if it was not."""
    return args[position] if len(args) > position else kwargs.get(name)
