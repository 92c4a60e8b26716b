"""Answers tool calls at the functions by which frameworks execute tools.

`ROWS` lists these functions, each of which handles the plain value that a tool returns. Hand-offs and
other control flow of a framework are executed: they have no side effects outside the process, and a
recorded text cannot replace the objects that they return.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import wrapt

from mast_trace.manual.blocks import answer_by, signature_of
from mast_trace.replay.player import Blocked, Player
from mast_trace.result_types import exception_of
from mast_trace.spans import current_agent

if TYPE_CHECKING:
    from mast_trace.replay.tape import Execution

_STEERING = {"langgraph", "langgraph_supervisor", "langgraph_swarm", "ag2", "autogen"}
"""Packages with types that steer the framework when a tool returns them, such as `Command`."""

_asked: ContextVar[_Asked | None] = ContextVar("mast_trace_replayed_call", default=None)
_patched: dict[tuple[type, str], Any] = {}
"""Original methods of patched tool classes, by class and name."""


@dataclass(frozen=True)
class ToolRow:
    """A function by which a framework executes tools, and its replacement.

    Attributes:
        module: name of the module that defines the function.
        target: the function's dotted path inside the module.
        answer: the replacement; takes the player, the framework's function, the instance and the
            arguments, and returns a value of the type that the framework's function returns.
    """

    module: str
    target: str
    answer: Callable[[Player, Any, Any, tuple[Any, ...], dict[str, Any]], Any]


class ToolFailed(Exception):  # it replaces an exception of the user's tool
    """The recorded failure of a tool whose exception's type was not recorded; its text is the recorded one."""


def _failure(recorded: Execution) -> Exception:
    """Return the exception of a recorded call that failed."""
    text = recorded.error or ""
    return exception_of(text, recorded.result_type) or ToolFailed(text)


def _recorded(
    player: Player, name: str, arguments: Any, call_id: str | None, function: Any
) -> Execution | None:
    """Return the recorded call; None if the tool is to be executed."""
    if _steers(function):
        player.steer(name, arguments, call_id or "")
        return None
    return player.execution(name, arguments, call_id or "", current_agent() or "")


def _in_turn(player: Player, recorded: Execution | None) -> Execution | None:
    """Return a recorded call when those beside it that ended earlier have been answered."""
    if recorded is not None:
        player.tool_order.wait(recorded)
    return recorded


async def _in_turn_async(player: Player, recorded: Execution | None) -> Execution | None:
    """Return a recorded call likewise, for tasks of asyncio."""
    if recorded is not None:
        await player.tool_order.wait_async(recorded)
    return recorded


def _steers(function: Any) -> bool:
    """Return whether a framework defines a tool's function or its annotated return type."""
    function = inspect.unwrap(function) if callable(function) else function
    of_python = inspect.isfunction(function) or inspect.ismethod(function)
    returned = signature_of(function).return_annotation if of_python else None
    if isinstance(returned, str):
        returned = getattr(function, "__globals__", {}).get(returned)
    modules = (getattr(each, "__module__", None) for each in (function, returned))
    return any(str(module).partition(".")[0] in _STEERING for module in modules)


def _value(execution: Execution) -> Any:
    """Return a tool's recorded result: as text, if its type was not recorded.

    Raises:
        Exception: the recorded call raised one.
    """
    if execution.error is not None:
        raise _failure(execution)
    return execution.value


@dataclass
class _Asked:
    """A call that has not reached the tool's own code yet; several of its methods may pass it on."""

    player: Player
    name: str
    arguments: Any
    call_id: str | None
    pending: bool = True

    def answer(self, function: Any) -> Execution | None:
        """Return the recorded call the first time; None afterwards, or if the code is to run."""
        if not self.pending:
            return None
        self.pending = False
        return _recorded(self.player, self.name, self.arguments, self.call_id, function)


# -- LangChain: `BaseTool.run` validates the input and formats what the tool's own code returns --


def _langchain(player: Player, run: Any, tool: Any, args: Any, kwargs: Any) -> Any:
    token = _asked.set(_langchain_call(player, tool, args, kwargs))
    try:
        return run(*args, **kwargs)
    finally:
        _asked.reset(token)


async def _langchain_async(player: Player, run: Any, tool: Any, args: Any, kwargs: Any) -> Any:
    token = _asked.set(_langchain_call(player, tool, args, kwargs))
    try:
        return await run(*args, **kwargs)
    finally:
        _asked.reset(token)


def _langchain_call(player: Player, tool: Any, args: Any, kwargs: Any) -> _Asked:
    _patch_code(type(tool))
    given = args[0] if args else kwargs.get("tool_input")
    if isinstance(given, dict) and hasattr(tool, "_filter_injected_args"):
        given = tool._filter_injected_args(given)  # noqa: SLF001
    return _Asked(player, str(tool.name), given, kwargs.get("tool_call_id"))


def _patch_code(kind: type) -> None:
    """Patch the methods that hold the code of a class of tools, each once."""
    for owner in kind.__mro__:
        if owner.__name__ == "BaseTool":
            return
        for name, answered in (("_run", _langchain_value), ("_arun", _langchain_value_async)):
            method = vars(owner).get(name)
            if method is not None and (owner, name) not in _patched:
                _patched[owner, name] = method
                setattr(owner, name, wrapt.FunctionWrapper(method, answered))


def put_back() -> None:
    """Restore the methods that were patched when tools were called."""
    while _patched:
        (owner, name), method = _patched.popitem()
        setattr(owner, name, method)


def _langchain_value(run: Any, tool: Any, args: Any, kwargs: Any) -> Any:
    asked = _asked.get()
    if asked is None:
        return run(*args, **kwargs)
    recorded = _in_turn(asked.player, asked.answer(_langchain_code(tool, run)))
    return run(*args, **kwargs) if recorded is None else _langchain_form(tool, recorded)


async def _langchain_value_async(run: Any, tool: Any, args: Any, kwargs: Any) -> Any:
    asked = _asked.get()
    if asked is None:
        return await run(*args, **kwargs)
    recorded = await _in_turn_async(asked.player, asked.answer(_langchain_code(tool, run)))
    return await run(*args, **kwargs) if recorded is None else _langchain_form(tool, recorded)


def _langchain_code(tool: Any, run: Any) -> Any:
    return getattr(tool, "func", None) or getattr(tool, "coroutine", None) or run


def _langchain_form(tool: Any, recorded: Execution) -> Any:
    value = _value(recorded)
    return (value, None) if tool.response_format == "content_and_artifact" else value


# -- AG2 ----------------------------------------------------------------------------------------


async def _ag2(player: Player, call: Any, tool: Any, args: Any, kwargs: Any) -> Any:
    from ag2.events import ToolErrorEvent, ToolResultEvent

    event = args[0] if args else kwargs["event"]
    found = _recorded(player, event.name, event.arguments, event.id, tool.model.call)
    recorded = await _in_turn_async(player, found)
    if recorded is None:
        return await call(*args, **kwargs)
    if recorded.error is not None:
        return ToolErrorEvent.from_call(event, error=_failure(recorded))
    return ToolResultEvent.from_call(event, result=recorded.result)


async def _ag2_whole(player: Player, call: Any, _instance: Any, args: Any, kwargs: Any) -> Any:
    """Execute a call with its middleware, which may answer it before the tool does."""
    event = next((each for each in (*args, *kwargs.values()) if hasattr(each, "arguments")), None)
    done = await call(*args, **kwargs)
    if event is not None:
        player.answered_otherwise(str(event.name), str(event.id or ""))
    return done


# -- AG2 classic --------------------------------------------------------------------------------


def _classic(player: Player, execute: Any, agent: Any, args: Any, kwargs: Any) -> Any:
    recorded = _in_turn(player, _classic_call(player, agent, args, kwargs))
    return execute(*args, **kwargs) if recorded is None else _classic_form(recorded)


async def _classic_async(player: Player, execute: Any, agent: Any, args: Any, kwargs: Any) -> Any:
    recorded = await _in_turn_async(player, _classic_call(player, agent, args, kwargs))
    return await execute(*args, **kwargs) if recorded is None else _classic_form(recorded)


def _classic_call(player: Player, agent: Any, args: Any, kwargs: Any) -> Execution | None:
    asked = args[0] if args else kwargs["func_call"]
    call_id = args[1] if len(args) > 1 else kwargs.get("call_id")
    name = str(asked.get("name") or "")
    function = agent.function_map.get(name)
    if function is None:
        return None
    return _recorded(player, name, asked.get("arguments"), call_id, function)


def _classic_form(recorded: Execution) -> tuple[bool, dict[str, Any]]:
    shape = {"name": recorded.tool, "role": "function", "content": recorded.result}
    return recorded.error is None, shape


# -- CrewAI -------------------------------------------------------------------------------------


def _crewai(player: Player, run: Any, tool: Any, args: Any, kwargs: Any) -> Any:
    if type(tool).__module__.startswith("crewai.tools.agent_tools"):
        return run(*args, **kwargs)  # delegation: the agent's calls are on the tape
    recorded = _in_turn(player, _recorded(player, tool.name, kwargs or list(args), None, None))
    return run(*args, **kwargs) if recorded is None else _value(recorded)


# -- MetaGPT ------------------------------------------------------------------------------------


async def _metagpt(player: Player, run: Any, action: Any, args: Any, kwargs: Any) -> Any:
    given: dict[str, Any] = {"input": args[0], **kwargs} if args else kwargs
    found = _recorded(player, type(action).__name__, given, None, None)
    recorded = await _in_turn_async(player, found)
    if recorded is None:
        return await run(*args, **kwargs)
    return recorded.result, recorded.error is None


ROWS = (
    ToolRow("langchain_core.tools.base", "BaseTool.run", _langchain),
    ToolRow("langchain_core.tools.base", "BaseTool.arun", _langchain_async),
    ToolRow("ag2.tools.final.function_tool", "FunctionTool.__call__", _ag2),
    ToolRow("ag2.tools.executor", "_execute_call", _ag2_whole),
    ToolRow("autogen.agentchat.conversable_agent", "ConversableAgent.execute_function", _classic),
    ToolRow(
        "autogen.agentchat.conversable_agent", "ConversableAgent.a_execute_function", _classic_async
    ),
    ToolRow("crewai.tools.base_tool", "BaseTool.run", _crewai),
    ToolRow("crewai.tools.base_tool", "Tool.run", _crewai),
    ToolRow("metagpt.actions.di.execute_nb_code", "ExecuteNbCode.run", _metagpt),
)


class HandMadeTools:
    """Answers calls of tools that are functions decorated with `mast_trace.tool`."""

    def __init__(self, player: Player) -> None:
        self._player = player

    def start(self) -> None:
        """Start to answer calls."""
        answer_by(self)

    def stop(self) -> None:
        """Stop answering calls."""
        answer_by(None)

    def answered(self, name: str, arguments: Mapping[str, Any], function: Any) -> tuple[Any] | None:
        """Return the recorded value of a call in a tuple; None if the function is to run.

        Raises:
            Blocked: the run has no such call, or the type of its value is unknown.
            Exception: the recorded call raised one.
        """
        recorded = self._player.execution(name, arguments, "", current_agent() or "")
        if recorded is None:
            return None
        self._player.tool_order.wait(recorded)
        return (self._value(recorded, name, function),)

    async def answered_async(
        self, name: str, arguments: Mapping[str, Any], function: Any
    ) -> tuple[Any] | None:
        """Return the recorded value of a call of a coroutine function likewise."""
        recorded = self._player.execution(name, arguments, "", current_agent() or "")
        if recorded is None:
            return None
        await self._player.tool_order.wait_async(recorded)
        return (self._value(recorded, name, function),)

    def _value(self, recorded: Execution, name: str, function: Any) -> Any:
        if recorded.error is not None:
            raise _failure(recorded)
        if recorded.result_type:
            return recorded.value
        return self._untyped(name, recorded.result, function)

    def runs(self, name: str, arguments: Any) -> None:
        """Count a call whose code runs for real, as that of a block."""
        self._player.block(name, arguments)

    def _untyped(self, name: str, text: str, function: Any) -> Any:
        returned = signature_of(function).return_annotation
        if returned in {str, "str"}:
            return text
        try:
            value = json.loads(text)
        except ValueError:
            value = text
        if returned is inspect.Signature.empty and not isinstance(value, str):
            divergence = self._player.refuse(
                f"The record does not say whether {name} returned a string or the value that it "
                "spells in JSON; annotate its return type: `-> str`, `-> float`, ..."
            )
            raise Blocked(divergence.text)
        return value
