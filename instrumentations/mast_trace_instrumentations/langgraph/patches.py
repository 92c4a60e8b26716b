"""What of LangGraph and LangChain is wrapped, and the wrappers: thin shells around the recording."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from opentelemetry import context as otel_context

from mast_trace.spans.guard import guarded
from mast_trace_instrumentations._streams import Inside, adrive, drive
from mast_trace_instrumentations.base import ImportHook, Instrumentor, Patch
from mast_trace_instrumentations.langgraph import model_calls, nodes, tools
from mast_trace_instrumentations.langgraph.runs import GraphRun, Interrupted, note_exit
from mast_trace_instrumentations.langgraph.scopes import NodeScope, current_scope

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextvars import ContextVar

    from mast_trace.spans.telemetry import Telemetry
    from mast_trace_instrumentations.langgraph.chat import ChatRecorder
    from mast_trace_instrumentations.langgraph.scopes import ToolScope

_Args = tuple[Any, ...]
_Kwargs = dict[str, Any]

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
        Patch(_PREGEL, "Pregel.stream", "_stream"),
        Patch(_PREGEL, "Pregel.astream", "_astream"),
        Patch(_LOOP, "SyncPregelLoop.__exit__", "_exit"),
        Patch(_LOOP, "AsyncPregelLoop.__aexit__", "_exit"),
        # Where they are called, not where they are defined: `_runner` imports the names.
        Patch(_RUNNER, "run_with_retry", "_node"),
        Patch(_RUNNER, "arun_with_retry", "_anode"),
        Patch("langgraph.pregel._retry", "_should_retry_on", "_retry"),
        Patch(_TOOL_NODE, "ToolNode._run_one", "_tool_call"),
        Patch(_TOOL_NODE, "ToolNode._arun_one", "_atool_call"),
        Patch(_TOOLS, "BaseTool.run", "_tool"),
        Patch(_TOOLS, "BaseTool.arun", "_atool"),
        Patch(_MODELS, "BaseChatModel.generate", "_model"),
        Patch(_MODELS, "BaseChatModel.agenerate", "_amodel"),
        Patch(_MODELS, "BaseChatModel.stream", "_model_stream"),
        Patch(_MODELS, "BaseChatModel.astream", "_amodel_stream"),
    )
    import_hooks = (ImportHook(_MODELS, "_register_recorder"),)

    def __init__(self) -> None:
        super().__init__()
        self._interrupted = Interrupted()
        self._slot = _RecorderSlot()

    def stopped(self) -> None:
        """Take the callback handler back."""
        self._slot.recorder = None
        hooks = getattr(sys.modules.get("langchain_core.tracers.context"), "_configure_hooks", None)
        if hooks is not None:
            hooks[:] = [hook for hook in hooks if hook[0] is not self._slot]

    def _register_recorder(self) -> None:
        from langchain_core.tracers.context import register_configure_hook

        from mast_trace_instrumentations.langgraph.chat import ChatRecorder

        self._slot.recorder = ChatRecorder(self.telemetry)
        register_configure_hook(cast("ContextVar[Any]", self._slot), inheritable=True)

    # -- graphs -----------------------------------------------------------------------------------

    def _stream(
        self, wrapped: Callable[..., Any], instance: Any, args: _Args, kwargs: _Kwargs
    ) -> Any:
        return drive(wrapped(*args, **kwargs), self._graph(instance, args, kwargs))

    def _astream(
        self, wrapped: Callable[..., Any], instance: Any, args: _Args, kwargs: _Kwargs
    ) -> Any:
        return adrive(wrapped(*args, **kwargs), self._graph(instance, args, kwargs))

    def _graph(self, graph: Any, args: _Args, kwargs: _Kwargs) -> Callable[[], GraphRun]:
        given = args[0] if args else kwargs.get("input")
        config = args[1] if len(args) > 1 else kwargs.get("config")
        return lambda: GraphRun(self.telemetry, self._interrupted, graph, given, config)

    def _exit(
        self, wrapped: Callable[..., Any], instance: Any, args: _Args, kwargs: _Kwargs
    ) -> Any:
        with guarded("leaving a graph"):
            note_exit(instance, args[1])
        return wrapped(*args, **kwargs)

    # -- nodes ------------------------------------------------------------------------------------

    def _node(
        self, wrapped: Callable[..., Any], _instance: Any, args: _Args, kwargs: _Kwargs
    ) -> Any:
        entered = self._enter_node(args[0])
        if entered is None:
            return wrapped(*args, **kwargs)
        with entered:
            return wrapped(*args, **kwargs)

    async def _anode(
        self, wrapped: Callable[..., Any], _instance: Any, args: _Args, kwargs: _Kwargs
    ) -> Any:
        entered = self._enter_node(args[0])
        if entered is None:
            return await wrapped(*args, **kwargs)
        with entered:
            return await wrapped(*args, **kwargs)

    @staticmethod
    def _enter_node(task: Any) -> Inside | None:
        with guarded("entering a node"):
            scope = nodes.begin_node(task)
            if scope is not None:
                return Inside(scope.context, partial(_leave_node, scope, task))
        return None

    def _retry(
        self, wrapped: Callable[..., Any], _instance: Any, args: _Args, kwargs: _Kwargs
    ) -> Any:
        again = wrapped(*args, **kwargs)
        with guarded("counting a node's attempts"):
            scope = current_scope()
            if again and isinstance(scope, NodeScope):
                scope.failures += 1
                scope.stands_for_graph = False
        return again

    # -- tools ------------------------------------------------------------------------------------

    def _tool_call(
        self, wrapped: Callable[..., Any], _instance: Any, args: _Args, kwargs: _Kwargs
    ) -> Any:
        with self._enter_call(args, kwargs) as entered:
            entered.result = wrapped(*args, **kwargs)
        return entered.result

    async def _atool_call(
        self, wrapped: Callable[..., Any], _instance: Any, args: _Args, kwargs: _Kwargs
    ) -> Any:
        with self._enter_call(args, kwargs) as entered:
            entered.result = await wrapped(*args, **kwargs)
        return entered.result

    def _enter_call(self, args: _Args, kwargs: _Kwargs) -> Inside:
        call = tools.RequestedCall(args[0] if args else kwargs["call"])
        return Inside(tools.with_call(call), partial(_leave_call, self.telemetry, call))

    def _tool(
        self, wrapped: Callable[..., Any], instance: Any, args: _Args, kwargs: _Kwargs
    ) -> Any:
        entered = self._enter_tool(instance, args, kwargs)
        if entered is None:
            return wrapped(*args, **kwargs)
        with entered:
            entered.result = wrapped(*args, **kwargs)
        return entered.result

    async def _atool(
        self, wrapped: Callable[..., Any], instance: Any, args: _Args, kwargs: _Kwargs
    ) -> Any:
        entered = self._enter_tool(instance, args, kwargs)
        if entered is None:
            return await wrapped(*args, **kwargs)
        with entered:
            entered.result = await wrapped(*args, **kwargs)
        return entered.result

    def _enter_tool(self, tool: Any, args: _Args, kwargs: _Kwargs) -> Inside | None:
        with guarded("entering a tool"):
            given = args[0] if args else kwargs.get("tool_input")
            call_id = kwargs.get("tool_call_id")
            scope = tools.begin_tool(self.telemetry, tool, given, call_id)
            if scope is not None:
                return Inside(scope.context, partial(_leave_tool, scope, call_id))
        return None

    # -- models: only so that what runs beneath sees that the call has its span -------------------

    def _model(
        self, wrapped: Callable[..., Any], _instance: Any, args: _Args, kwargs: _Kwargs
    ) -> Any:
        entered = _enter_model()
        if entered is None:
            return wrapped(*args, **kwargs)
        with entered:
            return wrapped(*args, **kwargs)

    async def _amodel(
        self, wrapped: Callable[..., Any], _instance: Any, args: _Args, kwargs: _Kwargs
    ) -> Any:
        entered = _enter_model()
        if entered is None:
            return await wrapped(*args, **kwargs)
        with entered:
            return await wrapped(*args, **kwargs)

    def _model_stream(
        self, wrapped: Callable[..., Any], _instance: Any, args: _Args, kwargs: _Kwargs
    ) -> Any:
        return drive(wrapped(*args, **kwargs), _ModelStream)

    def _amodel_stream(
        self, wrapped: Callable[..., Any], _instance: Any, args: _Args, kwargs: _Kwargs
    ) -> Any:
        return adrive(wrapped(*args, **kwargs), _ModelStream)


class _RecorderSlot:
    """Stands where LangChain expects a `ContextVar`: one that can be emptied in every thread."""

    def __init__(self) -> None:
        self.recorder: ChatRecorder | None = None

    def get(self) -> ChatRecorder | None:
        return self.recorder


class _ModelStream:
    """The context of a streaming model call; its span is the recorder's."""

    def __init__(self) -> None:
        self.context = otel_context.get_current()
        with guarded("entering a model call"):
            self.context = model_calls.enter() or self.context

    def end(self, error: BaseException | None) -> None:
        pass


def _enter_model() -> Inside | None:
    with guarded("entering a model call"):
        context = model_calls.enter()
        if context is not None:
            return Inside(context, lambda _result, _error: None)
    return None


def _leave_node(scope: NodeScope, task: Any, _result: Any, error: BaseException | None) -> None:
    with guarded("leaving a node"):
        nodes.end_node(scope, task, error)


def _leave_call(
    telemetry: Telemetry, call: tools.RequestedCall, result: Any, error: BaseException | None
) -> None:
    with guarded("recording a tool call"):
        tools.end_call(telemetry, call, result, error)


def _leave_tool(
    scope: ToolScope, call_id: str | None, result: Any, error: BaseException | None
) -> None:
    with guarded("leaving a tool"):
        tools.end_tool(scope, call_id, result, error)
