"""What LangGraph is doing at the moment: which graph, node or tool runs, inside of which other.

Scopes travel in the OpenTelemetry context, so that a node in a worker thread, a sub-graph in a node
and an agent in a tool each find what they belong to.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

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
    """What is remembered of one run while it lasts."""

    asked: dict[str, tuple[str, Any]] = field(default_factory=dict)
    """Tool calls by id: the agent that asked, and the arguments as the model gave them."""
    _read: dict[int, tuple[Any, Any, Message]] = field(default_factory=dict)
    _said: set[str] = field(default_factory=set)
    _said_objects: dict[int, Any] = field(default_factory=dict)

    def read(self, raw: Any) -> Message:
        """Read one of LangChain's messages; once, for histories are shown again and again."""
        known = self._read.get(id(raw))
        if known is not None and known[1] is raw.content:
            return known[2]
        message = read(raw)
        # The object is kept, so that its id() stays its own.
        self._read[id(raw)] = (raw, raw.content, message)
        return message

    def say(self, raw: Any) -> bool:
        """Note that ``raw`` has been said; False if it had been before.

        A message without an id gets one in place, later, by the reducer: so it is known by itself
        as well as by its id.
        """
        before = id(raw) in self._said_objects or raw.id in self._said
        self._said_objects[id(raw)] = raw
        if raw.id:
            self._said.add(raw.id)
        return not before

    def ask(self, message: Message, agent: str) -> None:
        """Note the tool calls that ``message`` asks for."""
        for call in message.tool_calls:
            if call.id:
                self.asked.setdefault(call.id, (agent, call.arguments))


@dataclass(eq=False)
class Said:
    """A message whose recipients are not known yet: the routing comes after the words."""

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
    """The turn of that agent, where no node's span stands for it."""
    shown: Any = None
    """The input of its first node, history included: what the agent saw."""
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
    pending: list[Said] = field(default_factory=list)
    """What agents inside said, for the recipients that this node leads to."""
    relayed: set[str] = field(default_factory=set)
    """Keys of what functions called by this node returned to it."""
    failures: int = 0
    """Attempts that failed with an error that the node's retry policy covers."""
    stands_for_graph: bool = False
    """Whether its span is the turn of the agent that a sub-graph of it is."""
    handed_off: bool = False

    @property
    def memory(self) -> Memory:
        """What is remembered of the run."""
        return self.graph.memory

    @property
    def telemetry(self) -> Telemetry:
        """Where the spans of the run are made."""
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
    pending: list[Said] = field(default_factory=list)


Scope = GraphScope | NodeScope | ToolScope


def current_scope(context: Context | None = None) -> Scope | None:
    """Return the innermost scope of ``context`` (default: the current one)."""
    value = otel_context.get_value(_SCOPE, context)
    return value if isinstance(value, GraphScope | NodeScope | ToolScope) else None


def with_scope(scope: Scope, context: Context) -> Context:
    """Return ``context`` with ``scope`` in it."""
    return otel_context.set_value(_SCOPE, scope, context)


def memory_of(context: Context | None = None) -> Memory:
    """Return the memory of the run, a blank one outside of graphs."""
    scope = current_scope(context)
    return scope.memory if scope is not None else Memory()


def is_control_flow(error: BaseException | None) -> bool:
    """Whether LangGraph raised it to steer (a hand-off, an interrupt), not because of a failure."""
    if error is None:
        return False
    return any(base.__name__ == "GraphBubbleUp" for base in type(error).__mro__)
