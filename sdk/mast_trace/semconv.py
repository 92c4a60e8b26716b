"""The attribute and span names that mast-trace writes.

OpenTelemetry's GenAI semantic conventions wherever they exist (v0.1.0 of the repository
`semantic-conventions-genai`; no package publishes them as constants), ``mast.*`` for what they lack:
messages between agents, who selected the next speaker, hand-offs, the outcome of a run. Names of
earlier conventions are read: see `mast_trace.trajectory.vocabulary`.
"""

from typing import Final

SCHEMA_URL: Final = "https://opentelemetry.io/schemas/gen-ai/0.1.0"
"""Schema URL of the conventions, set on every instrumentation scope of mast-trace."""

# --- operations: the value of gen_ai.operation.name, and the first word of the span's name -------
INVOKE_WORKFLOW: Final = "invoke_workflow"
INVOKE_AGENT: Final = "invoke_agent"
SEND_MESSAGE: Final = "send_message"  # ours: no convention for agent-to-agent messages exists yet
EXECUTE_TOOL: Final = "execute_tool"
CHAT: Final = "chat"
RECORD_OUTCOME: Final = "record_outcome"  # ours: records a run's outcome after its root ended

# --- events: the name of a log record ------------------------------------------------------------
RUN_START: Final = "mast.run.start"
"""Event of a run's beginning, named like OpenTelemetry's ``session.start``. The log record has the
ids of the run's root span, which ends with the run, the span's start as its time, the span's name
as its body, and the attributes that the span has at its beginning: `WORKFLOW_NAME`,
`CONVERSATION_ID`, `FRAMEWORK`, `INPUT_MESSAGES` ...
"""
EVENT_NAME: Final = "event.name"
"""Attribute of a log record that names its event, for OTLP versions without a field for it."""

# --- OpenTelemetry -------------------------------------------------------------------------------
ERROR_TYPE: Final = "error.type"
SERVICE_NAME: Final = "service.name"

OPERATION_NAME: Final = "gen_ai.operation.name"
CONVERSATION_ID: Final = "gen_ai.conversation.id"

AGENT_NAME: Final = "gen_ai.agent.name"
WORKFLOW_NAME: Final = "gen_ai.agent.name"
"""The same attribute as `AGENT_NAME`; on an `INVOKE_WORKFLOW` span it names the workflow."""
AGENT_DESCRIPTION: Final = "gen_ai.agent.description"

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
CACHE_WRITE_INPUT_TOKENS: Final = "gen_ai.usage.cache_write.input_tokens"
INPUT_MESSAGES: Final = "gen_ai.input.messages"
OUTPUT_MESSAGES: Final = "gen_ai.output.messages"

MCP_METHOD_NAME: Final = "mcp.method.name"
MCP_PROTOCOL_VERSION: Final = "mcp.protocol.version"

# --- mast: attributes without a convention -------------------------------------------------------
FRAMEWORK: Final = "mast.framework"
FRAMEWORK_VERSION: Final = "mast.framework.version"
TURN: Final = "mast.turn"
AGENT_ID: Final = "mast.agent.id"
"""The framework's own id of an agent; the convention's is for agents that a provider hosts."""
HANDOFF_SOURCE: Final = "mast.handoff.source.name"
HANDOFF_TARGET: Final = "mast.handoff.target.name"

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
"""Role under which each of these messages was shown, parallel to `INPUT_MESSAGE_IDS` (string[])."""
REQUEST_PARAMETERS: Final = "mast.request.parameters"
"""Parameters of a model request as ``name=value``, texts and structures as a hash (string[])."""
RESPONSE_EXTRA: Final = "mast.response.extra"
"""Parts of a model's answer beside its text and its tool calls, such as reasoning, citations and a refusal, as
JSON (see `mast_trace_instrumentations.model_calls.call`)."""
INPUT_LENGTH: Final = "mast.input.length"
"""Characters of all messages that were shown together: the length of the context (int)."""

SELECTED_BY: Final = "mast.next_speaker.selected_by"
"""Chooser of the next speaker: ``agent``, ``model``, ``code`` or ``user``."""
SELECTED_SPEAKER: Final = "mast.next_speaker.name"
TOOL_RESULT_TYPE: Final = "mast.tool.result_type"
"""Type of a result that the program itself receives: JSON's name for it, or ``opaque`` and a class. An
exception's is ``raises``, its class, and the builtin ones that it derives from; ``opaque block`` tells code in a
``with`` block, which a replay executes.
"""
TOOL_REQUESTED_BY: Final = "mast.tool.requested_by"
"""The agent that asked for a tool call, where another one executes it."""

RESOURCE_ID: Final = "mast.resource.id"
RESOURCE_ACCESS: Final = "mast.resource.access"
RESOURCE_VERSION: Final = "mast.resource.version"
PLAN_OPEN_ITEMS: Final = "mast.plan.open_items"
"""Items of the framework's own plan that were still open when the span ended (string[])."""

BRANCH: Final = "mast.branch"
"""Number of a branch among those that a framework runs at the same time; absent elsewhere (int)."""
BRANCH_PATH: Final = "mast.branch.path"
"""Path of the parallel branch, on spans that are made of an exported run, which lacks the spans around."""

FAILED_ATTEMPTS: Final = "mast.failed_attempts"
"""Number of failed attempts before the one that the span ends with, or before giving up (int)."""

COST_USD: Final = "mast.usage.cost_usd"
"""Cost of a model call in US dollars, as computed by the client that made it (float)."""
MCP_SERVER_NAME: Final = "mast.mcp.server.name"
"""Name of an MCP server, as the server gives it when the session begins."""

RUN_KIND: Final = "mast.run.kind"
"""Span or resource attribute: the kind of run; absent for a program's own."""
CALL_KIND: Final = "call"
"""Kind of a run that is a single model call outside of any run."""
CALLS_MISSING: Final = "mast.run.calls_missing"
"""On a root: a thread that the run had started called a model without belonging to the run (bool)."""
HUMAN_INPUTS: Final = "mast.human.inputs"
"""Texts that a person typed for a run, in order, on its root (string[])."""
HUMAN_INPUT_SPANS: Final = "mast.human.input_spans"
"""For each of these texts the id of the span of the tool that asked for it, else an empty text
(string[]); absent if no tool asked.
"""
RUN_RESUMES: Final = "mast.run.resumes"
"""Trace id of the interrupted run that a run of the same process continues."""
RANDOM_SEED: Final = "mast.python.seed"
"""Number by which `mast_trace.seed` has seeded `random`, on a run's root, as text."""
HASH_SEED: Final = "mast.python.hash_seed"
"""Value of ``PYTHONHASHSEED`` on a run's root, as text; absent where it fixes no order."""
RUN_OUTCOME: Final = "mast.run.outcome"
"""Outcome: ``success`` or ``failure``; absent when none was recorded."""
RUN_OUTCOME_REASON: Final = "mast.run.outcome_reason"
RUN_EXPECTED: Final = "mast.run.expected"
"""The answer that the program had expected of the run, beside its outcome."""
RUN_TERMINATION_REASON: Final = "mast.run.termination_reason"
"""Reason why the framework stopped; `Termination` has the values that rules read."""

FEEDBACK_ID: Final = "mast.feedback.id"
"""Id of the lessons, or of the placebo, that a run was given; absent if it was given none."""
FEEDBACK_TEXTS: Final = "mast.feedback.texts"
"""Answers of `mast_trace.feedback` that a run was given, in order, each as JSON, on its root (string[])."""
FEEDBACK_VERSION: Final = "mast.feedback.version"
"""Version of the frozen lessons that they were taken from; absent for lessons that are not frozen."""
EXPERIMENT_NAME: Final = "mast.experiment.name"
"""Name of the experiment that a run belongs to, on its root."""
EXPERIMENT_ARM: Final = "mast.experiment.arm"
EXPERIMENT_TASK: Final = "mast.experiment.task"
"""Key of the run's task in its experiment; runs of one task have one key."""
EXPERIMENT_REPETITION: Final = "mast.experiment.repetition"
"""Number of the run among those of its task, from 0 (int)."""
EXPERIMENT_DESIGN: Final = "mast.experiment.design"
"""Design of the experiment: ``hash`` (a task has one arm) or ``pairs`` (each task in all arms)."""

REPLAY_SERVED: Final = "mast.replay.served"
"""True on a model call of a replay that was answered from the record; it has no token usage."""

CONTENT_TRUNCATED: Final = "mast.content.truncated"
"""Names of the attributes of this span whose text was cut (string[])."""
CONTENT_REDACTED: Final = "mast.content.redacted"
"""Names of the attributes of this span whose texts the user's redaction has changed (string[]).

`INPUT_MESSAGES` is named wherever such a message is shown, also if an earlier span holds its text."""
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
    TIME_LIMIT: Final = "time_limit"
