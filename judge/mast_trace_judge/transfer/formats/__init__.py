"""The formats of `mast-trace import`, in one table: each is recognised by a file's content.

A value (one line, one row or one document) belongs to the first row that recognises it: the most
specific come first. To add a format, write its module and its row, and record a sample.
"""

from __future__ import annotations

from typing import Any

from mast_trace.exceptions import ConfigurationError
from mast_trace_judge.transfer.formats.assistants.chats import BROWSER_USE, CHATGPT
from mast_trace_judge.transfer.formats.assistants.coding import CLAUDE_CODE, CLAUDE_EVENTS, CODEX
from mast_trace_judge.transfer.formats.assistants.openhands import OPENHANDS
from mast_trace_judge.transfer.formats.autogen import AUTOGEN, MAGENTIC
from mast_trace_judge.transfer.formats.chat import (
    ANTHROPIC,
    CHAT,
    CHAT_LISTS,
    GEMINI_CLI,
    LANGCHAIN,
    PLAIN,
    PYDANTIC_AI,
    RESPONSES,
    SHAREGPT,
    SMOLAGENTS,
)
from mast_trace_judge.transfer.formats.evaluations import ATIF, INSPECT, SWE_AGENT, TAU_BENCH
from mast_trace_judge.transfer.formats.kinds import Format, never, underscored
from mast_trace_judge.transfer.formats.langfuse import LANGFUSE
from mast_trace_judge.transfer.formats.model_calls import (
    AG2_CONSOLE,
    AG2_LOGGING,
    AUTOGEN_EVENTS,
    OPENAI_CALLS,
)
from mast_trace_judge.transfer.formats.otlp import CONSOLE, JAEGER, OTLP, TEMPO, ZIPKIN
from mast_trace_judge.transfer.formats.own_export import EXPORT
from mast_trace_judge.transfer.formats.teams import ADK, CHATDEV, CREWAI, LANGGRAPH, METAGPT
from mast_trace_judge.transfer.formats.trackers import (
    BRAINTRUST,
    LANGSMITH,
    MLFLOW,
    OPENAI_AGENTS,
    OPIK,
    PHOENIX,
    WEAVE,
)

FORMATS: tuple[Format, ...] = (
    EXPORT,
    OTLP,
    TEMPO,
    CONSOLE,
    JAEGER,
    ZIPKIN,
    PHOENIX,
    LANGSMITH,
    LANGFUSE,
    OPENAI_AGENTS,
    WEAVE,
    BRAINTRUST,
    OPIK,
    MLFLOW,
    CLAUDE_CODE,
    CLAUDE_EVENTS,
    CODEX,
    CHATGPT,
    BROWSER_USE,
    METAGPT,
    CREWAI,
    CHATDEV,
    LANGGRAPH,
    ADK,
    INSPECT,
    SWE_AGENT,
    TAU_BENCH,
    ATIF,
    OPENHANDS,
    MAGENTIC,
    AUTOGEN_EVENTS,
    AUTOGEN,
    AG2_LOGGING,
    AG2_CONSOLE,
    OPENAI_CALLS,
    RESPONSES,
    ANTHROPIC,
    PYDANTIC_AI,
    SMOLAGENTS,
    GEMINI_CLI,
    SHAREGPT,
    LANGCHAIN,
    CHAT,
    PLAIN,
)
"""The table, the most specific rows first."""


def format_named(name: str) -> Format:
    """Return a row by its name.

    Raises:
        ConfigurationError: there is none of that name.
    """
    for row in FORMATS:
        if row.name == name:
            return row
    known = ", ".join(row.name for row in FORMATS)
    raise ConfigurationError(f"there is no format {name!r}: name one of {known}")


def format_of_record(value: Any) -> Format | None:
    """Return the row of a value that holds whole runs or spans; None if there is none.

    A value that an earlier row takes for one of its messages holds none, whatever it looks like below.
    """
    first = next((row for row in FORMATS if row.record(value) or row.message(value)), None)
    return first if first is not None and first.record(value) else None


def format_of_messages(messages: list[Any]) -> Format | None:
    """Return the row of the messages of one run: the first that recognises any of them."""
    return next((row for row in FORMATS if any(map(row.message, messages))), None)


def format_of_text(start: str) -> Format | None:
    """Return the row whose log in plain text begins so; None if there is none."""
    lines = start.splitlines()
    logs = (row for row in FORMATS if row.text and any(map(row.text.begin.match, lines)))
    return next(logs, None)


def format_of_table(columns: list[str]) -> Format | None:
    """Return the row whose records a table with these columns in CSV holds; None if there is none."""
    names, whole = {column.partition(".")[0] for column in columns}, dict.fromkeys(columns, "x")
    rows = (row for row in FORMATS if row.record is not never and row.keys)
    return next((r for r in rows if names.issuperset(r.keys) or r.record(whole)), None)


_UNREAD: tuple[tuple[str, frozenset[str], Format, str], ...] = (
    ("spans of Laminar", frozenset({"spanId", "spanType"}), OTLP, "resourceSpans"),
    ("a trace of AgentOps", frozenset({"span_id", "span_name"}), OTLP, "resourceSpans"),
    ("a chat of GitHub Copilot", frozenset({"requesterUsername", "requests"}), CHAT, "messages"),
    ("a store of chats of LlamaIndex", frozenset({"store", "class_name"}), CHAT, "messages"),
    ("a batch of OpenAI's API", frozenset({"custom_id", "response"}), OPENAI_CALLS, "request"),
    ("an answer of OpenAI's API", frozenset({"object", "choices"}), OPENAI_CALLS, "request"),
    ("a batch of OpenAI's API", frozenset({"custom_id", "body"}), OPENAI_CALLS, "response"),
)
"""Files that nothing reads: what they are, the keys that tell it, the nearest row, and what they lack for it."""


def nearest_format(value: Any) -> str:
    """Return the row that an unknown object is nearest to and the keys that it lacks, in words; empty for other values."""
    if not isinstance(value, dict):
        return ""
    for title, own, row, lacked in _UNREAD:
        if own <= value.keys():
            return f"; it holds {title}, and is nearest to {row.title}, but it lacks {lacked}"
    held = {key for key, each in value.items() if each not in (None, "")}
    near = [
        (row, [key for key in row.keys if not {key, underscored(key)} & held])
        for row in FORMATS
        if row.keys
    ]
    shared = [each for each in near if 2 * len(each[1]) < len(each[0].keys)]
    if not shared:
        if listed := next((key for key in CHAT_LISTS if key in value), ""):
            return f"; it is nearest to {CHAT.title}, but its `{listed}` hold none"
        lacked = ", ".join(key for key in ("role", "content") if key not in value)
        return f"; it is nearest to {CHAT.title}, but it lacks {lacked}" if lacked else ""
    row, missing = min(
        shared, key=lambda each: (len(each[1]) / len(each[0].keys), not _completes(each, value))
    )
    lacked = ", ".join(missing) or f"what tells that: {row.recognised.partition(';')[0]}"
    return f"; it is nearest to {row.title}, but it lacks {lacked}"


def _completes(near: tuple[Format, list[str]], value: dict[str, Any]) -> bool:
    """Return whether an object with the keys that it lacks is one of a row."""
    row, missing = near
    return any(
        row.record({**value, **{spelt(key): "x" for key in missing}})
        for spelt in (str, underscored)
    )
