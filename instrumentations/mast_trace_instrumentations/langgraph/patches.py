"""The patches of LangGraph and LangChain."""

from __future__ import annotations

import sys
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from mast_trace.spans import Call, Inside
from mast_trace_instrumentations.base import Args, ImportHook, Instrumentor, Kwargs, Patch
from mast_trace_instrumentations.langgraph import model_calls
from mast_trace_instrumentations.langgraph.agent import begin_node, end_node, note_attempt
from mast_trace_instrumentations.langgraph.run import GraphRun, Interrupted, note_exit
from mast_trace_instrumentations.langgraph.tool import (
    RequestedCall,
    begin_tool,
    end_call,
    end_tool,
    with_call,
)

if TYPE_CHECKING:
    from mast_trace_instrumentations.langgraph.chat import ChatRecorder


_PREGEL = "langgraph.pregel.main"
_LOOP = "langgraph.pregel._loop"
_RUNNER = "langgraph.pregel._runner"
_TOOL_NODE = "langgraph.prebuilt.tool_node"
_TOOLS = "langchain_core.tools.base"
_MODELS = "langchain_core.language_models.chat_models"


class LangGraphInstrumentor(Instrumentor):
    """Records LangGraph programs."""

    framework = "langgraph"
    distributions = ("langgraph",)
    versions = ("0.6", "1.3")
    patches = (
        Patch(_PREGEL, "Pregel.stream", "begin_graph"),
        Patch(_PREGEL, "Pregel.astream", "begin_graph"),
        Patch(_LOOP, "SyncPregelLoop.__exit__", "begin_exit"),
        Patch(_LOOP, "AsyncPregelLoop.__aexit__", "begin_exit"),
        # Patched where they are called, not where they are defined: `_runner` imports the names.
        Patch(_RUNNER, "run_with_retry", "begin_node"),
        Patch(_RUNNER, "arun_with_retry", "begin_node"),
        Patch("langgraph.pregel._retry", "_should_retry_on", "begin_retry"),
        Patch(_TOOL_NODE, "ToolNode._run_one", "begin_call"),
        Patch(_TOOL_NODE, "ToolNode._arun_one", "begin_call"),
        Patch(_TOOLS, "BaseTool.run", "begin_tool"),
        Patch(_TOOLS, "BaseTool.arun", "begin_tool"),
        Patch(_MODELS, "BaseChatModel.generate", "begin_model"),
        Patch(_MODELS, "BaseChatModel.agenerate", "begin_model"),
        Patch(_MODELS, "BaseChatModel.stream", "begin_model"),
        Patch(_MODELS, "BaseChatModel.astream", "begin_model"),
    )
    import_hooks = (ImportHook(_MODELS, "_register_recorder"),)

    def __init__(self) -> None:
        super().__init__()
        self._interrupted = Interrupted()
        self._slot = _RecorderSlot()

    def stopped(self) -> None:
        """Remove the callback handler."""
        self._slot.recorder = None
        hooks = getattr(sys.modules.get("langchain_core.tracers.context"), "_configure_hooks", None)
        if hooks is not None:
            hooks[:] = [hook for hook in hooks if hook[0] is not self._slot]

    def _register_recorder(self) -> None:
        from langchain_core.tracers.context import register_configure_hook

        from mast_trace_instrumentations.langgraph.chat import ChatRecorder

        self._slot.recorder = ChatRecorder(self.telemetry)
        register_configure_hook(cast("ContextVar[Any]", self._slot), inheritable=True)

    def begin_graph(self, graph: Any, args: Args, kwargs: Kwargs) -> Call:
        """Begin an execution of a graph: a run, an agent's turn, or a part of a turn."""
        given = args[0] if args else kwargs.get("input")
        config = args[1] if len(args) > 1 else kwargs.get("config")
        return GraphRun(self.telemetry, self._interrupted, graph, given, config)

    def begin_exit(self, loop: Any, args: Args, _kwargs: Kwargs) -> None:
        """Note the reason why a graph's loop stops."""
        note_exit(loop, args[1])

    def begin_node(self, _instance: Any, args: Args, _kwargs: Kwargs) -> Call | None:
        """Begin an execution of a node."""
        task = args[0]
        scope = begin_node(task)
        if scope is None:
            return None
        return Inside(scope.context, partial(end_node, scope, task))

    def begin_retry(self, _instance: Any, _args: Args, _kwargs: Kwargs) -> Call:
        """Count a node's attempts, where LangGraph decides whether to try again."""
        return Inside(end=lambda again, _: note_attempt(again=again is True))

    def begin_call(self, _node: Any, args: Args, kwargs: Kwargs) -> Call:
        """Begin a `ToolNode`'s handling of one call that a model asked for."""
        call = RequestedCall(args[0] if args else kwargs["call"])
        return Inside(with_call(call), partial(end_call, self.telemetry, call))

    def begin_tool(self, tool: Any, args: Args, kwargs: Kwargs) -> Call | None:
        """Begin an execution of a tool."""
        given = args[0] if args else kwargs.get("tool_input")
        call_id = kwargs.get("tool_call_id")
        scope = begin_tool(self.telemetry, tool, given, call_id)
        if scope is None:
            return None
        return Inside(scope.context, partial(end_tool, scope, call_id))

    def begin_model(self, _model: Any, _args: Args, _kwargs: Kwargs) -> Call | None:
        """Show the code beneath a model call that the call has the recorder's span."""
        return model_calls.enter()


class _RecorderSlot:
    """Replaces a `ContextVar` of LangChain by one that can be emptied in every thread."""

    def __init__(self) -> None:
        self.recorder: ChatRecorder | None = None

    def get(self) -> ChatRecorder | None:
        return self.recorder
