-- Version 0.1.0 of the GenAI conventions: on a run `gen_ai.agent.name` names the workflow, which is no agent.
-- A request of the Model Context Protocol that names a tool is the call of it, whether it says so or not.
-- A hand-off's target stands under a name of our own, for the conventions have none.
ALTER TABLE {database}.otel_traces{local} {on_cluster}
    MODIFY COLUMN Operation LowCardinality(String) MATERIALIZED {operation},
    MODIFY COLUMN AgentName LowCardinality(String) MATERIALIZED if(Operation = 'invoke_workflow', '', {field:agent}),
    MODIFY COLUMN HandoffTarget LowCardinality(String) MATERIALIZED {field:handoff_target};

-- See 011 on what the view knows of before.
ALTER TABLE {database}.mast_run_states_mv {on_cluster} MODIFY QUERY
WITH
    multiIf(ParentSpanId = '', 2, Operation = 'invoke_workflow', 1, 0) AS root,
    greatest(toUnixTimestamp64Nano(Timestamp), 0) AS started,
    started + toInt64(least(Duration, toUInt64(9223372036854775807 - started))) AS ended,
    -- An id of OpenTelemetry is 64 bits: taken as they are, two are never mistaken for one, whoever chose
    -- them. No hash can promise that. What is no such id is hashed.
    reinterpretAsUInt64(unhex(SpanId)) AS number,
    if(lower(hex(reinterpretAsFixedString(number))) = SpanId, number, sipHash64(SpanId)) AS id,
    -- A sum, because the order of attributes means nothing and may differ in a repetition.
    arraySum((name, value) -> cityHash64(name, value),
        mapKeys(SpanAttributes), mapValues(SpanAttributes)) AS attributes,
    cityHash64(started, ended, ParentSpanId, SpanName, StatusCode, StatusMessage, attributes) AS content,
    Operation = 'chat' AND (InputTokens > 0 OR OutputTokens > 0) AS has_tokens,
    SpanAttributes['mast.framework'] != '' OR startsWith(ScopeName, 'mast_trace') AS is_ours,
    if(is_ours, 0, 1 + cityHash64(ScopeName) % 255) AS source,
    if(SpanAttributes['mast.run.kind'] != '', SpanAttributes['mast.run.kind'],
        ResourceAttributes['mast.run.kind']) AS kind,
    SpanAttributes['mast.run.outcome'] AS outcome
SELECT
    Project,
    TraceId,
    today() AS Day,
    min(Timestamp) AS Start,
    max(fromUnixTimestamp64Nano(ended)) AS End,
    now64(3) AS LastSeen,
    max(root) AS Root,
    min(concat(toString(2 - root), leftPad(toString(started), 19, '0'),
        multiIf(SpanAttributes['gen_ai.workflow.name'] != '', SpanAttributes['gen_ai.workflow.name'],
            Operation = 'invoke_workflow' AND SpanAttributes['gen_ai.agent.name'] != '',
            SpanAttributes['gen_ai.agent.name'], toString(SpanName)))) AS Named,
    max(toString(ServiceName)) AS ServiceName,
    max(toString(Framework)) AS Framework,
    max(ConversationId) AS ConversationId,
    max(SpanAttributes['mast.run.termination_reason']) AS TerminationReason,
    max(substring(kind, 1, 64)) AS Kind,
    groupUniqArrayIf(1000)(toString(AgentName), AgentName != '') AS Agents,
    groupUniqArrayIf(1000)(toString(Model), Model != '') AS Models,
    toUInt8(0) AS Old,
    groupUniqArray(2097152)(bitOr(bitAnd(cityHash64(SpanId), 0xFFFFFFFF00000000), bitShiftRight(content, 32))) AS Spans,
    groupUniqArrayIf(1048576)(id, NOT has_tokens) AS SpanIds,
    groupUniqArrayIf(1048576)(id, StatusCode = 'Error') AS ErrorIds,
    groupUniqArrayIf(2097152)(bitOr(bitShiftLeft(toUInt128(id), 64), toUInt128(bitOr(
        bitShiftLeft(toUInt64(least(InputTokens, 0xFFFFFFF)), 36), bitOr(
        bitShiftLeft(toUInt64(least(OutputTokens, 0xFFFFFFF)), 8), source)))), has_tokens) AS Calls,
    maxIf(concat('0', leftPad(toString(ended), 19, '0'), outcome, '\n',
        SpanAttributes['mast.run.outcome_reason']), outcome IN ('success', 'failure')) AS Said
FROM {database}.otel_traces{local}
WHERE TraceId != ''
GROUP BY Project, TraceId;
