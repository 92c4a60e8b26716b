"""CrewAI: crews, flows, delegation and guardrails, from the framework's own event bus.

The bus emits in the thread and context of the work, in order, so one patch of `emit` sees nearly
everything. A subscriber would receive events late, out of order and without context: handlers run
in a pool of threads.

The table of CrewAI: one row per target.

The modules of the agents' loops have moved and multiplied between versions; each of them has a row.

Handlers of CrewAI's events.

Each event type has a method ``_on_<type>`` in `run`, `agent`, `tool`, `chat` or `message`; other
events are ignored.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

from mast_trace import semconv
from mast_trace.messages import ToolCall
from mast_trace.spans import Call, Inside, current_run
from mast_trace_instrumentations.base import Args, Instrumentor, Kwargs, Patch
from mast_trace_instrumentations.crewai import reading, state
from mast_trace_instrumentations.crewai.agent import AgentEvents
from mast_trace_instrumentations.crewai.chat import ModelEvents
from mast_trace_instrumentations.crewai.run import MAX_TURNS
from mast_trace_instrumentations.crewai.state import text
from mast_trace_instrumentations.crewai.tool import ToolEvents

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


class EventRecorder(AgentEvents, ToolEvents, ModelEvents):
    """Turns the stream of events into spans."""

    def record(self, source: Any, event: Any) -> None:
        """Record one event; unknown types are ignored."""
        handler = getattr(self, f"_on_{event.type}", None)
        if handler is None:
            return
        if state.is_cut_off():
            state.adopt(_owner(event, "agent"), _owner(event, "task"))
        handler(source, event)


def _owner(event: Any, kind: str) -> str:
    """Return the id of an event's agent or task: on the event itself, or on an object that it holds."""
    own = getattr(event, f"{kind}_id", None)
    return text(own or getattr(getattr(event, kind, None), "id", None))


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


class CrewAIInstrumentor(Instrumentor):
    """Instruments CrewAI 0.177 up to 1.x."""

    framework = "crewai"
    distributions = ("crewai",)
    versions = ("0.177", "2")
    patches = PATCHES

    def started(self) -> None:
        """Begin with an empty record."""
        self.recorder = EventRecorder(self.telemetry)

    def begin_event(self, _bus: Any, args: Args, kwargs: Kwargs) -> None:
        """Record an event before the bus handles it."""
        self.recorder.record(*_emitted(*args, **kwargs))

    def begin_work(self, _instance: Any, _args: Args, _kwargs: Kwargs) -> Call:
        """Close spans that the call leaves open: before 1.15.10 a failed flow emits no end."""
        depth = len(state.frames())
        before = state.guard(on=True)

        def end(_result: Any, error: BaseException | None) -> None:
            state.guard(on=before)
            for frame in state.unwind(depth):
                if frame.kind == "run" and error is not None:
                    frame.span.set({semconv.RUN_TERMINATION_REASON: _termination(error)})
                frame.span.end(error)

        return Inside(end=end)

    def begin_run(self, instance: Any, args: Args, kwargs: Kwargs) -> Call:
        """Close a run that began here and was abandoned, then guard the call as `begin_work` does."""
        for frame in state.abandoned():
            frame.span.end()
        return self.begin_work(instance, args, kwargs)

    def begin_delegation(self, tool: Any, args: Args, kwargs: Kwargs) -> Call:
        """Note a delegation to a coworker that does not exist: CrewAI reports it as a success."""
        name = (args[0] if args else kwargs.get("agent_name")) or ""

        def end(result: Any, error: BaseException | None) -> None:
            known = {tool.sanitize_agent_name(agent.role) for agent in tool.agents}
            if error is None and tool.sanitize_agent_name(name) not in known:
                self.recorder.refused(result, f"unknown coworker: {name}")

        return Inside(end=end)

    def begin_last_answer(self, _instance: Any, _args: Args, _kwargs: Kwargs) -> None:
        """Note that an agent was stopped by its iteration limit."""
        run = current_run()
        if run is not None:
            run.marks.add(MAX_TURNS)

    # -- tools: calls that CrewAI refuses to run have no event ------------------------------------

    def begin_text_call(self, _instance: Any, args: Args, kwargs: Kwargs) -> Call:
        """Observe a call that the model wrote as text."""
        action = args[0] if args else kwargs["agent_action"]
        call = ToolCall(str(action.tool), action.tool_input)
        return self.recorder.watch(call, kwargs.get("agent"), lambda result: result.result)

    def begin_native_call(self, loop: Any, args: Args, kwargs: Kwargs) -> Call:
        """Observe a call that the model made through its tool interface."""
        agent = getattr(loop, "agent", None) or kwargs.get("agent")
        call = reading.requested_call(args, kwargs)
        return self.recorder.watch(call, agent, reading.native_result)

    # -- model calls ------------------------------------------------------------------------------

    def begin_model_call(self, _llm: Any, args: Args, kwargs: Kwargs) -> Call:
        """Record the messages of a call in full, not as its event holds them."""
        return self.recorder.shown(args[0] if args else kwargs["messages"])

    # -- tokens -----------------------------------------------------------------------------------

    def begin_counting(self, _llm: Any, args: Args, kwargs: Kwargs) -> None:
        """Note the tokens that one of CrewAI's own providers has counted."""
        self.recorder.usage(args[0] if args else next(iter(kwargs.values()), None))

    def begin_last_chunk(self, _llm: Any, args: Args, kwargs: Kwargs) -> None:
        """Note the token counts in the last chunk of a LiteLLM stream."""
        self.recorder.usage(kwargs.get("usage_info") or (args[1] if len(args) > 1 else None))

    def begin_answer(self, _instance: Any, _args: Args, _kwargs: Kwargs) -> Call:
        """Note the tokens of a LiteLLM answer; a stream has none yet."""
        return Inside(end=lambda answer, _: self.recorder.usage(getattr(answer, "usage", None)))

    # -- people -----------------------------------------------------------------------------------

    def begin_human_input(self, _instance: Any, args: Args, kwargs: Kwargs) -> Call:
        """Record a person's comment on an agent's answer."""
        draft = _draft(args, kwargs)

        def end(comment: Any, error: BaseException | None) -> None:
            if error is None:
                self.recorder.human_input(draft, comment)

        return Inside(end=end)


def _emitted(source: Any, event: Any) -> tuple[Any, Any]:
    """Bind the arguments of `emit`, passed by position or by name."""
    return source, event


def _draft(args: Args, kwargs: Kwargs) -> str | None:
    """Return the answer that is shown to the person; newer versions pass the crew instead."""
    shown = args[0] if args else kwargs.get("final_answer")
    return shown if isinstance(shown, str) else None


def _termination(error: BaseException) -> str:
    if isinstance(error, asyncio.CancelledError | KeyboardInterrupt):
        return semconv.Termination.CANCELLED
    return semconv.Termination.ERROR
