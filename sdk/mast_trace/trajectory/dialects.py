"""Translations of conventions that a single tool uses, into the attributes of `mast_trace.semconv`.

A renaming belongs in `mast_trace.trajectory.vocabulary`. This module handles peculiarities that are
recognised by a tool's scope: names within the names of spans, wrapped results and arguments, tools
that pass control on. Each tool is a row in `DIALECTS`; the attributes that its function returns
override those of the span.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from mast_trace import semconv
from mast_trace.content import as_text
from mast_trace.messages import Message
from mast_trace.trajectory import vocabulary
from mast_trace.trajectory.sources import messages_in, tool_texts, vercel_answer
from mast_trace.trajectory.span_messages import message_of, objects

if TYPE_CHECKING:
    from mast_trace.trajectory.model import SpanRecord

_KIND = "openinference.span.kind"
_NO_WORK: Mapping[str, Any] = MappingProxyType({semconv.OPERATION_NAME: "CHAIN"})
_NOT_IN_A_NAME = re.compile(r"[^a-zA-Z0-9_]")
_SAID_OF_A_CALL = ("llm.input_messages.", "llm.output_messages.", "llm.token_count.")

_PYDANTIC_AI = MappingProxyType(
    {
        "agent_name": semconv.AGENT_NAME,
        "tool_arguments": semconv.TOOL_CALL_ARGUMENTS,
        "tool_response": semconv.TOOL_CALL_RESULT,
    }
)
_TAG = re.compile(r"\[[A-Z ]+(?:: [^\]\n]*)?\]\n")
_CLAUDE_TOOL = MappingProxyType(
    {"full_command": "command", "file_path": "file_path", "subagent_type": "subagent_type"}
)
"""Attributes of Claude Code's tools that tell their arguments -> the arguments' names."""
_DSPY_EXTRAS = frozenset({"history", "reasoning", "termination_reason", "trajectory"})


def own_words(span: SpanRecord) -> Mapping[str, Any]:
    """Return the attributes that translate a tool's own ones."""
    read = DIALECTS.get(span.scope)
    return read(span) if read else {}


def _openai_agents(span: SpanRecord) -> Mapping[str, Any]:
    attributes = span.attributes
    kind = attributes.get(_KIND)
    if kind == "AGENT" and not vocabulary.read(attributes, "agent"):
        return {
            semconv.OPERATION_NAME: semconv.INVOKE_WORKFLOW,
            semconv.WORKFLOW_NAME: span.name,
        }
    if kind == "TOOL" and "tool.name" not in attributes and span.name.startswith("handoff to "):
        target = span.name.removeprefix("handoff to ")
        # Control has passed to the agent that the span names; the tool has the SDK's own name for
        # that.
        tool = f"transfer_to_{_NOT_IN_A_NAME.sub('_', target).lower()}"
        return {
            semconv.TOOL_NAME: tool,
            semconv.TOOL_CALL_ARGUMENTS: "{}",
            semconv.HANDOFF_TARGET: target,
        }
    return {}


def _smolagents(span: SpanRecord) -> Mapping[str, Any]:
    attributes = span.attributes
    kind = attributes.get(_KIND)
    if kind == "AGENT":
        given = vocabulary.loaded(attributes.get("input.value"))
        task = given.get("task") if isinstance(given, dict) else None
        return {semconv.INPUT_MESSAGES: [{"role": "user", "content": task}]} if task else {}
    answer = attributes.get("output.value")
    if kind == "TOOL" and attributes.get("tool.name") == "final_answer" and answer is not None:
        return _said(span, as_text(answer))
    if kind == "TOOL":
        return _smolagents_arguments(attributes)
    if kind == "LLM":
        return _final_answer(attributes)
    return {}


def _smolagents_arguments(attributes: Mapping[str, Any]) -> Mapping[str, Any]:
    arguments: Any = _keyword_arguments(attributes)
    if arguments is None:  # code calls tools with arguments by their place, too
        given = vocabulary.loaded(attributes.get("input.value"))
        if not isinstance(given, dict):
            return {}
        arguments = {name: given[name] for name in ("args", "kwargs") if given.get(name)}
    return {semconv.TOOL_CALL_ARGUMENTS: as_text(arguments)}


def _said(span: SpanRecord, content: str) -> Mapping[str, Any]:
    return {
        semconv.OPERATION_NAME: semconv.SEND_MESSAGE,
        semconv.MESSAGE_ID: span.span_id,
        semconv.MESSAGE_CONTENT: content,
        semconv.MESSAGE_CONTENT_HASH: Message(content).key,
        semconv.MESSAGE_ROLE: "assistant",
    }


def _final_answer(attributes: Mapping[str, Any]) -> Mapping[str, Any]:
    """A model's answer whose only call is that of the messaging tool."""
    message = "llm.output_messages.0.message."
    call = f"{message}tool_calls.0.tool_call.function."
    others = (f"{message}content", f"{message}tool_calls.1.tool_call.function.name")
    if attributes.get(f"{call}name") != "final_answer" or any(map(attributes.get, others)):
        return {}
    arguments = vocabulary.loaded(attributes.get(f"{call}arguments"))
    if not isinstance(arguments, dict) or set(arguments) != {"answer"}:
        return {}
    answer = as_text(arguments["answer"])
    return {semconv.OUTPUT_MESSAGES: [{"role": "assistant", "content": answer}]}


def _llama_index(span: SpanRecord) -> Mapping[str, Any]:
    attributes = span.attributes
    kind = attributes.get(_KIND)
    is_told = span.name.endswith("complete") or any(
        name.startswith(_SAID_OF_A_CALL) for name in attributes
    )
    if kind == "LLM" and not is_told:
        return _NO_WORK  # prepares the call of a model, or wraps one
    if span.operation == semconv.INVOKE_AGENT:
        return {"output.value": ""}  # an event of the workflow, cut short, not the agent's text
    if kind == "TOOL":
        return _llama_index_tool(attributes)
    return {}


def _llama_index_tool(attributes: Mapping[str, Any]) -> Mapping[str, Any]:
    found: dict[str, Any] = {}
    output = vocabulary.loaded(attributes.get("output.value"))
    if isinstance(output, dict) and "raw_output" in output:
        texts = [as_text(part.get("text", "")) for part in objects(output.get("blocks"))]
        found[semconv.TOOL_CALL_RESULT] = "\n".join(texts) or as_text(output["raw_output"])
        if output.get("is_error"):
            found[semconv.ERROR_TYPE] = "tool_error"
    arguments = _keyword_arguments(attributes)
    if arguments is not None:
        # The run's own context is no argument of the model's.
        given = {k: v for k, v in arguments.items() if not _is_context(v)}
        found[semconv.TOOL_CALL_ARGUMENTS] = as_text(given)
        if attributes.get("tool.name") == "handoff" and "to_agent" in given:
            found[semconv.HANDOFF_TARGET] = as_text(given["to_agent"])
    return found


def _is_context(value: Any) -> bool:
    return isinstance(value, str) and value.startswith("<workflows.context.")


def _keyword_arguments(attributes: Mapping[str, Any]) -> dict[str, Any] | None:
    given = vocabulary.loaded(attributes.get("input.value"))
    if not isinstance(given, dict) or given.get("args"):
        return None
    arguments = given.get("kwargs")
    return arguments if isinstance(arguments, dict) else None


def _agent_framework(span: SpanRecord) -> Mapping[str, Any]:
    if span.operation not in {semconv.CHAT, semconv.INVOKE_AGENT}:
        return {}
    written = objects(vocabulary.loaded(span.attributes.get(semconv.OUTPUT_MESSAGES)))
    if span.operation == semconv.INVOKE_AGENT:
        # The output of a turn that a hand-off ends is its tool's result, which is no text of the
        # agent.
        unsaid = bool(written) and written[-1].get("role") == "tool"
        return {semconv.OUTPUT_MESSAGES: ""} if unsaid else {}
    calls = [call for shape in written for call in message_of(shape).tool_calls]
    # A hand-off ends the turn before a tool would run: only the model's call of the tool is
    # recorded.
    if len(calls) == 1 and calls[0].name.startswith("handoff_to_"):
        return {semconv.HANDOFF_TARGET: calls[0].name.removeprefix("handoff_to_")}
    return {}


def _google_adk(span: SpanRecord) -> Mapping[str, Any]:
    attributes = span.attributes
    if attributes.get(semconv.TOOL_NAME) == "(merged tools)":
        return _NO_WORK  # a summary of calls that were made at once, each of which has a span
    return _handed_over(attributes, "transfer_to_agent")


def _handed_over(attributes: Mapping[str, Any], tool: str) -> Mapping[str, Any]:
    """The target of a hand-off by the tool that takes its name as ``agent_name``."""
    arguments = vocabulary.loaded(vocabulary.read(attributes, "arguments"))
    target = arguments.get("agent_name") if isinstance(arguments, dict) else None
    handed = target and attributes.get(semconv.TOOL_NAME) == tool
    return {semconv.HANDOFF_TARGET: as_text(target)} if handed else {}


def _strands(span: SpanRecord) -> Mapping[str, Any]:
    if span.operation == semconv.EXECUTE_TOOL:
        return _handed_over({**span.attributes, **tool_texts(span.attributes)}, "handoff_to_agent")
    return {}


def _dspy(span: SpanRecord) -> Mapping[str, Any]:
    kind = span.attributes.get(_KIND)
    if kind == "TOOL":
        tool, arguments = span.name.removesuffix(".__call__"), _keyword_arguments(span.attributes)
        result = span.attributes.get("output.value")
        answer = _fields(result) if tool == "submit" else vocabulary.loaded(result)
        return {
            semconv.TOOL_NAME: tool,
            **({} if arguments is None else {semconv.TOOL_CALL_ARGUMENTS: as_text(arguments)}),
            **({semconv.TOOL_CALL_RESULT: answer} if isinstance(answer, str) else {}),
        }
    if span.operation != semconv.INVOKE_AGENT:
        return {}
    given, made = (_fields(span.attributes.get(name)) for name in ("input.value", "output.value"))
    return {
        "output.value": made,
        **({semconv.INPUT_MESSAGES: [{"role": "user", "content": given}]} if given else {}),
    }


def _fields(written: Any) -> str:
    """The text of a module's fields, without what it adds to them on the way."""
    fields = vocabulary.loaded(written)
    if not isinstance(fields, dict):
        return ""
    asked = {name: value for name, value in fields.items() if name not in _DSPY_EXTRAS}
    return as_text(next(iter(asked.values())) if len(asked) == 1 else asked)


def _pydantic_ai(span: SpanRecord) -> Mapping[str, Any]:
    """Releases from 1.0 on wrote names of their own before the standard ones."""
    told = {ours: span.attributes.get(theirs) for theirs, ours in _PYDANTIC_AI.items()}
    return {name: value for name, value in told.items() if value is not None}


def _vercel(span: SpanRecord) -> Mapping[str, Any]:
    attributes = span.attributes
    result = vocabulary.loaded(attributes.get("ai.toolCall.result"))
    if isinstance(result, str):
        return {semconv.TOOL_CALL_RESULT: result}
    return _asked(attributes.get("ai.prompt")) if span.operation == semconv.INVOKE_AGENT else {}


def _mastra(span: SpanRecord) -> Mapping[str, Any]:
    """Texts stand under names of the span's type; the calls of tools on the span around that of a model's call."""
    kind = span.attributes.get("mastra.span.type")
    given, made = (
        vocabulary.loaded(told) or told
        for side in ("input", "output")
        for told in [span.attributes.get(f"mastra.{kind}.{side}", span.attributes.get(side))]
    )
    text = as_text(made.get("text") or "") if isinstance(made, dict) else ""
    if isinstance(made, dict) and (kind == "model_step" or span.operation == semconv.CHAT):
        said = vercel_answer(text, made.get("toolCalls"))
        answer = {semconv.OUTPUT_MESSAGES: [message.to_genai() for message in said]}
        return {semconv.OPERATION_NAME: semconv.CHAT, **_asked(given), **answer}
    if span.operation == semconv.INVOKE_AGENT:
        return {**_asked(given), "output.value": text}
    return {}


def _claude_code(span: SpanRecord) -> Mapping[str, Any]:
    """Texts stand after a line that says what they are, where detailed tracing is on."""
    attributes = span.attributes
    shown, said, given = (
        _TAG.sub("", str(attributes.get(name) or ""))
        for name in ("new_context", "response.model_output", "tool_input")
    )
    if span.operation == semconv.INVOKE_AGENT:
        return _asked(attributes.get("user_prompt"))
    if span.operation == semconv.CHAT:
        told = (("input", "user", shown), ("output", "assistant", said))
        return {
            f"gen_ai.{side}.messages": [Message(text, role=role).to_genai()]
            for side, role, text in told
            if text
        }
    if span.operation != semconv.EXECUTE_TOOL:
        return {}
    known = {ours: attributes[name] for name, ours in _CLAUDE_TOOL.items() if attributes.get(name)}
    arguments = given or (as_text(known) if known else None)
    result = tool_texts(attributes).get(semconv.TOOL_CALL_RESULT) or shown or None
    found = {semconv.TOOL_CALL_ARGUMENTS: arguments, semconv.TOOL_CALL_RESULT: result}
    return {name: value for name, value in found.items() if value is not None}


def _langgraph_js(span: SpanRecord) -> Mapping[str, Any]:
    if span.operation != semconv.INVOKE_AGENT:
        return {}
    # The output is the state of the graph.
    return {**_asked(span.attributes.get("input.value")), "output.value": ""}


def _asked(given: Any) -> Mapping[str, Any]:
    asked = [message.to_genai() for message in messages_in(given, "user")]
    return {semconv.INPUT_MESSAGES: asked}


DIALECTS: Mapping[str, Callable[[SpanRecord], Mapping[str, Any]]] = MappingProxyType(
    {
        "@arizeai/openinference-instrumentation-langchain": _langgraph_js,
        "@mastra/otel": _mastra,
        "@mastra/otel-exporter": _mastra,
        "agent_framework": _agent_framework,
        "ai": _vercel,
        "com.anthropic.claude_code.tracing": _claude_code,
        "gcp.vertex.agent": _google_adk,
        "openinference.instrumentation.dspy": _dspy,
        "openinference.instrumentation.llama_index": _llama_index,
        "openinference.instrumentation.openai_agents": _openai_agents,
        "openinference.instrumentation.smolagents": _smolagents,
        "pydantic-ai": _pydantic_ai,
        "strands.telemetry.tracer": _strands,
    }
)
"""Scope of a span -> function that translates its tool's own attributes."""
