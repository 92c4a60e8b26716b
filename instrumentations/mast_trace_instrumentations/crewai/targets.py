"""The table of CrewAI: one row per target.

The modules of the agents' loops have moved and multiplied between versions; each of them has a row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mast_trace_instrumentations.base import Patch

if TYPE_CHECKING:
    from collections.abc import Iterator

_LOOPS = (
    "crewai.agents.crew_agent_executor",
    "crewai.agents.agent_executor",
    "crewai.agents.step_executor",
    "crewai.experimental.agent_executor",
    "crewai.lite_agent",
)
_NATIVE_CALLS = (
    ("crewai.agents.crew_agent_executor", "CrewAgentExecutor._execute_single_native_tool_call"),
    ("crewai.agents.agent_executor", "AgentExecutor._execute_single_native_tool_call"),
    ("crewai.experimental.agent_executor", "AgentExecutor._execute_single_native_tool_call"),
    ("crewai.agents.step_executor", "execute_single_native_tool_call"),
)


def _loop_patches() -> Iterator[Patch]:
    for module in _LOOPS:
        # The forced last answer has no event of its own.
        yield Patch(
            module, "handle_max_iterations_exceeded", "begin_last_answer", optional="in some 1.x"
        )
        yield Patch(
            module, "execute_tool_and_check_finality", "begin_text_call", optional="in some 1.x"
        )
        yield Patch(
            module, "aexecute_tool_and_check_finality", "begin_text_call", optional="in some 1.x"
        )
    for module, target in _NATIVE_CALLS:
        yield Patch(module, target, "begin_native_call", optional="since 1.9")


PATCHES = (
    Patch("crewai.events.event_bus", "CrewAIEventsBus.emit", "begin_event"),
    Patch(
        "crewai.tools.agent_tools.base_agent_tools", "BaseAgentTool._execute", "begin_delegation"
    ),
    *_loop_patches(),
    # Guards: spans that an exception leaves open are closed where the work was called.
    Patch("crewai.crew", "Crew.kickoff", "begin_run"),
    Patch("crewai.crew", "Crew.akickoff", "begin_run", optional="since 1.7"),
    Patch("crewai.crew", "Crew.replay", "begin_run"),
    Patch("crewai.flow.flow", "Flow.kickoff_async", "begin_run"),
    Patch("crewai.agent", "Agent.execute_task", "begin_work"),
    Patch("crewai.agent", "Agent.aexecute_task", "begin_work", optional="since 1.7"),
    Patch("crewai.agent", "Agent.kickoff", "begin_run"),
    Patch("crewai.agent", "Agent.kickoff_async", "begin_run"),
    Patch("crewai.agent", "Agent.akickoff", "begin_run", optional="since 1.9"),
    Patch("crewai.lite_agent", "LiteAgent.kickoff", "begin_run"),
    # The messages of a model call, which its event holds cut at a depth of five.
    Patch(
        "crewai.llms.base_llm",
        "BaseLLM._emit_call_started_event",
        "begin_model_call",
        optional="since 1.0",
    ),
    # Token counts, which events carry since 1.13: from the framework's own providers (1.0), and
    # from LiteLLM's answers.
    Patch(
        "crewai.llms.base_llm",
        "BaseLLM._track_token_usage_internal",
        "begin_counting",
        optional="since 1.0",
    ),
    Patch(
        "crewai.llm",
        "LLM._handle_streaming_callbacks",
        "begin_last_chunk",
        optional="with LiteLLM",
    ),
    Patch("litellm", "completion", "begin_answer", optional="with LiteLLM"),
    Patch("litellm", "acompletion", "begin_answer", optional="with LiteLLM"),
    # People who comment on an agent's answer.
    Patch(
        "crewai.agents.agent_builder.base_agent_executor_mixin",
        "CrewAgentExecutorMixin._ask_human_input",
        "begin_human_input",
        optional="before 1.9",
    ),
    Patch(
        "crewai.core.providers.human_input",
        "SyncHumanInputProvider._prompt_input",
        "begin_human_input",
        optional="since 1.9",
    ),
    Patch(
        "crewai.core.providers.human_input",
        "SyncHumanInputProvider._prompt_input_async",
        "begin_human_input",
        optional="since 1.9",
    ),
)
