"""Who is an agent in a graph.

LangGraph knows nodes and graphs, no agents. The rule: a graph that is one loop of a model and its
tools is one agent, called as the graph is; every node of any other graph is an agent, called as the
node is, unless the node runs exactly one such loop that has a name of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from collections.abc import Mapping

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
"""Nodes of the prebuilt agents, and what the documentation calls those of hand-made ones."""
_GENERIC_NODES = frozenset({"agent", "model", "llm", "call_model"})


@dataclass(frozen=True)
class GraphShape:
    """What is to be known of a compiled graph.

    Attributes:
        name: of the workflow.
        agent: the agent's name, of a graph that is one agent; empty for a workflow of several.
        named: whether that name was given by the program.
        speakers: the agent that acts in each node of a workflow.
        tool_nodes: nodes that only execute tools.
    """

    name: str
    agent: str
    named: bool
    speakers: dict[str, str]
    tool_nodes: frozenset[str]


_shapes: WeakKeyDictionary[Any, GraphShape] = WeakKeyDictionary()


def shape_of(graph: Any) -> GraphShape:
    """Read the shape of a compiled graph; it is read once."""
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
    return GraphShape(name, agent, bool(own_name), speakers, tool_nodes)


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


def _is_tool_node(bound: Any) -> bool:
    return any(base.__name__ == "ToolNode" for base in type(bound).__mro__)


def _speaker(name: str, node: Any) -> str:
    """The agent behind a node: the one named agent that it runs, else the node itself."""
    graphs = [graph for graph in node.subgraphs or () if hasattr(graph, "nodes")]
    if len(graphs) == 1:
        inner = shape_of(graphs[0])
        if inner.agent and inner.named:
            return inner.agent
    return name
