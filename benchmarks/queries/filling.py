"""Fills a store with as many runs as wanted, by ClickHouse's own means: 40 spans a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from datetime import datetime

    from mast_trace_collector.storage import Store

SPANS_PER_RUN: Final = 40
DAYS: Final = 7

_SPANS = """
INSERT INTO otel_traces (Timestamp, TraceId, SpanId, ParentSpanId, SpanName, SpanKind, ServiceName,
    ResourceAttributes, ScopeName, SpanAttributes, Duration, StatusCode)
WITH
    intDiv(number, {per_run:UInt32}) AS run, number % {per_run:UInt32} AS k,
    lower(hex(cityHash64(run, 'trace'))) AS half,
    ['researcher', 'analyst', 'writer', 'critic', 'planner'][k % 5 + 1] AS agent,
    ['invoke_agent', 'chat', 'execute_tool', 'send_message'][k % 4 + 1] AS does,
    randomPrintableASCII(60) AS text,
    if(k = 0, 'invoke_workflow', does) AS operation
SELECT
    {start:DateTime64(9)} + toIntervalMillisecond(run * {gap_ms:UInt64} + k * 100),
    concat(half, lower(hex(cityHash64(half)))),
    lower(hex(cityHash64(number, 'span'))),
    if(k = 0, '', lower(hex(cityHash64(run * {per_run:UInt32}, 'span')))),
    if(k = 0, 'invoke_workflow team', concat(operation, ' ', agent)),
    'Internal',
    concat('service-', toString(run % 6)),
    map('service.name', concat('service-', toString(run % 6)), 'mast.project', 'default'),
    'mast_trace',
    mapUpdate(
        map('gen_ai.operation.name', operation, 'gen_ai.agent.name', agent,
            'mast.framework', ['langgraph', 'ag2', 'crewai', 'metagpt'][run % 4 + 1]),
        multiIf(
            k = 0, map('gen_ai.workflow.name', 'team', 'mast.run.termination_reason', 'done',
                'mast.run.outcome', ['', 'success', 'failure'][run % 3 + 1]),
            operation = 'chat', map('gen_ai.request.model', ['gpt-5', 'claude', 'llama'][run % 3 + 1],
                'gen_ai.usage.input_tokens', toString(500 + k), 'gen_ai.usage.output_tokens', '80',
                'gen_ai.output.messages', text),
            operation = 'execute_tool', map('gen_ai.tool.name', ['search', 'add', 'read'][k % 3 + 1],
                'gen_ai.tool.call.arguments', '{"page": 1}', 'gen_ai.tool.call.result', text),
            map('mast.message.id', toString(number), 'mast.message.sender', agent,
                'mast.message.content', text, 'mast.message.recipients', '["planner"]'))),
    90000000,
    if(k = 7 AND run % 5 = 0, 'Error', 'Unset')
FROM numbers({from:UInt64}, {count:UInt64})
"""

_VERDICTS = """
INSERT INTO mast_verdicts (Project, TraceId, Fingerprint, JudgeVersion, JudgedAt, Status, Method,
    ServiceName, Framework, Name, RunStart, RunEnd, Steps, Outcome, FailureProbability,
    Modes.Code, Modes.Probability, Modes.Evidence, Modes.Reason, Modes.Steps, Modes.SpanIds,
    Modes.Quotes, Abstained, DecisiveStep, DecisiveAgent, DecisiveProbability, DecisiveRule,
    DecisiveReason, Candidates.Step, Candidates.SpanId, Candidates.Agent, Candidates.Probability,
    Candidates.Rule, RunSeen, RunSpans, RunErrors, RunInputTokens, RunOutputTokens, RunAgents,
    RunModels, RunOutcome, RunOutcomeReason, RunTermination, Examined, Calibrated)
WITH
    arrayFilter((code, i) -> cityHash64(TraceId, i) % 9 = 0,
        ['1.1', '1.2', '1.3', '1.4', '1.5', '2.1', '2.3', '2.6', '3.1', '3.2', '3.3'], range(11))
        AS codes,
    arrayMap(code -> 'it did so', codes) AS words
SELECT
    Project, TraceId, Fingerprint, 'benchmark', LastSeen + toIntervalSecond(6), 'ok', 'local',
    ServiceName, Framework, Name, Start, End, toUInt32(Spans),
    if(empty(codes), 'success', 'failure'), 0.5,
    codes, arrayMap(code -> toFloat32(0.8), codes), arrayMap(code -> 'heuristic', codes), words,
    arrayMap(code -> [toUInt32(3)], codes), arrayMap(code -> ['span'], codes),
    arrayMap(code -> ['a quote'], codes), false,
    if(empty(codes), NULL, toUInt32(cityHash64(TraceId) % 40)),
    if(empty(codes), '', Agents[1]), 0.6, 'rule', 'a reason',
    [toUInt32(1), 2, 3], ['a', 'b', 'c'], ['analyst', 'writer', 'critic'],
    [toFloat32(0.5), 0.2, 0.1], ['rule', 'rule', 'rule'],
    LastSeen, Spans, Errors, InputTokens, OutputTokens, Agents, Models, Outcome, OutcomeReason,
    TerminationReason,
    ['1.1', '1.2', '1.3', '1.4', '1.5', '2.1', '2.3', '2.6', '3.1', '3.2', '3.3'], true
FROM mast_runs
WHERE Start >= {since:DateTime64(9)} AND Start < {until:DateTime64(9)}
"""


def fill(store: Store, start: datetime, first: int, count: int, gap_ms: int) -> None:
    """Add spans; a run begins every so many milliseconds.

    Args:
        store: the store to fill.
        start: time of the first run of all.
        first: number of the first span to add, a multiple of `SPANS_PER_RUN`.
        count: number of spans to add.
        gap_ms: milliseconds between two runs.
    """
    values = {"per_run": SPANS_PER_RUN, "start": start, "gap_ms": gap_ms}
    store.command(
        _SPANS,
        {**values, "from": first, "count": count},
        settings={"max_partitions_per_insert_block": 0, "max_insert_threads": 1},
    )


# To the view all spans arrive today; a store that has run for days has a partition a day.
_SPREAD = (
    "CREATE TABLE arrived AS mast_run_states",
    """INSERT INTO arrived SELECT * REPLACE (
        toDate(End) AS Day, toDateTime64(End + toIntervalSecond(1), 3) AS LastSeen)
    FROM mast_run_states""",
    "TRUNCATE TABLE mast_run_states",
    "INSERT INTO mast_run_states SELECT * FROM arrived",
    "DROP TABLE arrived",
)


def spread(store: Store) -> None:
    """Set the time of arrival of each run to the time when it happened."""
    for statement in _SPREAD:
        store.command(statement)


def judge(store: Store, since: datetime, until: datetime) -> None:
    """Write a verdict on every run of a time range."""
    store.command(_VERDICTS, {"since": since, "until": until})
