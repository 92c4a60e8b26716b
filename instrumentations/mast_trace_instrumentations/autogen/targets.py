"""The table of AG2 classic: one row per target."""

from __future__ import annotations

from mast_trace_instrumentations.base import ImportHook, Patch

AGENT = "autogen.agentchat.conversable_agent"
_GROUP = "autogen.agentchat.groupchat"
PATTERNS = "autogen.agentchat.group.multi_agent_chat"
_EXECUTORS = (
    ("autogen.coding.local_commandline_code_executor", "LocalCommandLineCodeExecutor"),
    ("autogen.coding.docker_commandline_code_executor", "DockerCommandLineCodeExecutor"),
    ("autogen.coding.jupyter.jupyter_code_executor", "JupyterCodeExecutor"),
    ("autogen.coding.jupyter.embedded_ipython_code_executor", "EmbeddedIPythonCodeExecutor"),
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
IMPORT_HOOKS = (
    ImportHook(AGENT, "keep_context_in_agents"),
    ImportHook(PATTERNS, "keep_context_in_patterns"),
)
