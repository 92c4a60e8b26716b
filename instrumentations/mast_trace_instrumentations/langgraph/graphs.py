"""Decides which nodes and graphs are agents.

LangGraph knows nodes and graphs, no agents. The rule: a graph that is one loop of a model and its
tools is one agent, called as the graph is; every node of any other graph is an agent, called as the
node is, unless the node runs exactly one such loop that has a name of its own and calls no model
itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

_UNNAMED = "LangGraph"
"""The name that LangGraph gives to graphs without one."""
_LOOP_NODES = frozenset(
    {
        "agent",
        "model",
        "llm",
        "call_model",
        "chatbot",
        "tools",
        "tool_node",
        "call_tool",
        "call_tools",
        "pre_model_hook",
        "post_model_hook",
        "generate_structured_response",
    }
)
"""Nodes of the prebuilt agents, and the names that the documentation uses in hand-made ones."""
_GENERIC_NODES = frozenset({"agent", "model", "llm", "call_model"})


@dataclass(frozen=True)
class GraphShape:
    """The properties of a compiled graph that recording needs.

    Attributes:
        name: of the workflow.
        agent: the agent's name, of a graph that is one agent; empty for a workflow of several.
        named: whether the program gave that name.
        speakers: the agent that acts in each node of a workflow.
        tool_nodes: nodes that only execute tools.
        fixed: the nodes that each node's plain edges lead to.
        branching: nodes with a conditional edge.
    """

    name: str
    agent: str
    named: bool
    speakers: dict[str, str]
    tool_nodes: frozenset[str]
    fixed: Mapping[str, frozenset[str]]
    branching: frozenset[str]


_shapes: WeakKeyDictionary[Any, GraphShape] = WeakKeyDictionary()


def shape_of(graph: Any) -> GraphShape:
    """Read the properties of a compiled graph, once."""
    shape = _shapes.get(graph)
    if shape is None:
        shape = _shapes[graph] = _read(graph)
    return shape


def _read(graph: Any) -> GraphShape:
    nodes = {name: node for name, node in graph.nodes.items() if not name.startswith("__")}
    tool_nodes = frozenset(name for name, node in nodes.items() if _is_tool_node(node.bound))
    own_name = _own_name(graph)
    acting = [name for name in nodes if name not in tool_nodes]
    agent = ""
    if _is_loop(graph, nodes, tool_nodes):
        agent = own_name or _loop_name(acting)
    speakers = {} if agent else {name: _speaker(name, nodes[name]) for name in acting}
    # The functional API names the one node of its graph, not the graph.
    name = own_name or (next(iter(nodes)) if len(nodes) == 1 else _UNNAMED)
    builder = getattr(graph, "builder", None)
    return GraphShape(
        name,
        agent,
        bool(own_name),
        speakers,
        tool_nodes,
        _fixed_edges(builder),
        frozenset(node for node, each in getattr(builder, "branches", {}).items() if each),
    )


def _fixed_edges(builder: Any) -> Mapping[str, frozenset[str]]:
    """Return the targets of a `StateGraph`'s unconditional edges, joins included."""
    edges = list(getattr(builder, "edges", ()))
    for starts, end in getattr(builder, "waiting_edges", ()):
        edges.extend((start, end) for start in starts)
    found: dict[str, set[str]] = {}
    for start, end in edges:
        found.setdefault(start, set()).add(end)
    return {start: frozenset(ends) for start, ends in found.items()}


def _own_name(graph: Any) -> str:
    name = _metadata(graph).get("lc_agent_name") or graph.name
    return "" if not name or name == _UNNAMED else str(name)


def _metadata(graph: Any) -> Mapping[str, Any]:
    return (getattr(graph, "config", None) or {}).get("metadata") or {}


def _is_loop(graph: Any, nodes: dict[str, Any], tool_nodes: frozenset[str]) -> bool:
    if _metadata(graph).get("ls_integration") == "langchain_create_agent":
        return True
    # create_agent calls the nodes of its middleware "Name.before_model".
    core = {name for name in nodes if "." not in name}
    if tool_nodes and len(core - tool_nodes) == 1:
        return True
    return bool(core) and core <= _LOOP_NODES | tool_nodes


def _loop_name(acting: list[str]) -> str:
    core = [name for name in acting if "." not in name]
    if len(core) == 1 and core[0] not in _GENERIC_NODES:
        return core[0]
    return "agent"


def _asks_a_model(bound: Any) -> bool:
    """Return whether a node is a function whose own code refers to a model."""
    function = getattr(bound, "func", None) or getattr(bound, "afunc", None)
    if function is None:
        return False
    from langchain_core.runnables.utils import get_function_nonlocals  # the program has it imported

    # The closure holds `model.invoke` where the function refers to that.
    referred = get_function_nonlocals(function)
    return any(_is_model(getattr(value, "__self__", value)) for value in referred)


def _is_model(value: Any) -> bool:
    """Return whether ``value`` is a model, also one that is bound to arguments or part of a chain."""
    kinds = {base.__name__ for base in type(value).__mro__}
    if "BaseLanguageModel" in kinds:
        return True
    if "RunnableBindingBase" in kinds:
        return _is_model(value.bound)
    return "RunnableSequence" in kinds and any(map(_is_model, value.steps))


def _is_tool_node(bound: Any) -> bool:
    return any(base.__name__ == "ToolNode" for base in type(bound).__mro__)


def _speaker(name: str, node: Any) -> str:
    """The agent of a node: the one named agent that it runs, else the node itself."""
    graphs = [graph for graph in node.subgraphs or () if hasattr(graph, "nodes")]
    if len(graphs) == 1 and not _asks_a_model(node.bound):
        inner = shape_of(graphs[0])
        if inner.agent and inner.named:
            return inner.agent
    return name
