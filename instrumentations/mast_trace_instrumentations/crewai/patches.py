"""CrewAI: crews, flows, delegation and guardrails, from the framework's own event bus.

The bus emits in the thread and context of the work, in order, so one patch of `emit` sees nearly
everything. A subscriber would receive events late, out of order and without context: handlers run
in a pool of threads.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from mast_trace import semconv
from mast_trace.messages import ToolCall
from mast_trace.spans import Inside, current_run
from mast_trace_instrumentations.base import Instrumentor
from mast_trace_instrumentations.crewai import reading, state
from mast_trace_instrumentations.crewai.events import EventRecorder
from mast_trace_instrumentations.crewai.run import MAX_TURNS
from mast_trace_instrumentations.crewai.targets import PATCHES

if TYPE_CHECKING:
    from mast_trace.spans import Call

_Args = tuple[Any, ...]
_Kwargs = dict[str, Any]


class CrewAIInstrumentor(Instrumentor):
    """Instruments CrewAI 0.177 up to 1.x."""

    framework = "crewai"
    distributions = ("crewai",)
    versions = ("0.177", "2")
    patches = PATCHES

    def started(self) -> None:
        """Begin with an empty record."""
        self.recorder = EventRecorder(self.telemetry)

    def begin_event(self, _bus: Any, args: _Args, kwargs: _Kwargs) -> None:
        """Record an event before the bus handles it."""
        self.recorder.record(*_emitted(*args, **kwargs))

    def begin_work(self, _instance: Any, _args: _Args, _kwargs: _Kwargs) -> Call:
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

    def begin_run(self, instance: Any, args: _Args, kwargs: _Kwargs) -> Call:
        """Close a run that began here and was abandoned, then guard the call as `begin_work` does."""
        for frame in state.abandoned():
            frame.span.end()
        return self.begin_work(instance, args, kwargs)

    def begin_delegation(self, tool: Any, args: _Args, kwargs: _Kwargs) -> Call:
        """Note a delegation to a coworker that does not exist: CrewAI reports it as a success."""
        name = (args[0] if args else kwargs.get("agent_name")) or ""

        def end(result: Any, error: BaseException | None) -> None:
            known = {tool.sanitize_agent_name(agent.role) for agent in tool.agents}
            if error is None and tool.sanitize_agent_name(name) not in known:
                self.recorder.refused(result, f"unknown coworker: {name}")

        return Inside(end=end)

    def begin_last_answer(self, _instance: Any, _args: _Args, _kwargs: _Kwargs) -> None:
        """Note that an agent was stopped by its iteration limit."""
        run = current_run()
        if run is not None:
            run.marks.add(MAX_TURNS)

    # -- tools: calls that CrewAI refuses to run have no event ------------------------------------

    def begin_text_call(self, _instance: Any, args: _Args, kwargs: _Kwargs) -> Call:
        """Observe a call that the model wrote as text."""
        action = args[0] if args else kwargs["agent_action"]
        call = ToolCall(str(action.tool), action.tool_input)
        return self.recorder.watch(call, kwargs.get("agent"), lambda result: result.result)

    def begin_native_call(self, loop: Any, args: _Args, kwargs: _Kwargs) -> Call:
        """Observe a call that the model made through its tool interface."""
        agent = getattr(loop, "agent", None) or kwargs.get("agent")
        call = reading.requested_call(args, kwargs)
        return self.recorder.watch(call, agent, reading.native_result)

    # -- model calls ------------------------------------------------------------------------------

    def begin_model_call(self, _llm: Any, args: _Args, kwargs: _Kwargs) -> Call:
        """Record the messages of a call in full, not as its event holds them."""
        return self.recorder.shown(args[0] if args else kwargs["messages"])

    # -- tokens -----------------------------------------------------------------------------------

    def begin_counting(self, _llm: Any, args: _Args, kwargs: _Kwargs) -> None:
        """Note the tokens that one of CrewAI's own providers has counted."""
        self.recorder.usage(args[0] if args else next(iter(kwargs.values()), None))

    def begin_last_chunk(self, _llm: Any, args: _Args, kwargs: _Kwargs) -> None:
        """Note the token counts in the last chunk of a LiteLLM stream."""
        self.recorder.usage(kwargs.get("usage_info") or (args[1] if len(args) > 1 else None))

    def begin_answer(self, _instance: Any, _args: _Args, _kwargs: _Kwargs) -> Call:
        """Note the tokens of a LiteLLM answer; a stream has none yet."""
        return Inside(end=lambda answer, _: self.recorder.usage(getattr(answer, "usage", None)))

    # -- people -----------------------------------------------------------------------------------

    def begin_human_input(self, _instance: Any, args: _Args, kwargs: _Kwargs) -> Call:
        """Record a person's comment on an agent's answer."""
        draft = _draft(args, kwargs)

        def end(comment: Any, error: BaseException | None) -> None:
            if error is None:
                self.recorder.human_input(draft, comment)

        return Inside(end=end)


def _emitted(source: Any, event: Any) -> tuple[Any, Any]:
    """Bind the arguments of `emit`, passed by position or by name."""
    return source, event


def _draft(args: _Args, kwargs: _Kwargs) -> str | None:
    """Return the answer that is shown to the person; newer versions pass the crew instead."""
    shown = args[0] if args else kwargs.get("final_answer")
    return shown if isinstance(shown, str) else None


def _termination(error: BaseException) -> str:
    if isinstance(error, asyncio.CancelledError | KeyboardInterrupt):
        return semconv.Termination.CANCELLED
    return semconv.Termination.ERROR
