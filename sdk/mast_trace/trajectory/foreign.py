"""Reads traces that other tools made: OpenInference, OpenLLMetry, OpenLIT, OTel GenAI, AutoGen.

Every span is rewritten into the attributes of `mast_trace.semconv` before `Trajectory` reads it, so
that no other module knows of other vocabularies. Plain renamings are in
`mast_trace.trajectory.vocabulary`, peculiarities of one tool in `mast_trace.trajectory.dialects`;
this module has the translations that depend on values. Spans of our own pass unchanged.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mast_trace import semconv
from mast_trace.content import as_text
from mast_trace.messages import Message
from mast_trace.trajectory import vocabulary
from mast_trace.trajectory.agent_names import PARTS, SPACE, graph_of, metadata, turn_of
from mast_trace.trajectory.copies import is_ours
from mast_trace.trajectory.dialects import own_words
from mast_trace.trajectory.sources import messages_on, tool_texts

if TYPE_CHECKING:
    from mast_trace.trajectory.model import SpanRecord

_NOISE = frozenset({"create_agent", "record_usage"})
_TELEMETRY_SCOPES = ("crewai.telemetry",)
_SHOWN = frozenset({semconv.CHAT, semconv.INVOKE_AGENT, semconv.INVOKE_WORKFLOW})
_CALLS = frozenset({semconv.EXECUTE_TOOL, semconv.CHAT})
_HIDDEN = ("__REDACTED__", "[REDACTED]")
"""Words that OpenInference and Strands put in the place of a text that they were told to hide."""
_SHOWN_MESSAGE = re.compile(
    r"content='(?P<content>.*?)' name='(?:.* status='(?P<status>\w+)'$)?", re.DOTALL
)
_UUID = re.compile(r"_?[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def translate(spans: Sequence[SpanRecord]) -> list[SpanRecord]:
    """Return the spans of a run in our vocabulary, without those that only report set-up."""
    return list(translated(spans))


def translated(spans: Iterable[SpanRecord]) -> Iterator[SpanRecord]:
    """Yield spans as `translate` returns them."""
    for span in spans:
        if is_ours(span):
            yield span
        elif not _is_noise(span):
            yield _translated(span)


def _is_noise(span: SpanRecord) -> bool:
    return (
        span.scope in _TELEMETRY_SCOPES
        or span.name.split(" ")[0] in _NOISE
        or vocabulary.operation(span.attributes) in _NOISE
    )


def _translated(span: SpanRecord) -> SpanRecord:
    told = {name: "" for name, value in span.attributes.items() if value in _HIDDEN}
    told |= _written_otherwise(span)
    if turn := turn_of(span):
        told |= {semconv.OPERATION_NAME: semconv.INVOKE_AGENT, semconv.AGENT_NAME: turn}
    span = dataclasses.replace(span, attributes={**span.attributes, **told})
    attributes = {**span.attributes, **own_words(span)}
    operation = vocabulary.operation(attributes)
    if operation in vocabulary.LOOK_UPS:
        attributes.update(_looked_up(attributes, operation))
        operation = semconv.EXECUTE_TOOL
    if operation:
        attributes[semconv.OPERATION_NAME] = operation
    _name_agent(attributes, operation)
    is_root = not span.parent_span_id.strip("0")
    if operation in _SHOWN or (is_root and operation != semconv.EXECUTE_TOOL):
        call = operation == semconv.CHAT
        # The whole input of a root is what the run was asked.
        attributes.update(_seen(messages_on(attributes, "input", call=call or is_root)))
        if call:
            attributes.update(_produced(messages_on(attributes, "output", call=call)))
    elif operation == semconv.EXECUTE_TOOL:
        for name, told in tool_texts(attributes).items():
            attributes.setdefault(name, told)
        result = _unwrapped(vocabulary.read(attributes, "result"))
        attributes.update(_tool(attributes, result))
        # An error that the framework handled is an error all the same, whatever the span's status.
        if result.get("status") == "error" or attributes.get(semconv.ERROR_TYPE):
            span = dataclasses.replace(span, status="Error")
    elif attributes.get("messaging.operation") == "process":
        attributes.update(_autogen_message(attributes))
    return dataclasses.replace(span, attributes=attributes)


def _written_otherwise(span: SpanRecord) -> dict[str, str]:
    """The whole inputs and outputs that are a text in JSON's quotes, as that text, and the tool that the span's name names."""
    told = span.attributes
    given = ((name, told.get(name)) for name in (*vocabulary.INPUTS, *vocabulary.OUTPUTS))
    quoted = ((name, v) for name, v in given if isinstance(v, str) and v[:1] == '"')
    inner = ((name, vocabulary.loaded(value)) for name, value in quoted)
    found = {name: value for name, value in inner if isinstance(value, str)}
    is_named = vocabulary.NAMED_BY_SPAN in told and not vocabulary.read(told, "tool")
    if is_named and span.operation == semconv.EXECUTE_TOOL:
        found[semconv.TOOL_NAME] = span.name
    return found


def _name_agent(attributes: dict[str, Any], operation: str) -> None:
    if operation not in _CALLS and metadata(attributes).get(SPACE):
        # A part of an agent's graph: its output is a state, not an answer.
        for name in vocabulary.SPELLINGS["output"]:
            attributes.pop(name, None)
    if operation != semconv.INVOKE_WORKFLOW:
        stated = str(vocabulary.read(attributes, "agent") or "")
        agent = graph_of(attributes) or ("" if stated in PARTS else stated)
        attributes.pop(semconv.AGENT_NAME, None)
        attributes.update({semconv.AGENT_NAME: agent} if agent else {})


# -- tools ----------------------------------------------------------------------------------------


def _unwrapped(result: Any) -> dict[str, Any]:
    """The LangChain message in a tool's result, without its wrappings; empty if there is none."""
    inner = vocabulary.loaded(result)
    for wrapping in ("output", "data", "kwargs"):
        if isinstance(inner, dict) and isinstance(inner.get(wrapping), dict):
            inner = inner[wrapping]
    if isinstance(inner, dict) and isinstance(inner.get("content"), str):
        return inner
    shown = _SHOWN_MESSAGE.match(result) if isinstance(result, str) else None
    return shown.groupdict() if shown else {}


def _tool(attributes: Mapping[str, Any], result: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments and result without LangChain's wrappings, and the target of a hand-off."""
    found: dict[str, Any] = {}
    target = metadata(attributes).get("__handoff_destination")
    if target:
        found[semconv.HANDOFF_TARGET] = str(target)
    arguments = vocabulary.loaded(vocabulary.read(attributes, "arguments"))
    if isinstance(arguments, dict) and "input_str" in arguments:
        found[semconv.TOOL_CALL_ARGUMENTS] = as_text(arguments["input_str"])
    if result:
        found[semconv.TOOL_CALL_RESULT] = result["content"]
    return found


def _looked_up(attributes: Mapping[str, Any], operation: str) -> dict[str, Any]:
    """A look-up in a store as the run of a tool of its name."""
    found: dict[str, Any] = {semconv.TOOL_NAME: operation}
    for name, spelt in zip(
        (semconv.TOOL_CALL_ARGUMENTS, semconv.TOOL_CALL_RESULT),
        vocabulary.LOOK_UPS[operation],
        strict=True,
    ):
        value = next((attributes[each] for each in spelt if attributes.get(each)), None)
        if value is not None:
            found[name] = as_text(value)
    return found


# -- messages -------------------------------------------------------------------------------------


def _seen(messages: Sequence[Message]) -> dict[str, Any]:
    if not messages:
        return {}
    return {
        semconv.INPUT_MESSAGE_IDS: [message.key for message in messages],
        semconv.INPUT_MESSAGE_ROLES: [message.role for message in messages],
        semconv.INPUT_LENGTH: sum(len(message.content) for message in messages),
        semconv.INPUT_MESSAGES: [{**m.to_genai(), "id": m.key} for m in messages],
    }


def _produced(messages: Sequence[Message]) -> dict[str, Any]:
    if not messages:
        return {}
    last = messages[-1]
    return {
        semconv.MESSAGE_ID: last.key,
        semconv.MESSAGE_CONTENT_HASH: last.key,
        semconv.OUTPUT_MESSAGES: [{**last.to_genai(), "id": last.key}],
    }


def _autogen_message(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """A text on its way to AutoGen's group chat manager, which sees each exactly once."""
    if "GroupChatManager" not in str(attributes.get("recipient_agent_class", "")):
        return {}
    envelope = vocabulary.loaded(attributes.get("message"))
    said = envelope.get("message") if isinstance(envelope, dict) else None
    if not isinstance(said, dict) or not isinstance(said.get("content"), str):
        return {}
    if str(said.get("type", "")).startswith("Tool"):
        return {}
    sender = _UUID.sub("", str(said.get("source") or attributes.get("sender_agent_type", "")))
    return {
        semconv.OPERATION_NAME: semconv.SEND_MESSAGE,
        semconv.AGENT_NAME: sender,
        semconv.MESSAGE_SENDER: sender,
        semconv.MESSAGE_RECIPIENTS: ["group"],
        semconv.MESSAGE_ID: str(said.get("id", "")),
        semconv.MESSAGE_CONTENT: said["content"],
        semconv.MESSAGE_CONTENT_HASH: Message(said["content"]).key,
        semconv.MESSAGE_ROLE: "user" if sender == "user" else "assistant",
    }
