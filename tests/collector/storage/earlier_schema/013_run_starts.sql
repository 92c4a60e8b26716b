-- A run is known from its beginning: the record that says so is a log record, for the run's own span is sent
-- when it has ended, which a process that is killed does not live to see. What the record says is what that
-- span will say, and is merged like it: it may come twice, late, or not at all. It is no span and no end.
-- reader: none
CREATE MATERIALIZED VIEW IF NOT EXISTS {database}.mast_run_starts_mv {on_cluster}
TO {database}.mast_run_states{local} AS
WITH
    multiIf(LogAttributes['gen_ai.workflow.name'] != '', LogAttributes['gen_ai.workflow.name'],
        LogAttributes['gen_ai.agent.name'] != '', LogAttributes['gen_ai.agent.name'], Body) AS name,
    if(LogAttributes['mast.run.kind'] != '', LogAttributes['mast.run.kind'],
        ResourceAttributes['mast.run.kind']) AS kind
SELECT
    Project,
    TraceId,
    today() AS Day,
    min(Timestamp) AS Start,
    max(Timestamp) AS End,
    now64(3) AS LastSeen,
    toUInt8(0) AS Root,
    -- As of a root inside of an application's trace: before all spans but a root that is the trace's own.
    min(concat('1', leftPad(toString(greatest(toUnixTimestamp64Nano(Timestamp), 0)), 19, '0'), name)) AS Named,
    max(toString(ServiceName)) AS ServiceName,
    max(LogAttributes['mast.framework']) AS Framework,
    max(LogAttributes['gen_ai.conversation.id']) AS ConversationId,
    max(substring(kind, 1, 64)) AS Kind,
    toUInt8(0) AS Old
FROM {database}.otel_logs{local}
WHERE TraceId != '' AND SpanId != ''
    AND if(EventName != '', EventName, LogAttributes['event.name']) = 'mast.run.start'
GROUP BY Project, TraceId;
