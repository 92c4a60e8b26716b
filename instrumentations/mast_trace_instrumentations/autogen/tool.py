"""Tool calls and code executions of agents: one span each."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from opentelemetry import context as otel_context

from mast_trace import semconv
from mast_trace.content import as_text
from mast_trace.spans import Call, Telemetry, ToolSpan, in_span
from mast_trace_instrumentations.autogen.reading import name_of
from mast_trace_instrumentations.autogen.run import current_chat

CODE_TOOL = "execute_code"
"""The name under which code execution appears among the tools."""


def begin_tool(
    telemetry: Telemetry, agent: Any, function: Mapping[str, Any], call_id: str | None
) -> Call:
    """Begin the execution of a tool."""
    chat = current_chat()
    requester = chat.requested.get(call_id or "") if chat else None
    span = telemetry.tool(
        str(function.get("name") or ""),
        parent=otel_context.get_current(),
        arguments=function.get("arguments"),
        call_id=call_id,
        agent=name_of(agent),
        requested_by=requester if requester != name_of(agent) else None,
    )
    return in_span(span, partial(_executed, span, requester or name_of(agent)))


def begin_code(telemetry: Telemetry, blocks: Any) -> Call:
    """Begin the execution of blocks of code."""
    span = telemetry.tool(
        CODE_TOOL,
        parent=otel_context.get_current(),
        arguments=[_block(block) for block in blocks],
    )
    return in_span(span, partial(_ran, span))


def _executed(span: ToolSpan, requester: str, outcome: Any) -> None:
    succeeded, returned = outcome
    content = returned.get("content")
    text = _text(content)
    span.result(text)
    _hand_over(span, requester, content)
    if not succeeded:
        # AutoGen keeps only the text of the exception.
        span.fail(text.removeprefix("Error: "))
        span.set({semconv.ERROR_TYPE: _kind(text, str(returned.get("name")))})


def _text(content: Any) -> str:
    """Return a result as agents are shown it: objects of AutoGen have a text form of their own."""
    return str(content) if hasattr(content, "model_dump") else as_text(content)


def _hand_over(span: ToolSpan, source: str, content: Any) -> None:
    """Record the hand-off that a tool's result asks for."""
    target = _target(content)
    if not target:
        return
    span.set({semconv.HANDOFF_SOURCE: source, semconv.HANDOFF_TARGET: target})
    chat = current_chat(span.context)
    if chat is not None:
        chat.handed_over = True


def _target(content: Any) -> str:
    """Return the name of the agent to whom a tool's result hands over; empty if there is none."""
    named = getattr(getattr(content, "target", content), "display_name", None)
    if callable(named):
        return str(named())
    # The result of a swarm's tool, before 0.11: the agent itself, or an object that names it.
    agent = getattr(content, "agent", None) if hasattr(content, "values") else content
    if callable(getattr(agent, "generate_reply", None)):
        return name_of(agent)
    return agent if isinstance(agent, str) and agent is not content else ""


def _kind(text: str, name: str) -> str | None:
    if text == f"Error: Function {name} not found.":
        return "FunctionNotFound"
    if text.endswith("The argument must be in JSON format."):
        return "JSONDecodeError"
    return None


def _block(block: Any) -> dict[str, str]:
    """Return a block of code as language and code, from the current or the older form."""
    if isinstance(block, tuple | list):
        return {"language": str(block[0]), "code": str(block[1])}
    return {"language": str(block.language), "code": str(block.code)}


def _ran(span: ToolSpan, result: Any) -> None:
    code, output = (
        (result[0], result[1]) if isinstance(result, tuple) else (result.exit_code, result.output)
    )
    span.result(str(output))
    if code:
        span.fail(f"exit code {code}")
