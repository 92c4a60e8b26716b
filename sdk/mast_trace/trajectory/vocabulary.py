"""The table of spellings that other tools use for the attributes of `mast_trace.semconv`.

The span store computes its typed columns from this table and `Trajectory` reads spans through it,
so a vendor's attribute is mapped in one place. Within a row the first name that is present wins.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from mast_trace import semconv
from mast_trace.untrusted_json import read_json

_RECORDS = ("gen_ai.memory.records",)
INPUTS = (
    "input.value",
    "traceloop.entity.input",
    "langfuse.observation.input",
    "mlflow.spanInputs",
)
"""Attributes with the whole input of a span, of whatever kind the span is."""
OUTPUTS = (
    "output.value",
    "traceloop.entity.output",
    "langfuse.observation.output",
    "mlflow.spanOutputs",
)
"""Likewise with the whole output."""

SPELLINGS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "operation": (
            semconv.OPERATION_NAME,
            "openinference.span.kind",
            "traceloop.span.kind",
            "llm.request.type",
            "langfuse.observation.type",
            "mlflow.spanType",
            "ai.operationId",
        ),
        "agent": (
            semconv.AGENT_NAME,
            "crewai.agent.role",
            "agent.name",
            "agent_name",
            "graph.node.name",
            "graph.node.id",
            "ai.telemetry.functionId",
            "agent_id",
        ),
        "agent_id": (semconv.AGENT_ID, "gen_ai.agent.id"),
        "workflow": ("gen_ai.workflow.name",),
        "handoff_target": (
            semconv.HANDOFF_TARGET,
            "gen_ai.agent.handoff.target.name",
            "gen_ai.transfer.target.name",
        ),
        "tool": (semconv.TOOL_NAME, "tool.name", "ai.toolCall.name"),
        "tool_call_id": (semconv.TOOL_CALL_ID, "tool_call.id", "ai.toolCall.id"),
        "arguments": (
            semconv.TOOL_CALL_ARGUMENTS,
            "tool_call.function.arguments",
            "gcp.vertex.agent.tool_call_args",
            "ai.toolCall.args",
            "tool_arguments",
            "gen_ai.tool.input",
            *INPUTS,
        ),
        "result": (
            semconv.TOOL_CALL_RESULT,
            "gcp.vertex.agent.tool_response",
            "ai.toolCall.result",
            "tool_response",
            "tool.output",
            "gen_ai.tool.output",
            *OUTPUTS,
        ),
        "output": (
            *OUTPUTS[:2],
            "gen_ai.completion.0.content",
            *OUTPUTS[2:],
            "final_result",
            "agent.output",
            "agent.response",
            "output",
            "response",
        ),
        "model": (
            semconv.RESPONSE_MODEL,
            semconv.REQUEST_MODEL,
            "llm.model_name",
            "llm.request.model",
            "langfuse.observation.model.name",
            "ai.model.id",
        ),
        "input_tokens": (
            semconv.INPUT_TOKENS,
            "llm.token_count.prompt",
            "gen_ai.usage.prompt_tokens",
            "llm.usage.prompt_tokens",
            "ai.usage.promptTokens",
        ),
        "output_tokens": (
            semconv.OUTPUT_TOKENS,
            "llm.token_count.completion",
            "gen_ai.usage.completion_tokens",
            "llm.usage.completion_tokens",
            "ai.usage.completionTokens",
        ),
        "cache_read_tokens": (
            semconv.CACHED_INPUT_TOKENS,
            "gen_ai.usage.cache_read_input_tokens",
            "llm.token_count.prompt_details.cache_read",
        ),
        "cache_write_tokens": (
            semconv.CACHE_WRITE_INPUT_TOKENS,
            "gen_ai.usage.cache_creation.input_tokens",
            "gen_ai.usage.cache_creation_input_tokens",
            "llm.token_count.prompt_details.cache_write",
        ),
        "conversation": (semconv.CONVERSATION_ID, "session.id"),
        "framework": (semconv.FRAMEWORK,),
        "sender": (semconv.MESSAGE_SENDER,),
        "recipients": (semconv.MESSAGE_RECIPIENTS,),
    }
)
"""Field name -> attribute names, ours first."""

KIND, ENTITY = "traceloop.span.kind", "traceloop.entity.name"
ENTITIES = ("agent", "tool")
"""Fields that OpenLLMetry spells `ENTITY` on spans whose `KIND` has the field's name; other kinds name other things so."""

OPERATIONS: Mapping[str, str] = MappingProxyType(
    {
        "LLM": semconv.CHAT,
        "TOOL": semconv.EXECUTE_TOOL,
        "AGENT": semconv.INVOKE_AGENT,
        "agent": semconv.INVOKE_AGENT,
        "tool": semconv.EXECUTE_TOOL,
        "workflow": semconv.INVOKE_WORKFLOW,
        "invoke_swarm": semconv.INVOKE_WORKFLOW,
        "invoke_graph": semconv.INVOKE_WORKFLOW,
        "text_completion": semconv.CHAT,
        "generate_content": semconv.CHAT,
        "completion": semconv.CHAT,
        "generation": semconv.CHAT,
        '"LLM"': semconv.CHAT,
        '"CHAT_MODEL"': semconv.CHAT,
        '"TOOL"': semconv.EXECUTE_TOOL,
        '"AGENT"': semconv.INVOKE_AGENT,
        "ai.generateText.doGenerate": semconv.CHAT,
        "ai.streamText.doStream": semconv.CHAT,
        "ai.generateObject.doGenerate": semconv.CHAT,
        "ai.streamObject.doStream": semconv.CHAT,
        "ai.toolCall": semconv.EXECUTE_TOOL,
        # Mastra's exporter before its release 1.0.
        "agent.run": semconv.INVOKE_AGENT,
        "workflow.run": semconv.INVOKE_WORKFLOW,
        "tool.execute": semconv.EXECUTE_TOOL,
        "tool_selection": semconv.CHAT,
    }
)
"""Foreign value of the operation -> ours; a value without an entry stays as it is."""

NAMED_BY_SPAN = "mlflow.spanType"
"""Attribute of an emitter that names a tool nowhere but in the name of its span."""

MARKS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (semconv.EXECUTE_TOOL, SPELLINGS["tool"]),
    (
        semconv.CHAT,
        (
            *SPELLINGS["input_tokens"],
            *SPELLINGS["output_tokens"],
            *("gen_ai.input.messages", "gen_ai.output.messages"),
            *("gen_ai.prompt.0.content", "gen_ai.completion.0.content"),
            *("gcp.vertex.agent.llm_request", "gcp.vertex.agent.llm_response"),
        ),
    ),
)
"""Operation -> attributes any of which marks it on a span that states none; a call of a model names a model too."""

MCP_CALL = "tools/call"
"""The method of the Model Context Protocol that calls a tool."""

LOOK_UPS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = MappingProxyType(
    {
        "retrieval": (("gen_ai.retrieval.query.text",), ("gen_ai.retrieval.documents",)),
        "search_memory": (("gen_ai.memory.query.text",), _RECORDS),
        **{
            f"{what}_memory": (("gen_ai.memory.record.id", *_RECORDS), _RECORDS)
            for what in ("create", "update", "upsert", "delete")
        },
    }
)
"""Operations on a store of documents or of memories -> attributes with their arguments and results."""

ROLES: Mapping[str, str] = MappingProxyType(
    {
        "tool-call": "assistant",
        "tool-response": "tool",
        "function": "tool",
        "ai": "assistant",
        "model": "assistant",
        "human": "user",
        "developer": "system",
    }
)
"""Foreign role of a message -> ours; a role without an entry stays as it is."""


def role(name: str | None) -> str:
    """Return a message's role in our vocabulary; without one it is an assistant's."""
    return ROLES.get(name, name) if name else "assistant"


def read(attributes: Mapping[str, Any], field: str) -> Any:
    """Return the first attribute that spells ``field``, or None."""
    for name in SPELLINGS[field]:
        value = attributes.get(name)
        if value is not None and value != "":
            return value
    return attributes.get(ENTITY) if field in ENTITIES and attributes.get(KIND) == field else None


def operation(attributes: Mapping[str, Any]) -> str:
    """Return the span's operation in our vocabulary; empty where it has none.

    A span that states none is what its attributes mark; see `MARKS`.
    """
    value = read(attributes, "operation")
    if value is not None:
        return OPERATIONS.get(value, value) if isinstance(value, str) else ""
    for marked, names in MARKS:
        if any(attributes.get(name) not in (None, "") for name in names):
            if marked == semconv.EXECUTE_TOOL:
                return (
                    marked if attributes.get(semconv.MCP_METHOD_NAME, MCP_CALL) == MCP_CALL else ""
                )
            return marked if read(attributes, "model") is not None else ""
    return ""


def agent(attributes: Mapping[str, Any]) -> str:
    """Return the agent that a span names; empty where it names none, or a workflow."""
    if operation(attributes) == semconv.INVOKE_WORKFLOW:
        return ""
    return str(read(attributes, "agent") or "")


def workflow(attributes: Mapping[str, Any]) -> str:
    """Return the workflow that a span names; empty where it names none."""
    named = read(attributes, "workflow")
    if named is None and operation(attributes) == semconv.INVOKE_WORKFLOW:
        named = attributes.get(semconv.WORKFLOW_NAME)
    return str(named or "")


def text(attributes: Mapping[str, Any], name: str) -> str:
    """Return an attribute as text; empty where it is absent."""
    value = attributes.get(name)
    return "" if value is None else str(value)


def loaded(value: Any) -> Any:
    """Read JSON text; None where it is none, or is cut."""
    if not isinstance(value, str):
        return value
    try:
        return read_json(value)
    except ValueError:
        return None


def strings(value: Any) -> tuple[str, ...]:
    """Read a string array, which stores without arrays keep as JSON text."""
    if value is None or value == "":
        return ()
    items = loaded(value)
    if isinstance(items, list | tuple):
        return tuple(str(item) for item in items)
    return (str(value),)


def integer(value: Any) -> int | None:
    """Read a whole number, which stores without types keep as text; None if it is none."""
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        return None
