"""Reads traces that other tools made: OpenInference, OpenLLMetry, OpenLIT, OTel GenAI, AutoGen.

Every span is rewritten into the attributes of `mast_trace.semconv` before `Trajectory` reads it, so
that no other module knows of other vocabularies. Plain renamings are in
`mast_trace.trajectory.vocabulary`, peculiarities of one tool in `mast_trace.trajectory.dialects`;
this module has the translations that depend on values. Spans of our own pass unchanged.
"""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING, Any

from mast_trace import semconv
from mast_trace.content import as_text
from mast_trace.messages import Message, ToolCall
from mast_trace.trajectory import vocabulary
from mast_trace.trajectory.copies import is_ours
from mast_trace.trajectory.dialects import own_words
from mast_trace.trajectory.span_messages import call_of, each_answer, message_of, objects, word

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from mast_trace.trajectory.model import SpanRecord

_NOISE = frozenset({"create_agent", "record_usage"})
_TELEMETRY_SCOPES = ("crewai.telemetry",)
# Names that LangGraph gives to the parts of an agent: the agent is the graph around them.
_PARTS = frozenset({"agent", "model", "tools", "call_model", "call_agent", "__start__", "default"})
_CALLS = frozenset({semconv.EXECUTE_TOOL, semconv.CHAT})
_METADATA = ("metadata", "traceloop.association.properties.", "langsmith.metadata.")
_SHOWN_MESSAGE = re.compile(
    r"content='(?P<content>.*?)' name='(?:.* status='(?P<status>\w+)'$)?", re.DOTALL
)
_NUMBER = re.compile(r"[0-9]{1,9}")
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
    attributes = {**span.attributes, **own_words(span)}
    operation = vocabulary.operation(attributes)
    if operation in vocabulary.LOOK_UPS:
        attributes.update(_looked_up(attributes, operation))
        operation = semconv.EXECUTE_TOOL
    if operation:
        attributes[semconv.OPERATION_NAME] = operation
    _name_agent(attributes, operation)
    if operation in {semconv.CHAT, semconv.INVOKE_AGENT}:
        attributes.update(_seen(_messages(attributes, "input")))
        if operation == semconv.CHAT:
            attributes.update(_produced(_messages(attributes, "output")))
    elif operation == semconv.EXECUTE_TOOL:
        result = _unwrapped(vocabulary.read(attributes, "result"))
        attributes.update(_tool(attributes, result))
        # An error that the framework handled is an error all the same, whatever the span's status.
        if result.get("status") == "error" or attributes.get(semconv.ERROR_TYPE):
            span = dataclasses.replace(span, status="Error")
    elif attributes.get("messaging.operation") == "process":
        attributes.update(_autogen_message(attributes))
    return dataclasses.replace(span, attributes=attributes)


def _name_agent(attributes: dict[str, Any], operation: str) -> None:
    if operation not in _CALLS and _metadata(attributes).get("langgraph_checkpoint_ns"):
        # A part of an agent's graph: its output is a state, not an answer.
        for name in vocabulary.SPELLINGS["output"]:
            attributes.pop(name, None)
    if operation != semconv.INVOKE_WORKFLOW:
        agent = _agent(attributes)
        attributes.pop(semconv.AGENT_NAME, None)
        attributes.update({semconv.AGENT_NAME: agent} if agent else {})


# -- agents ---------------------------------------------------------------------------------------


def _agent(attributes: Mapping[str, Any]) -> str:
    """The agent that a span names, or the agent to whose graph it belongs."""
    metadata = _metadata(attributes)
    named = str(metadata.get("lc_agent_name") or "")
    if named:
        return named
    space = str(metadata.get("langgraph_checkpoint_ns") or "")
    parts = [part.split(":")[0] for part in space.split("|")]
    inner = [part for part in parts if part and part not in _PARTS and not part.isdigit()]
    if inner:
        return inner[-1]
    stated = str(vocabulary.read(attributes, "agent") or "")
    return "" if stated in _PARTS else stated


def _metadata(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """LangChain's metadata of a step, which each tool stores in a way of its own."""
    found: dict[str, Any] = {}
    whole = attributes.get("metadata")
    if isinstance(whole, str):
        loaded = vocabulary.loaded(whole)
        found.update(loaded if isinstance(loaded, dict) else {})
    for prefix in _METADATA[1:]:
        found.update(
            {
                name.removeprefix(prefix): value
                for name, value in attributes.items()
                if name.startswith(prefix)
            }
        )
    return found


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
    target = _metadata(attributes).get("__handoff_destination")
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


def _messages(attributes: Mapping[str, Any], side: str) -> list[Message]:
    """The messages on one side of a model call, in any of the known shapes."""
    system = [
        Message(as_text(vocabulary.loaded(value)), role="system")
        for value in [attributes.get("gen_ai.system_instructions")]
        if value and side == "input"
    ]
    standard = vocabulary.loaded(attributes.get(f"gen_ai.{side}.messages"))
    if isinstance(standard, list) and standard:
        messages = [message_of(part) for shape in objects(standard) for part in each_answer(shape)]
        # Some tools write the system prompt in both places.
        told = {message.content for message in messages if message.role == "system"}
        first = [message for message in _system_texts(system) if message.content not in told]
        return [*first, *messages]
    # Tools that count an empty system prompt leave the first index out.
    if numbered := _numbered(attributes, f"llm.{side}_messages.", "message."):
        return numbered
    old = "gen_ai.prompt." if side == "input" else "gen_ai.completion."
    return _numbered(attributes, old, "")


def _system_texts(system: Iterable[Message]) -> list[Message]:
    texts: list[Message] = []
    for message in system:
        parts = vocabulary.loaded(message.content)
        if isinstance(parts, list):
            text = "\n".join(str(p.get("content", "")) for p in parts if isinstance(p, dict))
            texts.append(Message(text, role="system"))
        else:
            texts.append(message)
    return texts


def _numbered(attributes: Mapping[str, Any], prefix: str, inner: str) -> list[Message]:
    """Messages spread over attributes: PREFIX 0 . INNER role, ... tool_calls.0. ..."""
    fields: dict[int, dict[str, Any]] = {}
    for name, value in attributes.items():
        if not name.startswith(prefix):
            continue
        number, _, rest = name[len(prefix) :].partition(".")
        if _NUMBER.fullmatch(number):
            fields.setdefault(int(number), {})[rest.removeprefix(inner)] = value
    return [
        Message(
            as_text(shape.get("content", "")) or _numbered_text(shape),
            role=vocabulary.role(word(shape.get("role"))),
            name=word(shape.get("name")),
            tool_calls=_numbered_calls(shape),
            tool_call_id=word(shape.get("tool_call_id")),
        )
        for _, shape in sorted(fields.items())
    ]


def _numbered_text(shape: Mapping[str, Any]) -> str:
    """The text of a message whose parts are spread as well: contents. 0 .message_content.text."""
    parts = {
        int(number): as_text(value)
        for name, value in shape.items()
        for head, number, rest in [_split(name)]
        if head == "contents" and rest == "message_content.text" and _NUMBER.fullmatch(number)
    }
    return "\n".join(text for _, text in sorted(parts.items()) if text)


def _split(name: str) -> tuple[str, str, str]:
    head, _, rest = name.partition(".")
    number, _, rest = rest.partition(".")
    return head, number, rest


def _numbered_calls(shape: Mapping[str, Any]) -> tuple[ToolCall, ...]:
    calls: dict[int, dict[str, Any]] = {}
    for name, value in shape.items():
        if name.startswith("tool_calls."):
            number, _, rest = name.removeprefix("tool_calls.").partition(".")
            if _NUMBER.fullmatch(number):
                calls.setdefault(int(number), {})[rest.rsplit(".", 1)[-1]] = value
    return tuple(call_of(call, call.get("id")) for _, call in sorted(calls.items()))


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
