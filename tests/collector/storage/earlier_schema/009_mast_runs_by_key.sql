-- A condition on the runs' keys is met before anything is put together, and reads 8 bytes of a state.
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
GROUP BY s.RunKey, s.Project, s.TraceId;
