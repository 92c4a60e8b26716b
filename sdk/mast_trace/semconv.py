"""The attribute and span names that mast-trace writes.

OpenTelemetry GenAI semantic conventions wherever they exist (development version of the
`semantic-conventions-genai` repository; no package publishes them as constants), ``mast.*`` for
what they lack: messages between agents, who selected the next speaker, the outcome of a run.
"""

from typing import Final

# --- operations: the value of gen_ai.operation.name, and the first word of the span's name -------
INVOKE_WORKFLOW: Final = "invoke_workflow"
INVOKE_AGENT: Final = "invoke_agent"
SEND_MESSAGE: Final = "send_message"  # ours: no convention for agent-to-agent messages exists yet
EXECUTE_TOOL: Final = "execute_tool"
CHAT: Final = "chat"
RECORD_OUTCOME: Final = "record_outcome"  # ours: says how a run turned out, after its root ended

# --- OpenTelemetry -------------------------------------------------------------------------------
ERROR_TYPE: Final = "error.type"
SERVICE_NAME: Final = "service.name"

OPERATION_NAME: Final = "gen_ai.operation.name"
WORKFLOW_NAME: Final = "gen_ai.workflow.name"
CONVERSATION_ID: Final = "gen_ai.conversation.id"

AGENT_ID: Final = "gen_ai.agent.id"
AGENT_NAME: Final = "gen_ai.agent.name"
AGENT_DESCRIPTION: Final = "gen_ai.agent.description"
HANDOFF_SOURCE: Final = "gen_ai.agent.handoff.source.name"
HANDOFF_TARGET: Final = "gen_ai.agent.handoff.target.name"

TOOL_NAME: Final = "gen_ai.tool.name"
TOOL_TYPE: Final = "gen_ai.tool.type"
TOOL_DESCRIPTION: Final = "gen_ai.tool.description"
TOOL_CALL_ID: Final = "gen_ai.tool.call.id"
TOOL_CALL_ARGUMENTS: Final = "gen_ai.tool.call.arguments"
TOOL_CALL_RESULT: Final = "gen_ai.tool.call.result"

PROVIDER_NAME: Final = "gen_ai.provider.name"
REQUEST_MODEL: Final = "gen_ai.request.model"
RESPONSE_MODEL: Final = "gen_ai.response.model"
RESPONSE_ID: Final = "gen_ai.response.id"
FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
CACHED_INPUT_TOKENS: Final = "gen_ai.usage.cache_read.input_tokens"
INPUT_MESSAGES: Final = "gen_ai.input.messages"
OUTPUT_MESSAGES: Final = "gen_ai.output.messages"

# --- mast: what has no convention ----------------------------------------------------------------
FRAMEWORK: Final = "mast.framework"
FRAMEWORK_VERSION: Final = "mast.framework.version"
TURN: Final = "mast.turn"

MESSAGE_ID: Final = "mast.message.id"
MESSAGE_IN_REPLY_TO: Final = "mast.message.in_reply_to"
MESSAGE_SENDER: Final = "mast.message.sender"
MESSAGE_RECIPIENTS: Final = "mast.message.recipients"
MESSAGE_ROLE: Final = "mast.message.role"
MESSAGE_CONTENT: Final = "mast.message.content"
MESSAGE_CONTENT_HASH: Final = "mast.message.content_hash"
MESSAGE_TOOL_CALLS: Final = "mast.message.tool_calls"
MESSAGE_PERFORMATIVE: Final = "mast.message.performative"
MESSAGE_SYNTHETIC: Final = "mast.message.synthetic"
"""True on a text that the framework wrote in an agent's name ("Transferring back to ...")."""

INPUT_MESSAGE_IDS: Final = "mast.input.message_ids"
"""Ids of the messages that an agent or a model saw, in order (string[])."""
INPUT_MESSAGE_ROLES: Final = "mast.input.message_roles"
"""The role under which each of them was shown, parallel to `INPUT_MESSAGE_IDS` (string[])."""
INPUT_LENGTH: Final = "mast.input.length"
"""Characters of all messages that were shown together: the length of the context (int)."""

SELECTED_BY: Final = "mast.next_speaker.selected_by"
"""Who chose the next speaker: ``agent``, ``model``, ``code`` or ``user``."""
SELECTED_SPEAKER: Final = "mast.next_speaker.name"
TOOL_REQUESTED_BY: Final = "mast.tool.requested_by"
"""The agent that asked for a tool call, where another one executes it."""

RESOURCE_ID: Final = "mast.resource.id"
RESOURCE_ACCESS: Final = "mast.resource.access"
RESOURCE_VERSION: Final = "mast.resource.version"
PLAN_OPEN_ITEMS: Final = "mast.plan.open_items"
"""Items of the framework's own plan that were still open when the span ended (string[])."""

FAILED_ATTEMPTS: Final = "mast.failed_attempts"
"""How often the framework tried in vain before the attempt that the span ends with, or gave up."""

RUN_KIND: Final = "mast.run.kind"
"""Span or resource attribute: what kind of run it is; absent for a program's own."""
RUN_OUTCOME: Final = "mast.run.outcome"
"""``success`` or ``failure``; absent when nobody said."""
RUN_OUTCOME_REASON: Final = "mast.run.outcome_reason"
RUN_TERMINATION_REASON: Final = "mast.run.termination_reason"
"""Why the framework stopped; see `Termination` for the values that rules read."""

CONTENT_TRUNCATED: Final = "mast.content.truncated"
"""Names of the attributes of this span whose text was cut (string[])."""
PROJECT: Final = "mast.project"
"""Resource attribute: the project that a bearer key maps to; set by the collector."""


class Termination:
    """Values of `RUN_TERMINATION_REASON`; frameworks may report others, which rules ignore."""

    COMPLETED: Final = "completed"
    MAX_TURNS: Final = "max_turns"
    RECURSION_LIMIT: Final = "recursion_limit"
    INTERRUPTED: Final = "interrupted"
    CANCELLED: Final = "cancelled"
    ERROR: Final = "error"
    TERMINATE_MESSAGE: Final = "terminate_message"
    NO_SPEAKER: Final = "no_speaker"
    USER_ENDED: Final = "user_ended"
    BUDGET: Final = "budget"
