"""The names that are written never change: stored traces, dashboards and other tools read them."""

from __future__ import annotations

import json
import os
import re
from importlib.resources import files
from pathlib import Path

from mast_trace import semconv
from mast_trace.trajectory import vocabulary

SCHEMA = files("mast_trace_collector") / "storage" / "schema"
# A new name is added here. One that was released changes only with the conventions, and stays read.
NAMES = {
    "SCHEMA_URL": "https://opentelemetry.io/schemas/gen-ai/0.1.0",
    "INVOKE_WORKFLOW": "invoke_workflow",
    "INVOKE_AGENT": "invoke_agent",
    "SEND_MESSAGE": "send_message",
    "EXECUTE_TOOL": "execute_tool",
    "CHAT": "chat",
    "RECORD_OUTCOME": "record_outcome",
    "RUN_START": "mast.run.start",
    "EVENT_NAME": "event.name",
    "ERROR_TYPE": "error.type",
    "SERVICE_NAME": "service.name",
    "OPERATION_NAME": "gen_ai.operation.name",
    "WORKFLOW_NAME": "gen_ai.agent.name",
    "CONVERSATION_ID": "gen_ai.conversation.id",
    "AGENT_ID": "mast.agent.id",
    "AGENT_NAME": "gen_ai.agent.name",
    "AGENT_DESCRIPTION": "gen_ai.agent.description",
    "HANDOFF_SOURCE": "mast.handoff.source.name",
    "HANDOFF_TARGET": "mast.handoff.target.name",
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
    "CACHE_WRITE_INPUT_TOKENS": "gen_ai.usage.cache_write.input_tokens",
    "INPUT_MESSAGES": "gen_ai.input.messages",
    "OUTPUT_MESSAGES": "gen_ai.output.messages",
    "MCP_METHOD_NAME": "mcp.method.name",
    "MCP_PROTOCOL_VERSION": "mcp.protocol.version",
    "COST_USD": "mast.usage.cost_usd",
    "MCP_SERVER_NAME": "mast.mcp.server.name",
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
    "REQUEST_PARAMETERS": "mast.request.parameters",
    "RESPONSE_EXTRA": "mast.response.extra",
    "INPUT_LENGTH": "mast.input.length",
    "SELECTED_BY": "mast.next_speaker.selected_by",
    "SELECTED_SPEAKER": "mast.next_speaker.name",
    "TOOL_RESULT_TYPE": "mast.tool.result_type",
    "TOOL_REQUESTED_BY": "mast.tool.requested_by",
    "RESOURCE_ID": "mast.resource.id",
    "RESOURCE_ACCESS": "mast.resource.access",
    "RESOURCE_VERSION": "mast.resource.version",
    "PLAN_OPEN_ITEMS": "mast.plan.open_items",
    "BRANCH": "mast.branch",
    "BRANCH_PATH": "mast.branch.path",
    "FAILED_ATTEMPTS": "mast.failed_attempts",
    "RUN_KIND": "mast.run.kind",
    "CALL_KIND": "call",
    "CALLS_MISSING": "mast.run.calls_missing",
    "HUMAN_INPUTS": "mast.human.inputs",
    "HUMAN_INPUT_SPANS": "mast.human.input_spans",
    "RUN_RESUMES": "mast.run.resumes",
    "RANDOM_SEED": "mast.python.seed",
    "HASH_SEED": "mast.python.hash_seed",
    "RUN_OUTCOME": "mast.run.outcome",
    "RUN_OUTCOME_REASON": "mast.run.outcome_reason",
    "RUN_EXPECTED": "mast.run.expected",
    "RUN_TERMINATION_REASON": "mast.run.termination_reason",
    "FEEDBACK_ID": "mast.feedback.id",
    "FEEDBACK_TEXTS": "mast.feedback.texts",
    "FEEDBACK_VERSION": "mast.feedback.version",
    "EXPERIMENT_NAME": "mast.experiment.name",
    "EXPERIMENT_ARM": "mast.experiment.arm",
    "EXPERIMENT_TASK": "mast.experiment.task",
    "EXPERIMENT_REPETITION": "mast.experiment.repetition",
    "EXPERIMENT_DESIGN": "mast.experiment.design",
    "REPLAY_SERVED": "mast.replay.served",
    "CONTENT_TRUNCATED": "mast.content.truncated",
    "CONTENT_REDACTED": "mast.content.redacted",
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
    "TIME_LIMIT": "time_limit",
}


def constants(owner: object) -> dict[str, str]:
    return {name: value for name, value in vars(owner).items() if name.isupper()}


def test_every_name_is_as_it_was_released() -> None:
    assert constants(semconv) == NAMES
    assert constants(semconv.Termination) == TERMINATIONS


PUBLISHED = json.loads(Path(__file__).with_name("published_attributes.json").read_text("utf-8"))
TABLE = Path(__file__).parents[2] / "docs" / "reference" / "attributes.md"


def written() -> set[str]:
    """Every attribute that is written; a name without a dot is an operation's."""
    named = constants(semconv).values()
    return {name for name in named if "." in name and not name.startswith("https:")}


def test_names_of_the_conventions_are_published() -> None:
    """Nothing of ours stands under a name that the conventions may give another meaning."""
    others = {name for name in written() if not name.startswith("mast.")}
    assert others <= {*PUBLISHED["attributes"], *PUBLISHED["core"]}
    assert len(others) > 20
    assert PUBLISHED["version"].removeprefix("v") in semconv.SCHEMA_URL


def spelt_otherwise(name: str) -> str:
    """Spellings that are read as the same attribute."""
    rows = [row for row in vocabulary.SPELLINGS.values() if name in row]
    return ", ".join(f"`{other}`" for row in rows for other in row if other != name)


def row(name: str) -> str:
    return f"| `{name}` | {spelt_otherwise(name)} |\n"


def test_the_table_has_every_attribute() -> None:
    """Written anew with MAST_TRACE_WRITE_GOLDEN=1, below the first line of the table."""
    text = TABLE.read_text("utf-8")
    head, mark, _ = text.partition("|---|---|\n")
    whole = head + mark + "".join(map(row, sorted(written())))
    if os.environ.get("MAST_TRACE_WRITE_GOLDEN"):
        TABLE.write_text(whole, "utf-8")
    assert TABLE.read_text("utf-8") == whole


def test_the_tables_read_names_that_are_written() -> None:
    """Names of ours; the tables know other tools' spellings, too."""
    texts = "".join(path.read_text("utf-8") for path in SCHEMA.iterdir())
    read = set(re.findall(r"'(mast\.[a-z_.]+)'", texts))
    assert len(read) > 5
    assert read <= set(NAMES.values())
