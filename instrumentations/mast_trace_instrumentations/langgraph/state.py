"""Scopes of LangGraph's work: the graph, node or tool in progress, and the one around it.

Scopes travel in the OpenTelemetry context, so that a node in a worker thread, a sub-graph in a node
and an agent in a tool each find the scope around them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from opentelemetry import context as otel_context

from mast_trace_instrumentations.langgraph.reading import read

if TYPE_CHECKING:
    from opentelemetry.context import Context

    from mast_trace.messages import Message
    from mast_trace.spans import AgentSpan, RunSpan, Telemetry, ToolSpan
    from mast_trace_instrumentations.langgraph.graphs import GraphShape

_SCOPE = "mast-trace-langgraph"


@dataclass(eq=False)
class Memory:
    """State of one run while it lasts."""

    asked: dict[str, tuple[str, Any]] = field(default_factory=dict)
    """Tool calls by id: the agent that asked, and the arguments as the model gave them."""
    _read: dict[int, tuple[Any, Any, Message]] = field(default_factory=dict)
    _sent: set[str] = field(default_factory=set)
    _sent_objects: dict[int, Any] = field(default_factory=dict)

    def read(self, raw: Any) -> Message:
        """Read one of LangChain's messages; cached, because histories are shown again and again."""
        known = self._read.get(id(raw))
        if known is not None and known[1] is raw.content:
            message = known[2]
            if message.id is None and raw.id:  # a reducer has given it an id
                message = self.keep(raw, message.with_id(raw.id))
            return message
        return self.keep(raw, read(raw))

    def read_all(self, raws: Iterable[Any]) -> list[Message]:
        """As `read`, for a history: what is known of it costs no call."""
        known = self._read
        found: list[Message] = []
        for raw in raws:
            held = known.get(id(raw))
            if held is not None and held[2].id and held[1] is raw.content:
                found.append(held[2])
            else:
                found.append(self.read(raw))
        return found

    def keep(self, raw: Any, message: Message) -> Message:
        """Note that one of LangChain's messages reads as ``message``."""
        # A reference is kept, so that its id() is not reused.
        self._read[id(raw)] = (raw, raw.content, message)
        return message

    def say(self, raw: Any) -> bool:
        """Note that ``raw`` has been sent; False if it had been before.

        The reducer later gives an id to a message without one, in place. Therefore the object is
        remembered as well as its id.
        """
        before = id(raw) in self._sent_objects or raw.id in self._sent
        self._sent_objects[id(raw)] = raw
        if raw.id:
            self._sent.add(raw.id)
        return not before

    def ask(self, message: Message, agent: str) -> None:
        """Note the tool calls that ``message`` asks for."""
        for call in message.tool_calls:
            if call.id:
                self.asked.setdefault(call.id, (agent, call.arguments))


@dataclass(eq=False)
class PendingMessage:
    """A message whose recipients are not known yet: the routing follows the message."""

    message: Message
    sender: str
    context: Context
    at: int
    synthetic: bool = False
    in_reply_to: str | None = None


@dataclass(eq=False)
class GraphScope:
    """One execution of a graph."""

    telemetry: Telemetry
    shape: GraphShape
    memory: Memory
    context: Context
    outer: NodeScope | ToolScope | None = None
    agent: str = ""
    """The agent that the graph is; empty for a workflow."""
    run: RunSpan | None = None
    span: AgentSpan | None = None
    """The turn of that agent, where no node's span represents it."""
    shown: Any = None
    """The input of its first node, history included: the agent's input."""
    replies_to: str | None = None
    """Id of the last message that the agent saw."""
    last: Message | None = None
    interrupted: bool = False
    out_of_steps: bool = False


@dataclass(eq=False)
class NodeScope:
    """One execution of a node, retries included."""

    graph: GraphScope
    agent: str
    context: Context
    span: AgentSpan | None = None
    caller: NodeScope | None = None
    """The node that called this one as a function, in the functional API."""
    shown: Any = None
    replies_to: str | None = None
    pending: list[PendingMessage] = field(default_factory=list)
    """Messages of agents inside, for the recipients that this node leads to."""
    relayed: set[str] = field(default_factory=set)
    """Keys of the results that functions called by this node returned to it."""
    failures: int = 0
    """Number of attempts that failed with an error covered by the node's retry policy."""
    stands_for_graph: bool = False
    """True if its span is the turn of an agent that is a sub-graph of the node."""
    handed_off: bool = False
    """True if a tool of the agent's model gave control away."""
    command: Any = None
    """The `Command` by which a graph inside went to a node of this node's graph."""
    named: set[str] = field(default_factory=set)
    """Texts in the structured outputs of models that were called in this step."""

    @property
    def memory(self) -> Memory:
        """The state of the run."""
        return self.graph.memory

    @property
    def telemetry(self) -> Telemetry:
        """The telemetry that makes the spans of the run."""
        return self.graph.telemetry


@dataclass(eq=False)
class ToolScope:
    """One execution of a tool."""

    telemetry: Telemetry
    span: ToolSpan
    agent: str
    memory: Memory
    context: Context
    outer: Scope | None = None
    pending: list[PendingMessage] = field(default_factory=list)


Scope = GraphScope | NodeScope | ToolScope


def current_scope(context: Context | None = None) -> Scope | None:
    """Return the innermost scope of ``context`` (default: the current one)."""
    # Asked at each step of each thread: a union for isinstance() would be made anew each time.
    around = context if context is not None else otel_context.get_current()
    return cast("Scope | None", around.get(_SCOPE))


def with_scope(scope: Scope, context: Context) -> Context:
    """Return ``context`` with ``scope`` in it."""
    return otel_context.set_value(_SCOPE, scope, context)


def memory_of(context: Context | None = None) -> Memory:
    """Return the memory of the run; a blank one outside of graphs."""
    scope = current_scope(context)
    return scope.memory if scope is not None else Memory()


def is_control_flow(error: BaseException | None) -> bool:
    """Return whether LangGraph raised the exception for control flow (a hand-off, an interrupt)."""
    if error is None:
        return False
    return any(base.__name__ == "GraphBubbleUp" for base in type(error).__mro__)
