"""The names that are written never change: stored traces, dashboards and other tools read them."""

from __future__ import annotations

import re
from importlib.resources import files

from opentelemetry.semconv._incubating.attributes import gen_ai_attributes

from mast_trace import semconv

SCHEMA = files("mast_trace_collector") / "storage" / "schema"
# A new name is added here; one that was released is never changed, since traces are stored with it.
NAMES = {
    "INVOKE_WORKFLOW": "invoke_workflow",
    "INVOKE_AGENT": "invoke_agent",
    "SEND_MESSAGE": "send_message",
    "EXECUTE_TOOL": "execute_tool",
    "CHAT": "chat",
    "RECORD_OUTCOME": "record_outcome",
    "ERROR_TYPE": "error.type",
    "SERVICE_NAME": "service.name",
    "OPERATION_NAME": "gen_ai.operation.name",
    "WORKFLOW_NAME": "gen_ai.workflow.name",
    "CONVERSATION_ID": "gen_ai.conversation.id",
    "AGENT_ID": "gen_ai.agent.id",
    "AGENT_NAME": "gen_ai.agent.name",
    "AGENT_DESCRIPTION": "gen_ai.agent.description",
    "HANDOFF_SOURCE": "gen_ai.agent.handoff.source.name",
    "HANDOFF_TARGET": "gen_ai.agent.handoff.target.name",
    "TOOL_NAME": "gen_ai.tool.name",
    "TOOL_TYPE": "gen_ai.tool.type",
    "TOOL_DESCRIPTION": "gen_ai.tool.description",
    "TOOL_CALL_ID": "gen_ai.tool.call.id",
    "TOOL_CALL_ARGUMENTS": "gen_ai.tool.call.arguments",
    "TOOL_CALL_RESULT": "gen_ai.tool.call.result",
    "PROVIDER_NAME": "gen_ai.provider.name",
    "REQUEST_MODEL": "gen_ai.request.model",
    "RESPONSE_MODEL": "gen_ai.response.model",
    "RESPONSE_ID": "gen_ai.response.id",
    "FINISH_REASONS": "gen_ai.response.finish_reasons",
    "INPUT_TOKENS": "gen_ai.usage.input_tokens",
    "OUTPUT_TOKENS": "gen_ai.usage.output_tokens",
    "CACHED_INPUT_TOKENS": "gen_ai.usage.cache_read.input_tokens",
    "INPUT_MESSAGES": "gen_ai.input.messages",
    "OUTPUT_MESSAGES": "gen_ai.output.messages",
    "FRAMEWORK": "mast.framework",
    "FRAMEWORK_VERSION": "mast.framework.version",
    "TURN": "mast.turn",
    "MESSAGE_ID": "mast.message.id",
    "MESSAGE_IN_REPLY_TO": "mast.message.in_reply_to",
    "MESSAGE_SENDER": "mast.message.sender",
    "MESSAGE_RECIPIENTS": "mast.message.recipients",
    "MESSAGE_ROLE": "mast.message.role",
    "MESSAGE_CONTENT": "mast.message.content",
    "MESSAGE_CONTENT_HASH": "mast.message.content_hash",
    "MESSAGE_TOOL_CALLS": "mast.message.tool_calls",
    "MESSAGE_PERFORMATIVE": "mast.message.performative",
    "MESSAGE_SYNTHETIC": "mast.message.synthetic",
    "INPUT_MESSAGE_IDS": "mast.input.message_ids",
    "INPUT_MESSAGE_ROLES": "mast.input.message_roles",
    "INPUT_LENGTH": "mast.input.length",
    "SELECTED_BY": "mast.next_speaker.selected_by",
    "SELECTED_SPEAKER": "mast.next_speaker.name",
    "TOOL_REQUESTED_BY": "mast.tool.requested_by",
    "RESOURCE_ID": "mast.resource.id",
    "RESOURCE_ACCESS": "mast.resource.access",
    "RESOURCE_VERSION": "mast.resource.version",
    "PLAN_OPEN_ITEMS": "mast.plan.open_items",
    "FAILED_ATTEMPTS": "mast.failed_attempts",
    "RUN_KIND": "mast.run.kind",
    "RUN_OUTCOME": "mast.run.outcome",
    "RUN_OUTCOME_REASON": "mast.run.outcome_reason",
    "RUN_TERMINATION_REASON": "mast.run.termination_reason",
    "CONTENT_TRUNCATED": "mast.content.truncated",
    "PROJECT": "mast.project",
}
TERMINATIONS = {
    "COMPLETED": "completed",
    "MAX_TURNS": "max_turns",
    "RECURSION_LIMIT": "recursion_limit",
    "INTERRUPTED": "interrupted",
    "CANCELLED": "cancelled",
    "ERROR": "error",
    "TERMINATE_MESSAGE": "terminate_message",
    "NO_SPEAKER": "no_speaker",
    "USER_ENDED": "user_ended",
    "BUDGET": "budget",
}


def constants(owner: object) -> dict[str, str]:
    return {name: value for name, value in vars(owner).items() if name.isupper()}


def test_every_name_is_as_it_was_released() -> None:
    assert constants(semconv) == NAMES


def test_every_reason_to_stop_is_as_it_was_released() -> None:
    assert constants(semconv.Termination) == TERMINATIONS


def test_names_of_the_conventions_are_those_of_their_package() -> None:
    """Hand-offs have none in it yet."""
    published = {value for value in constants(gen_ai_attributes).values() if isinstance(value, str)}
    ours = {name for name in NAMES.values() if name.startswith("gen_ai.")}
    assert {name for name in ours - published if ".handoff." not in name} == set()
    assert len(ours) > 20


def test_the_tables_read_names_that_are_written() -> None:
    """Of ours; the tables know other tools' spellings, too."""
    texts = "".join(path.read_text("utf-8") for path in SCHEMA.iterdir())
    read = set(re.findall(r"'(mast\.[a-z_.]+)'", texts))
    assert len(read) > 5
    assert read <= set(NAMES.values())
