"""Tells which agent a span names, where more than an attribute with its name is needed.

The span store computes its columns from the same tables, so that lists of runs and `Trajectory` name
the same agents.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from mast_trace.trajectory import vocabulary

if TYPE_CHECKING:
    from mast_trace.trajectory.model import SpanRecord

METADATA = ("langsmith.metadata.", "traceloop.association.properties.", "metadata")
"""Places of LangChain's metadata of a step: prefixes of attributes, then one attribute with all as JSON."""
SPACE, NAMED = "langgraph_checkpoint_ns", "lc_agent_name"
"""Metadata with the path of a step through the graphs around it, and with the name of its agent."""
PARTS = ("agent", "model", "tools", "call_model", "call_agent", "__start__", "default")
"""Names that LangGraph gives to the parts of an agent: the agent is the graph around them."""


class AgentTurns(NamedTuple):
    """Spans of one instrumentation that are turns of an agent, though no attribute of all tools says whose.

    Attributes:
        name: pattern of the span's whole name; its group is the agent.
        attribute: where the agent is found by ``pattern`` instead, the last time; if ``name`` has a group,
            that must be among what is found.
        no_agents: names of the framework's own parts.
        kind: of OpenInference, which the span states; empty for any.
    """

    name: str
    attribute: str = ""
    pattern: str = "(.+)"
    no_agents: tuple[str, ...] = ()
    kind: str = ""


KIND = "openinference.span.kind"
TURNS: Mapping[str, AgentTurns] = MappingProxyType(
    {
        "@arizeai/openinference-instrumentation-langchain": AgentTurns(
            "(.+)",
            "output.value",
            r'"AIMessage\w*"\],"kwargs":\{(?:"\w+":"(?:[^"\\]|\\.)*",)*"name":"([^"]*)"',
        ),
        "@mastra/otel": AgentTurns(r"agent\.(.+)"),  # before its release 1.0
        "ai": AgentTurns(r"ai\.(?:generate|stream)(?:Text|Object)", "ai.telemetry.functionId"),
        "com.anthropic.claude_code.tracing": AgentTurns(r"(claude)_code\.interaction"),
        "gcp.vertex.agent": AgentTurns(r"(?:agent_run|invoke_agent) \[?([^\]]+)\]?"),
        "openinference.instrumentation.dspy": AgentTurns(
            r"(\w+)(?:\(.*\))?\.forward",
            no_agents=(
                *("Avatar", "BestOfN", "ChainOfThought", "CodeAct", "KNN", "MultiChainComparison"),
                *("Parallel", "Predict", "ProgramOfThought", "RLM", "ReAct", "ReActV2", "Refine"),
                "Retry",
            ),
            kind="CHAIN",
        ),
        "openinference.instrumentation.llama_index": AgentTurns(
            r".*\.run_agent_step", "input.value", r"current_agent_name='([^']*)'"
        ),
        "openinference.instrumentation.smolagents": AgentTurns(r"(.+)\.run"),
        "pydantic-ai": AgentTurns("agent run", "agent_name"),
    }
)
"""Scope -> the turns that it makes."""


def turn_of(span: SpanRecord) -> str:
    """Return the agent whose turn a span is by `TURNS`; empty where it is none."""
    turns = TURNS.get(span.scope)
    if turns is None or (turns.kind and turns.kind != span.attributes.get(KIND)):
        return ""
    if (named := re.fullmatch(turns.name, span.name)) is None:
        return ""
    found = [named[1]] if named.groups() else []
    if turns.attribute:
        told = re.findall(turns.pattern, str(span.attributes.get(turns.attribute) or ""))
        found = [name for name in told if not found or name in found]
    return "" if not found or found[-1] in turns.no_agents else found[-1]


def graph_of(attributes: Mapping[str, Any]) -> str:
    """Return the agent to whose graph of LangGraph a span belongs; empty where there is none."""
    told = metadata(attributes)
    if named := str(told.get(NAMED) or ""):
        return named
    parts = [part.split(":")[0] for part in str(told.get(SPACE) or "").split("|")]
    inner = [part for part in parts if part and part not in PARTS and not part.isdigit()]
    return inner[-1] if inner else ""


def metadata(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return LangChain's metadata of a step, which each tool stores in a way of its own."""
    *prefixes, whole = METADATA
    loaded = vocabulary.loaded(attributes.get(whole))
    found: dict[str, Any] = dict(loaded) if isinstance(loaded, dict) else {}
    for prefix in reversed(prefixes):
        found.update(
            {
                name.removeprefix(prefix): value
                for name, value in attributes.items()
                if name.startswith(prefix)
            }
        )
    return found
