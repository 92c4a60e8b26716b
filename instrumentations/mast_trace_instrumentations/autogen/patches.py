"""AG2's classic API (``import autogen``): chats, group chats, tools, hand-offs.

Distributed as `ag2` before 1.0 and as `autogen`; both are the same code. The API of `ag2` 1.x is
another framework: see `mast_trace_instrumentations.ag2`.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from mast_trace.spans import Call, Inside, current_run
from mast_trace_instrumentations.autogen import selection, threads
from mast_trace_instrumentations.autogen.agent import begin_turn
from mast_trace_instrumentations.autogen.chat import begin_chat
from mast_trace_instrumentations.autogen.message import record_message
from mast_trace_instrumentations.autogen.reading import is_quiet, quiet
from mast_trace_instrumentations.autogen.run import begin_run, chat_name, current_chat
from mast_trace_instrumentations.autogen.tool import begin_code, begin_tool
from mast_trace_instrumentations.base import Args, ImportHook, Instrumentor, Kwargs, Patch

AGENT = "autogen.agentchat.conversable_agent"
_GROUP = "autogen.agentchat.groupchat"
PATTERNS = "autogen.agentchat.group.multi_agent_chat"
_EXECUTORS = (
    ("autogen.coding.local_commandline_code_executor", "LocalCommandLineCodeExecutor"),
    ("autogen.coding.docker_commandline_code_executor", "DockerCommandLineCodeExecutor"),
    ("autogen.coding.jupyter.jupyter_code_executor", "JupyterCodeExecutor"),
    ("autogen.coding.jupyter.embedded_ipython_code_executor", "EmbeddedIPythonCodeExecutor"),
)

IMPORT_HOOKS = (
    ImportHook(AGENT, "keep_context_in_agents"),
    ImportHook(PATTERNS, "keep_context_in_patterns"),
)


def _both(module: str, target: str, begin: str) -> tuple[Patch, Patch]:
    """Return the rows for a method and its async twin."""
    owner, _, name = target.rpartition(".")
    return Patch(module, target, begin), Patch(module, f"{owner}.a_{name}", begin)


PATCHES = (
    *_both(AGENT, "ConversableAgent.initiate_chat", "begin_chat"),
    *_both(AGENT, "ConversableAgent.initiate_chats", "begin_sequence"),
    *_both(AGENT, "ConversableAgent.sequential_run", "begin_background"),
    *(
        Patch(module, name, "begin_sequence")
        for module in ("autogen.agentchat.chat", "autogen.agentchat", "autogen")
        for name in ("initiate_chats", "a_initiate_chats")
        if (module, name) != ("autogen", "a_initiate_chats")
    ),
    Patch(AGENT, "ConversableAgent._process_received_message", "begin_message"),
    # Agents answer each other by recursion: a Python frame per message would overflow in long
    # chats.
    *(
        Patch(AGENT, f"ConversableAgent.{name}", "begin_receiving", only_if="outside_any_chat")
        for name in ("receive", "a_receive")
    ),
    *_both(AGENT, "ConversableAgent.generate_reply", "begin_turn"),
    *_both(AGENT, "ConversableAgent.execute_function", "begin_tool"),
    Patch(AGENT, "ConversableAgent.execute_code_blocks", "begin_code"),
    Patch(AGENT, "ConversableAgent._should_terminate_chat", "begin_termination"),
    *(Patch(module, f"{name}.execute_code_blocks", "begin_code") for module, name in _EXECUTORS),
    Patch("autogen.oai.client", "OpenAIWrapper.create", "begin_model"),
    *_both(_GROUP, "GroupChat.select_speaker", "begin_selection"),
    Patch(_GROUP, "GroupChat._auto_select_speaker", "begin_question"),
    Patch(_GROUP, "GroupChat.a_auto_select_speaker", "begin_question"),
    *_both(_GROUP, "GroupChatManager.resume", "begin_resuming"),
    Patch("autogen.events.base_event", "BaseEvent.__init__", "begin_event"),
)


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
        """Return whether the package `autogen` is installed and is AG2's: others share its name."""
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
        """Make threads that agents start carry the context."""
        self._replaced[AGENT] = threads.replace_in(sys.modules[AGENT])

    def keep_context_in_patterns(self) -> None:
        """Make threads that group chats are run in carry the context."""
        self._replaced[PATTERNS] = threads.replace_in(sys.modules[PATTERNS])

    def stopped(self) -> None:
        """Restore the modules' own attributes."""
        for module, before in self._replaced.items():
            for name, original in before.items():
                setattr(sys.modules[module], name, original)
        self._replaced.clear()

    # -- chats ----------------------------------------------------------------------------------

    def begin_chat(self, sender: Any, args: Args, kwargs: Kwargs) -> Call | None:
        """Begin a chat: a run, or a part of the run around it."""
        if is_quiet():
            return None
        return begin_run(self.telemetry, chat_name(sender, _argument(args, kwargs, 0, "recipient")))

    def begin_sequence(self, _sender: Any, _args: Args, _kwargs: Kwargs) -> Call | None:
        """Keep a sequence of chats in one run."""
        return None if current_run() else begin_run(self.telemetry, "initiate_chats")

    def begin_background(self, _sender: Any, _args: Args, _kwargs: Kwargs) -> Call:
        """Keep a sequence of chats in a thread or task in one run."""
        chat = begin_run(self.telemetry, "sequential_run")

        def end(_result: Any, error: BaseException | None) -> None:
            # The run ends with the thread or task; here only if neither could be started.
            if error is not None:
                chat.finish(error)

        return Inside(threads.owned_by_what_it_starts(chat), end)

    def outside_any_chat(self) -> bool:
        """Return whether the chat in progress was not initiated by `initiate_chat`."""
        return self.state.active and current_chat() is None and not is_quiet()

    def begin_receiving(self, recipient: Any, args: Args, kwargs: Kwargs) -> Call:
        """Record a run for a message that was sent outside `initiate_chat`."""
        sender = _argument(args, kwargs, 1, "sender")
        return begin_run(self.telemetry, chat_name(sender, recipient))

    def begin_message(self, recipient: Any, args: Args, kwargs: Kwargs) -> Call | None:
        """Record a received message, before the replies to it."""
        if is_quiet():
            return None
        message = _argument(args, kwargs, 0, "message")
        sender = _argument(args, kwargs, 1, "sender")

        def end(_result: Any, error: BaseException | None) -> None:
            if error is None:
                record_message(self.telemetry, recipient, message, sender)

        return Inside(end=end)

    def begin_termination(self, _agent: Any, _args: Args, _kwargs: Kwargs) -> Call | None:
        """Note that a message ended the chat: AutoGen reports it only where no limit was reached."""
        chat = current_chat()
        if chat is None or is_quiet():
            return None

        def end(ended: Any, error: BaseException | None) -> None:
            if error is None and ended:
                chat.reason = chat.reason or "Termination message received"

        return Inside(end=end)

    # -- agents ---------------------------------------------------------------------------------

    def begin_turn(self, agent: Any, args: Args, kwargs: Kwargs) -> Call | None:
        """Begin an agent's turn."""
        if is_quiet():
            return None
        messages = _argument(args, kwargs, 0, "messages")
        return begin_turn(self.telemetry, agent, messages, _argument(args, kwargs, 1, "sender"))

    def begin_tool(self, agent: Any, args: Args, kwargs: Kwargs) -> Call | None:
        """Begin a tool call."""
        if current_run() is None:
            return None
        function = _argument(args, kwargs, 0, "func_call") or {}
        return begin_tool(self.telemetry, agent, function, _argument(args, kwargs, 1, "call_id"))

    def begin_code(self, _runner: Any, args: Args, kwargs: Kwargs) -> Call | None:
        """Begin an execution of code."""
        blocks = _argument(args, kwargs, 0, "code_blocks") or ()
        return begin_code(self.telemetry, blocks) if current_run() else None

    def begin_model(self, client: Any, _args: Args, kwargs: Kwargs) -> Call | None:
        """Begin a model call."""
        return begin_chat(self.telemetry, client, kwargs) if current_run() else None

    # -- groups ---------------------------------------------------------------------------------

    def begin_selection(self, group: Any, _args: Args, _kwargs: Kwargs) -> Call | None:
        """Note the next speaker and who chose it."""
        chat = selection.selecting()
        if chat is None:
            return None

        def end(speaker: Any, error: BaseException | None) -> None:
            if error is None:
                selection.selected(chat, group, speaker)

        return Inside(end=end)

    def begin_question(self, _group: Any, _args: Args, _kwargs: Kwargs) -> Call:
        """Hide the chat of two nameless agents in which a model is asked for the next speaker."""
        selection.asked_a_model()
        return Inside(quiet())

    def begin_resuming(self, _manager: Any, _args: Args, _kwargs: Kwargs) -> Call:
        """Skip messages that an earlier run has recorded."""
        return Inside(quiet())

    def begin_event(self, event: Any, _args: Args, _kwargs: Kwargs) -> Call | None:
        """Take facts from the framework's events that no function call shows, as they are made."""
        if not selection.is_telling(event):
            return None
        return Inside(end=lambda _, error: None if error else selection.note_event(event))


def _argument(args: Args, kwargs: Kwargs, position: int, name: str) -> Any:
    """Return an argument, passed by position or by name; None if it was not passed."""
    return args[position] if len(args) > position else kwargs.get(name)
