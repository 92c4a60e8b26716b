-- The view may know no tokens of before, see 007: an insert that is done again then adds the same numbers to
-- the same sets.
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
        if(SpanAttributes['gen_ai.workflow.name'] != '',
            SpanAttributes['gen_ai.workflow.name'], toString(SpanName)))) AS Named,
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

CREATE OR REPLACE VIEW {database}.mast_runs {on_cluster} AS
WITH
    -- Concatenated, sorted and compacted: several times faster than ClickHouse's set of numbers.
    groupArrayArray(4194304)(s.Spans) AS stored_marks,
    arrayCompact(arraySort(stored_marks)) AS marks,
    groupArrayArray(2097152)(s.SpanIds) AS span_ids,
    groupArrayArray(2097152)(s.ErrorIds) AS error_ids,
    groupArrayArray(4194304)(s.Calls) AS stored_calls,
    -- Of a call that came with several contents, the one with the most input tokens counts, then output.
    arrayCompact(call -> bitShiftRight(call, 64), arrayReverseSort(stored_calls)) AS calls,
    arrayMap(call -> toUInt64(call), calls) AS used,
    -- Where several tools have recorded calls, of those with the same tokens there were as many as the tool
    -- saw that saw most.
    if(arrayUniq(arrayMap(use -> toUInt8(use), used)) > 1, arrayFilter((use, nth) -> nth = 1, used,
        arrayEnumerateUniq(arrayMap(use -> bitShiftRight(use, 8), used), arrayEnumerateUniq(used))), used) AS counted,
    -- A set is as large as it may be, or more was stored than is read: there was more.
    max(length(s.SpanIds)) >= 1048576 OR max(length(s.ErrorIds)) >= 1048576 OR max(length(s.Calls)) >= 2097152
        OR length(span_ids) >= 2097152 OR length(error_ids) >= 2097152 OR length(stored_calls) >= 4194304 AS is_full,
    max(s.Old) = 1 AS is_old,
    max(s.Said) AS said,
    position(said, '\n') AS line_break
SELECT
    s.RunKey AS RunKey,
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
    greatest(arrayUniq(arrayConcat(span_ids, arrayMap(call -> toUInt64(bitShiftRight(call, 64)), calls))),
        if(is_old, max(s.OldSpans), 0)) AS Spans,
    greatest(arrayUniq(error_ids), if(is_old, max(s.OldErrors), 0)) AS Errors,
    greatest(arraySum(use -> bitShiftRight(use, 36), counted), if(is_old, max(s.OldInputTokens), 0)) AS InputTokens,
    greatest(arraySum(use -> bitAnd(bitShiftRight(use, 8), 0xFFFFFFF), counted),
        if(is_old, max(s.OldOutputTokens), 0)) AS OutputTokens,
    arraySort(groupUniqArrayArray(1000)(s.Agents)) AS Agents,
    arraySort(groupUniqArrayArray(1000)(s.Models)) AS Models,
    if(line_break = 0, '', substring(said, 21, line_break - 21)) AS Outcome,
    if(line_break = 0, '', substring(said, line_break + 1)) AS OutcomeReason,
    max(s.TerminationReason) AS TerminationReason,
    -- Of a run beyond the bound it is made of what does not depend on which marks were kept.
    lower(hex(if(length(marks) >= 2097152 OR length(stored_marks) >= 4194304,
        cityHash64(Start, End, RootSeen, Outcome, OutcomeReason),
        cityHash64(marks, Outcome, OutcomeReason)))) AS Fingerprint,
    max(s.Kind) AS Kind,
    multiIf(is_old, 'about', is_full OR arrayExists(use -> bitShiftRight(use, 36) = 0xFFFFFFF
        OR bitAnd(bitShiftRight(use, 8), 0xFFFFFFF) = 0xFFFFFFF, counted), 'at least', 'exact') AS Totals,
    toUInt8(max(notEmpty(s.ErrorIds) OR notEmpty(s.Errors))) AS Failed
FROM {database}.mast_run_states AS s
GROUP BY s.RunKey, s.Project, s.TraceId;
