"""Rewrites peculiarities of peers that the shared reader ignores into attributes that it reads.

Nobody sends AgentOps's spans to a collector, and OpenInference's spans of AG2 hold messages where
no other vocabulary has them; both are rewritten here, so that nothing they record goes uncounted.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mast_trace import semconv

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mast_trace.trajectory import SpanRecord

_AGENTOPS_KINDS = {"llm": semconv.CHAT, "tool": semconv.EXECUTE_TOOL, "agent": semconv.INVOKE_AGENT}


def plain(spans: Sequence[SpanRecord]) -> list[SpanRecord]:
    """Return the spans with a peer's peculiarities translated into the convention."""
    asked = [
        replace(span, span_id=f"{span.span_id}-asked", attributes=dict(_task(span.attributes)))
        for span in spans
        if "crewai.task.agent" in span.attributes and _is_agentops(span)
    ]
    return [*map(_plain, spans), *asked]


def _is_agentops(span: SpanRecord) -> bool:
    return span.attributes.get("telemetry.sdk.name") == "agentops"


def _plain(span: SpanRecord) -> SpanRecord:
    if _is_agentops(span):
        return replace(span, attributes={**span.attributes, **dict(_agentops(span))})
    if span.scope == "openinference.instrumentation.ag2" and span.name.endswith(".generate_reply"):
        return replace(span, attributes={**span.attributes, **dict(_reply(span.attributes))})
    return span


def _agentops(span: SpanRecord) -> Iterable[tuple[str, Any]]:
    attributes = span.attributes
    agent = attributes.get("agent.name") or attributes.get("crewai.agent.role")
    if agent:
        yield semconv.AGENT_NAME, agent
    kind = str(attributes.get("agentops.span.kind") or "")
    if kind in _AGENTOPS_KINDS:
        yield semconv.OPERATION_NAME, _AGENTOPS_KINDS[kind]
    if span.name.endswith(".receive"):
        yield from _message(
            str(attributes.get("agent.sender")), attributes.get("agentops.entity.input") or ""
        )
    if "crewai.task.agent" in attributes:
        yield from _message(attributes["crewai.task.agent"], attributes["agentops.entity.output"])
    if kind == "tool":
        yield semconv.TOOL_NAME, attributes["gen_ai.request.tools.0.name"]
        yield semconv.TOOL_CALL_ARGUMENTS, _unquoted(attributes["gen_ai.request.tools.0.arguments"])
    if "to_agent" in attributes and "handoff" in span.name:
        yield semconv.HANDOFF_SOURCE, attributes["from_agent"]
        yield semconv.HANDOFF_TARGET, attributes["to_agent"]


def _task(attributes: Any) -> Iterable[tuple[str, Any]]:
    """The task that a user gave a crew, which AgentOps keeps on the span that also has the answer."""
    yield from _message("user", attributes["agentops.entity.input"])
    yield semconv.MESSAGE_ROLE, "user"


def _reply(attributes: Any) -> Iterable[tuple[str, Any]]:
    """The reply of an agent, which is its message unless it relays or executes tools."""
    reply = attributes.get("output.value") or ""
    if reply.startswith("{"):
        shape = json.loads(reply)
        if shape.get("role") == "tool":
            return
        reply = shape.get("content") or ""
    if reply and attributes["agent.name"] != "chat_manager":
        yield from _message(attributes["agent.name"], reply)


def _message(sender: str, text: str) -> Iterable[tuple[str, Any]]:
    yield semconv.OPERATION_NAME, semconv.SEND_MESSAGE
    yield semconv.AGENT_NAME, sender
    yield semconv.MESSAGE_SENDER, sender
    yield semconv.MESSAGE_CONTENT, text


def _unquoted(arguments: str) -> str:
    """Arguments that were rendered as JSON twice."""
    inner = json.loads(arguments)
    return inner if isinstance(inner, str) else arguments
