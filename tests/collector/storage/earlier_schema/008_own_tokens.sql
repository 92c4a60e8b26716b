-- Tokens of a call that another tool has recorded beside us count once. What is stored has not said whose
-- its calls are and counts as before.
ALTER TABLE {database}.mast_run_states_mv {on_cluster} MODIFY QUERY
WITH
    multiIf(ParentSpanId = '', 2, Operation = 'invoke_workflow', 1, 0) AS root,
    greatest(toUnixTimestamp64Nano(Timestamp), 0) AS started,
    started + toInt64(least(Duration, toUInt64(9223372036854775807 - started))) AS ended,
    cityHash64(SpanId) AS id,
    -- A sum, because the order of attributes means nothing and may differ in a repetition.
    arraySum((name, value) -> cityHash64(name, value),
        mapKeys(SpanAttributes), mapValues(SpanAttributes)) AS attributes,
    cityHash64(started, ended, ParentSpanId, SpanName, StatusCode, StatusMessage, attributes) AS content,
    Operation = 'chat' AND (InputTokens > 0 OR OutputTokens > 0) AS has_tokens,
    SpanAttributes['mast.framework'] != '' OR startsWith(ScopeName, 'mast_trace') AS is_ours,
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
        if(SpanAttributes['gen_ai.workflow.name'] != '',
            SpanAttributes['gen_ai.workflow.name'], toString(SpanName)))) AS Named,
    max(toString(ServiceName)) AS ServiceName,
    max(toString(Framework)) AS Framework,
    max(ConversationId) AS ConversationId,
    max(SpanAttributes['mast.run.termination_reason']) AS TerminationReason,
    groupUniqArrayIf(toString(AgentName), AgentName != '') AS Agents,
    groupUniqArrayIf(toString(Model), Model != '') AS Models,
    groupUniqArray(bitOr(bitAnd(id, 0xFFFFFFFF00000000), bitShiftRight(content, 32))) AS Spans,
    groupUniqArrayIf(id, StatusCode = 'Error') AS Errors,
    groupUniqArrayIf(bitOr(bitAnd(id, 0xFFFF000000000000), bitOr(
        bitShiftLeft(toUInt64(least(InputTokens, 0x7FFFFF) + if(is_ours, 0x800000, 0)), 24),
        toUInt64(least(OutputTokens, 0xFFFFFF)))), has_tokens) AS Tokens,
    maxIf(concat('0', leftPad(toString(ended), 19, '0'), outcome, '\n',
        SpanAttributes['mast.run.outcome_reason']), outcome IN ('success', 'failure')) AS Said
FROM {database}.otel_traces{local}
WHERE TraceId != ''
GROUP BY Project, TraceId;

CREATE OR REPLACE VIEW {database}.mast_runs {on_cluster} AS
WITH
    -- Concatenated, sorted and compacted: several times faster than ClickHouse's set of numbers.
    arrayCompact(arraySort(groupArrayArray(s.Spans))) AS spans,
    arrayCompact(arraySort(groupArrayArray(s.Tokens))) AS calls,
    -- Where another tool has recorded the same calls beside us, ours count.
    arrayFilter(call -> bitTest(call, 47), calls) AS our_calls,
    if(empty(our_calls), calls, our_calls) AS tokens,
    max(s.Said) AS said,
    position(said, '\n') AS line_break
SELECT
    s.Project AS Project,
    s.TraceId AS TraceId,
    substring(min(s.Named), 21) AS Name,
    max(s.ServiceName) AS ServiceName,
    max(s.Framework) AS Framework,
    max(s.ConversationId) AS ConversationId,
    min(s.Start) AS Start,
    max(s.End) AS End,
    max(s.LastSeen) AS LastSeen,
    toUInt8(max(s.Root) > 0) AS RootSeen,
    toUInt64(length(arrayCompact(span -> bitShiftRight(span, 32), spans))) AS Spans,
    toUInt64(arrayUniq(groupArrayArray(s.Errors))) AS Errors,
    arraySum(call -> bitAnd(bitShiftRight(call, 24), 0x7FFFFF), tokens) AS InputTokens,
    arraySum(call -> bitAnd(call, 0xFFFFFF), tokens) AS OutputTokens,
    arraySort(groupUniqArrayArray(s.Agents)) AS Agents,
    arraySort(groupUniqArrayArray(s.Models)) AS Models,
    if(line_break = 0, '', substring(said, 21, line_break - 21)) AS Outcome,
    if(line_break = 0, '', substring(said, line_break + 1)) AS OutcomeReason,
    max(s.TerminationReason) AS TerminationReason,
    lower(hex(cityHash64(spans, Outcome, OutcomeReason))) AS Fingerprint
FROM {database}.mast_run_states AS s
GROUP BY s.Project, s.TraceId;
