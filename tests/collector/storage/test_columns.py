"""The typed columns: computed by ClickHouse, whoever inserts."""

from datetime import datetime, timedelta, timezone
from itertools import pairwise

import pytest
from marked_spans import MARKED
from otlp_requests import request, span

from mast_trace.trajectory import vocabulary
from mast_trace_collector.storage.span_writer import SpanWriter


def values(store, name, *attributes):
    """Store a span with each of the attributes and return the column of each."""
    spans = [span(number, attributes=each) for number, each in enumerate(attributes, start=1)]
    SpanWriter(store).write([request(*spans)], token="t")
    rows = store.query(f"SELECT {name} FROM otel_traces ORDER BY SpanId")
    return [row[name] for row in rows]


STOCK = {
    "Operation": ("gen_ai.operation.name", "send_message"),
    "Framework": ("mast.framework", "ag2"),
    "AgentName": ("gen_ai.agent.name", "planner"),
    "ToolName": ("gen_ai.tool.name", "search"),
    "Model": ("gen_ai.response.model", "answered"),
    "ConversationId": ("gen_ai.conversation.id", "c1"),
    "Sender": ("mast.message.sender", "planner"),
    "Recipients": ("mast.message.recipients", '["coder","critic"]', ["coder", "critic"]),
    "MessageId": ("mast.message.id", "m1"),
    "ContentHash": ("mast.message.content_hash", "ab12"),
    "HandoffTarget": ("gen_ai.agent.handoff.target.name", "coder"),
    "InputTokens": ("gen_ai.usage.input_tokens", "12", 12),
    "OutputTokens": ("gen_ai.usage.output_tokens", "34", 34),
    "ErrorType": ("error.type", "Timeout"),
}
"""The attribute of each column, and what is written and read."""


def test_a_stock_collectors_insert_fills_every_column(store):
    """An INSERT that names only the exporter's columns is enough for all of ours."""
    given = ", ".join(f"'{name}': '{said}'" for name, said, *_ in STOCK.values())
    store.command(
        f"""
        INSERT INTO otel_traces (Timestamp, TraceId, SpanId, ParentSpanId, TraceState, SpanName,
            SpanKind, ServiceName, ResourceAttributes, ScopeName, ScopeVersion, SpanAttributes,
            Duration, StatusCode, StatusMessage, `Events.Timestamp`, `Events.Name`,
            `Events.Attributes`, `Links.TraceId`, `Links.SpanId`, `Links.TraceState`,
            `Links.Attributes`)
        VALUES (now64(9), 'aa', '01', '', '', 'send_message planner', 'Internal', 'shop',
            {{'mast.project': 'ours'}}, 's', '1', {{{given}, 'gen_ai.request.model': 'asked'}},
            5, 'Error', '', [], [], [], [], [], [], [])
        """
    )
    (row,) = store.query(f"SELECT Project, {', '.join(STOCK)} FROM otel_traces")
    read = {column: more[0] if more else said for column, (_, said, *more) in STOCK.items()}
    assert row == {"Project": "ours", **read}
    (run,) = store.query("SELECT Project, TraceId, Spans, Errors FROM mast_runs")
    assert run == {"Project": "ours", "TraceId": "aa", "Spans": 1, "Errors": 1}


def test_the_time_of_arrival_is_the_databases(store):
    (arrived,) = values(store, "ReceivedAt", {})
    assert datetime.now(timezone.utc) - arrived < timedelta(minutes=5)


COLUMNS = {
    "operation": "Operation",
    "agent": "AgentName",
    "tool": "ToolName",
    "model": "Model",
    "conversation": "ConversationId",
    "framework": "Framework",
    "sender": "Sender",
    "handoff_target": "HandoffTarget",
}


@pytest.mark.parametrize("field", COLUMNS)
def test_every_spelling_is_read_and_the_first_that_is_not_empty_wins(embedded, field):
    spellings = vocabulary.SPELLINGS[field]
    alone = [{name: f"said by {name}"} for name in spellings]
    together = [{later: "later", first: "first"} for first, later in pairwise(spellings)]
    emptied = [{later: "later", first: ""} for first, later in pairwise(spellings)]
    assert values(embedded, COLUMNS[field], *alone, *together, *emptied) == [
        *(f"said by {name}" for name in spellings),
        *("first" for _ in together),
        *("later" for _ in emptied),
    ]


def test_foreign_operations_are_translated(store):
    sent = [{"openinference.span.kind": word} for word in [*vocabulary.OPERATIONS, "other"]]
    assert values(store, "Operation", *sent) == [vocabulary.operation(each) for each in sent]


def test_columns_take_a_span_for_what_its_marks_say(store):
    sent = [attributes for attributes, _ in MARKED.values()]
    assert values(store, "Operation", *sent) == [operation for _, operation in MARKED.values()]


def test_a_tool_of_mlflow_has_the_name_of_its_span(store):
    kind = {vocabulary.NAMED_BY_SPAN: '"TOOL"'}
    unnamed, named, other = values(store, "ToolName", kind, {**kind, "tool.name": "look"}, {})
    (row,) = store.query("SELECT SpanName FROM otel_traces WHERE ToolName = SpanName")
    assert (unnamed, named, other) == (row["SpanName"], "look", "")


def test_a_request_of_a_tool_is_its_call_whether_it_says_so_or_not(store):
    call = {"mcp.method.name": "tools/call", "gen_ai.tool.name": "look"}
    sent = [
        call,
        {**call, "gen_ai.operation.name": "other"},
        {"mcp.method.name": "tools/call"},
        {"mcp.method.name": "tools/list", "gen_ai.tool.name": "look"},
    ]
    read = values(store, "Operation", *sent)
    assert read == [vocabulary.operation(each) for each in sent]
    assert read == ["execute_tool", "other", "", ""]


def test_the_name_of_a_workflow_is_no_agent(store):
    named = {"gen_ai.agent.name": "team"}
    sent = [
        {**named, "gen_ai.operation.name": "invoke_workflow"},
        {**named, "traceloop.span.kind": "workflow"},
        {**named, "gen_ai.operation.name": "invoke_agent"},
    ]
    assert values(store, "AgentName", *sent) == [vocabulary.agent(each) for each in sent]
    assert values(store, "AgentName", *sent) == ["", "", "team"]


def test_string_arrays_are_read_as_the_trajectory_reads_them(store):
    sent = [["a", "b"], [], "lonely", "[broken", ["ü", "a,b"], "12", '{"a": 1}']
    as_lists = [["a", "b"], [], ["lonely"], ["[broken"], ["ü", "a,b"], ["12"], ['{"a": 1}']]
    attributes = [{"mast.message.recipients": value} for value in sent]
    assert values(store, "Recipients", *attributes) == as_lists
    for text, expected in zip(sent[:5], as_lists[:5], strict=True):
        assert list(vocabulary.strings(text)) == expected


def test_token_counts_that_are_no_numbers_count_nothing(store):
    sent = [{"gen_ai.usage.input_tokens": value} for value in (7, "7", "many", -1, "")]
    assert values(store, "InputTokens", *sent) == [7, 7, 0, 0, 0]
