"""Fills a store with judged runs: random findings, and planted patterns from a day on.

Written by ClickHouse's own means: six spans and one verdict for each run. The judge's verdicts are drawn, so that it
is known which finding is noise and which is planted; all that follows them is the product's code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from datetime import datetime

    from mast_trace_collector.storage import Store

SPANS_PER_RUN: Final = 6
SERVICES: Final = 4


@dataclass(frozen=True)
class Planted:
    """A planted pattern.

    Attributes:
        code: of the failure mode.
        agent: at fault.
        tool: that fails; empty for a message.
        text: the error of the tool, or the message; ``{}`` stands for a number that differs.
        service: number of the service.
        day: from which on it occurs.
        rate: share of the service's runs.
    """

    code: str
    agent: str
    tool: str
    text: str
    service: int
    day: int
    rate: float


PLANTED: Final = (
    Planted("2.6", "writer", "search", "connection to 10.0.{}.7 timed out after {} ms", 1, 9, 0.03),
    Planted("1.1", "planner", "", "I will skip the review of order {} to save time", 2, 12, 0.02),
    Planted("3.2", "critic", "", "Looks good to me, approving draft {}", 3, 0, 0.05),
    Planted("1.5", "analyst", "read", "", 0, 16, 0.04),
    Planted("2.2", "researcher", "", "I assume that the customer {} means euros", 1, 20, 0.01),
)
"""Patterns of known place, day and rate; the third one is there from the beginning, so it is not new."""

_RUN: Final = """
    number AS run, {start:DateTime64(9)} + toIntervalMillisecond(run * {gap_ms:UInt64}) AS begin,
    intDiv(run * {gap_ms:UInt64}, 86400000) AS day,
    lower(hex(cityHash64(run, {seed:UInt64}, 'trace'))) AS half,
    leftPad(concat(half, lower(hex(cityHash64(half)))), 32, '0') AS trace,
    run % 4 AS service,
    arrayFirstIndex((s, d, r, k) -> s = service AND day >= d
        AND cityHash64(run, {seed:UInt64}, k) % 100000 < r, {services:Array(UInt32)}, {days:Array(UInt32)},
        {rates:Array(UInt32)}, range(1, length({services:Array(UInt32)}) + 1)) AS planted,
    cityHash64(run, {seed:UInt64}, 'noise') % 1000 < if(day % 7 = 3 AND run % 24 < 2, 360, 120) AS noisy,
    toUInt32(floor(490 * pow(cityHash64(run, {seed:UInt64}, 'which') % 1000000 / 1000000, 3))) AS combination,
    ['1.1','1.2','1.3','1.4','1.5','2.1','2.2','2.3','2.4','2.5','2.6','3.1','3.2','3.3'] AS modes,
    ['planner', 'researcher', 'analyst', 'writer', 'critic'] AS agents,
    ['', '', '', 'search', 'read', 'add', 'send'] AS tools,
    if(planted > 0, {codes:Array(String)}[planted], modes[combination % 14 + 1]) AS code,
    if(planted > 0, {agents:Array(String)}[planted], agents[intDiv(combination, 14) % 5 + 1]) AS agent,
    if(planted > 0, {tools:Array(String)}[planted], tools[intDiv(combination, 70) % 7 + 1]) AS tool,
    planted > 0 OR noisy AS found,
    arrayStringConcat(arrayMap(i -> ['the', 'price', 'order', 'seems', 'wrong', 'maybe', 'check', 'again', 'data',
        'table', 'answer', 'done', 'next', 'file', 'result', 'agree'][cityHash64(run, i) % 16 + 1],
        range(5 + cityHash64(run, 'words') % 9)), ' ') AS chatter,
    if(planted > 0, replaceAll({texts:Array(String)}[planted], '{}', toString(cityHash64(run, 'n') % 1000)),
        if(tool = '', chatter, '')) AS text,
    cityHash64(run, {seed:UInt64}, 'fails') % 1000 < if(planted > 0, 850, 150) AS failed,
    concat('1.', toString(intDiv(day, 7))) AS version"""

_SPANS: Final = f"""
INSERT INTO otel_traces (Timestamp, TraceId, SpanId, ParentSpanId, SpanName, SpanKind, ServiceName,
    ResourceAttributes, ScopeName, SpanAttributes, Duration, StatusCode, StatusMessage)
WITH {_RUN},
    if(found AND k = 3, agent, agents[(run + k) % 5 + 1]) AS who,
    multiIf(k = 0, 'invoke_workflow', found AND k = 3 AND tool != '', 'execute_tool', k % 2 = 0, 'execute_tool',
        'send_message') AS does
SELECT begin + toIntervalMillisecond(k * 100), trace, lower(hex(cityHash64(run, k, 'span'))),
    if(k = 0, '', lower(hex(cityHash64(run, 0, 'span')))), does, 'Internal', concat('service-', toString(service)),
    map('service.name', concat('service-', toString(service)), 'mast.project', 'default', 'service.version', version),
    'mast_trace',
    mapUpdate(map('gen_ai.operation.name', does, 'gen_ai.agent.name', who, 'mast.framework', 'langgraph'),
      multiIf(
        k = 0, map('gen_ai.workflow.name', 'team', 'mast.run.outcome', if(failed, 'failure', 'success')),
        does = 'execute_tool', map('gen_ai.tool.name', if(found AND k = 3, tool, ['search', 'read'][run % 2 + 1]),
            'gen_ai.tool.call.result', chatter),
        map('mast.message.sender', who, 'mast.message.content', if(found AND k = 3, text, chatter),
            'mast.message.recipients', concat('["', agents[indexOf(agents, who) % 5 + 1], '"]')))),
    90000000, if(k = 3 AND found AND tool != '' AND text != '', 'Error', 'Unset'),
    if(k = 3 AND found AND tool != '', text, '')
FROM (SELECT number, k FROM numbers({{from:UInt64}}, {{count:UInt64}}) ARRAY JOIN range(6) AS k)
"""

_VERDICTS: Final = f"""
INSERT INTO mast_verdicts (Project, TraceId, Fingerprint, JudgeVersion, JudgedAt, Status, Method,
    ServiceName, Framework, Name, RunStart, RunEnd, Steps, Outcome, FailureProbability, Modes.Code, Modes.Probability,
    Modes.Evidence, Modes.Reason, Modes.Steps, Modes.SpanIds, Modes.Quotes, DecisiveStep, DecisiveSpanId, DecisiveAgent,
    RunSeen, RunSpans, RunInputTokens, RunOutputTokens, RunOutcome, Examined)
WITH {_RUN}, lower(hex(cityHash64(run, 3, 'span'))) AS span
SELECT 'default', trace, 'f', 'simulated', begin + toIntervalSecond(6), 'ok', 'local',
    concat('service-', toString(service)), 'langgraph', 'team', begin, begin + toIntervalSecond(1), 5,
    if(failed, 'failure', 'success'), 0.5,
    if(found, [code], []), if(found, [toFloat32(0.8)], []), if(found, ['heuristic'], []), if(found, ['so'], []),
    if(found, [[toUInt32(2)]], []), if(found, [[span]], []), if(found, [if(text = '', [], [text])], []),
    if(found AND failed, toUInt32(2), NULL), if(found AND failed, span, ''), if(found AND failed, agent, ''),
    begin + toIntervalSecond(2), 6, 900, 100, if(failed, 'failure', 'success'), modes
FROM numbers({{from:UInt64}}, {{count:UInt64}})
"""


def fill(store: Store, start: datetime, first: int, count: int, *, gap_ms: int, seed: int) -> None:
    """Add judged runs.

    Args:
        store: the store to fill.
        start: time of run 0.
        first: number of the first run to add.
        count: number of runs to add.
        gap_ms: milliseconds between two runs.
        seed: of the drawings.
    """
    values = {
        "start": start,
        "from": first,
        "count": count,
        "gap_ms": gap_ms,
        "seed": seed,
        "services": [each.service for each in PLANTED],
        "days": [each.day for each in PLANTED],
        "rates": [round(each.rate * 100_000) for each in PLANTED],
        "codes": [each.code for each in PLANTED],
        "agents": [each.agent for each in PLANTED],
        "tools": [each.tool for each in PLANTED],
        "texts": [each.text for each in PLANTED],
    }
    settings = {"max_partitions_per_insert_block": 0, "max_insert_threads": 1}
    for statement in (_SPANS, _VERDICTS):
        store.command(statement, values, settings=settings)
