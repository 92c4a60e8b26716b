"""One table of the spellings under which other tools send what we call by one name.

The span store computes its typed columns from this table and `Trajectory` reads spans through it,
so a vendor's attribute is mapped in one place. Within a row the first name that is present wins.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from mast_trace import semconv
from mast_trace.untrusted_json import read_json

if TYPE_CHECKING:
    from collections.abc import Mapping

SPELLINGS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "operation": (semconv.OPERATION_NAME, "openinference.span.kind", "traceloop.span.kind"),
        "agent": (semconv.AGENT_NAME, "crewai.agent.role", "graph.node.id", "agent.name"),
        "agent_id": (semconv.AGENT_ID,),
        "tool": (semconv.TOOL_NAME, "tool.name"),
        "tool_call_id": (semconv.TOOL_CALL_ID, "tool_call.id"),
        "arguments": (
            semconv.TOOL_CALL_ARGUMENTS,
            "tool_call.function.arguments",
            "input.value",
            "traceloop.entity.input",
        ),
        "result": (semconv.TOOL_CALL_RESULT, "output.value", "traceloop.entity.output"),
        "model": (
            semconv.RESPONSE_MODEL,
            semconv.REQUEST_MODEL,
            "llm.model_name",
        ),
        "input_tokens": (
            semconv.INPUT_TOKENS,
            "llm.token_count.prompt",
            "gen_ai.usage.prompt_tokens",
        ),
        "output_tokens": (
            semconv.OUTPUT_TOKENS,
            "llm.token_count.completion",
            "gen_ai.usage.completion_tokens",
        ),
        "conversation": (semconv.CONVERSATION_ID, "session.id"),
        "framework": (semconv.FRAMEWORK,),
        "sender": (semconv.MESSAGE_SENDER,),
        "recipients": (semconv.MESSAGE_RECIPIENTS,),
    }
)
"""Field name -> attribute names, ours first."""

OPERATIONS: Mapping[str, str] = MappingProxyType(
    {
        "LLM": semconv.CHAT,
        "TOOL": semconv.EXECUTE_TOOL,
        "AGENT": semconv.INVOKE_AGENT,
        "agent": semconv.INVOKE_AGENT,
        "tool": semconv.EXECUTE_TOOL,
        "workflow": semconv.INVOKE_WORKFLOW,
        "text_completion": semconv.CHAT,
        "generate_content": semconv.CHAT,
    }
)
"""A foreign value of the operation -> ours; a value that is not here stays as it is."""


def read(attributes: Mapping[str, Any], field: str) -> Any:
    """Return the first attribute that spells ``field``, or None."""
    for name in SPELLINGS[field]:
        value = attributes.get(name)
        if value is not None and value != "":
            return value
    return None


def operation(attributes: Mapping[str, Any]) -> str:
    """Return the span's operation in our words; empty where it has none."""
    value = read(attributes, "operation")
    return OPERATIONS.get(value, value) if isinstance(value, str) else ""


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
