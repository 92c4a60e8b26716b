-- The table of the OpenTelemetry Collector's ClickHouse exporter, column for column, so that stock
-- collectors write it and stock tools read it. Ordered by run, in small granules: a run is read
-- far more often than a service's time range.
-- reader: project
CREATE TABLE IF NOT EXISTS {database}.otel_traces{local} {on_cluster}
(
    Timestamp DateTime64(9) CODEC(Delta, ZSTD(1)),
    TraceId String CODEC(ZSTD(1)),
    SpanId String CODEC(ZSTD(1)),
    ParentSpanId String CODEC(ZSTD(1)),
    TraceState String CODEC(ZSTD(1)),
    SpanName LowCardinality(String) CODEC(ZSTD(1)),
    SpanKind LowCardinality(String) CODEC(ZSTD(1)),
    ServiceName LowCardinality(String) CODEC(ZSTD(1)),
    ResourceAttributes Map(LowCardinality(String), String) CODEC(ZSTD(1)),
    ScopeName String CODEC(ZSTD(1)),
    ScopeVersion String CODEC(ZSTD(1)),
    -- Long texts that come again within a megabyte are found by the second level of ZSTD.
    SpanAttributes Map(LowCardinality(String), String) CODEC(ZSTD(2)),
    Duration UInt64 CODEC(ZSTD(1)),
    StatusCode LowCardinality(String) CODEC(ZSTD(1)),
    StatusMessage String CODEC(ZSTD(1)),
    Events Nested
    (
        Timestamp DateTime64(9),
        Name LowCardinality(String),
        Attributes Map(LowCardinality(String), String)
    ) CODEC(ZSTD(1)),
    Links Nested
    (
        TraceId String,
        SpanId String,
        TraceState String,
        Attributes Map(LowCardinality(String), String)
    ) CODEC(ZSTD(1))
)
ENGINE = {replicated}MergeTree
PARTITION BY toDate(Timestamp)
ORDER BY (TraceId, Timestamp, SpanId)
{ttl:toDateTime(Timestamp)}
-- Spans come in the order of time and are kept in the order of runs, so that each merge rewrites
-- everything: fewer merges, of more parts at a time, take a quarter off the cost of a span. A part of
-- one insert is one file, which is synced once, not two hundred.
SETTINGS index_granularity = 1024, ttl_only_drop_parts = 1, min_parts_to_merge_at_once = 10{table_settings},
    min_bytes_for_wide_part = 67108864;

-- What dashboards need typed, computed on insert from the exporter's own columns, so that a stock collector's INSERT
-- fills it too. By ALTER, because a table that the exporter made itself gets the same columns, codec and settings; what
-- it holds already computes them when it is read.
ALTER TABLE {database}.otel_traces{local} {on_cluster}
    MODIFY COLUMN SpanAttributes CODEC(ZSTD(2)),
    ADD COLUMN IF NOT EXISTS Project LowCardinality(String) MATERIALIZED ResourceAttributes['mast.project'],
    ADD COLUMN IF NOT EXISTS Operation LowCardinality(String) MATERIALIZED {operation},
    ADD COLUMN IF NOT EXISTS Framework LowCardinality(String) MATERIALIZED {field:framework},
    -- On a run `gen_ai.agent.name` names the workflow, which is no agent.
    ADD COLUMN IF NOT EXISTS AgentName LowCardinality(String) MATERIALIZED if(Operation = 'invoke_workflow', '', {agent}),
    -- A tool of MLflow has the name of its span.
    ADD COLUMN IF NOT EXISTS ToolName LowCardinality(String) MATERIALIZED if({field:tool} = '' AND Operation = 'execute_tool'
        AND SpanAttributes['mlflow.spanType'] != '', SpanName, {field:tool}),
    ADD COLUMN IF NOT EXISTS Model LowCardinality(String) MATERIALIZED {field:model},
    ADD COLUMN IF NOT EXISTS ConversationId String MATERIALIZED {field:conversation} CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS Sender LowCardinality(String) MATERIALIZED {field:sender},
    ADD COLUMN IF NOT EXISTS Recipients Array(LowCardinality(String)) MATERIALIZED {strings:recipients},
    ADD COLUMN IF NOT EXISTS HandoffTarget LowCardinality(String) MATERIALIZED {field:handoff_target},
    ADD COLUMN IF NOT EXISTS InputTokens UInt32 MATERIALIZED toUInt32(least(toUInt64OrZero({field:input_tokens}), 0xFFFFFFFF)),
    ADD COLUMN IF NOT EXISTS OutputTokens UInt32 MATERIALIZED toUInt32(least(toUInt64OrZero({field:output_tokens}), 0xFFFFFFFF)),
    ADD COLUMN IF NOT EXISTS ErrorType LowCardinality(String) MATERIALIZED SpanAttributes['error.type'],
    ADD COLUMN IF NOT EXISTS ReceivedAt DateTime64(3) MATERIALIZED now64(3) CODEC(Delta, ZSTD(1)),
    -- A column for each of these two was paid for and never asked for.
    ADD COLUMN IF NOT EXISTS MessageId String ALIAS SpanAttributes['mast.message.id'],
    ADD COLUMN IF NOT EXISTS ContentHash String ALIAS SpanAttributes['mast.message.content_hash'],
    -- Runs are grouped by user and by version of their service.
    ADD COLUMN IF NOT EXISTS UserId String MATERIALIZED if(SpanAttributes['user.id'] != '', SpanAttributes['user.id'],
        SpanAttributes['enduser.id']) CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS ServiceVersion LowCardinality(String) MATERIALIZED ResourceAttributes['service.version'],
    -- Prices and counts of model calls ask for what follows of every call in a range, and would read all of its texts.
    ADD COLUMN IF NOT EXISTS Provider LowCardinality(String) MATERIALIZED multiIf(
        SpanAttributes['gen_ai.provider.name'] != '', SpanAttributes['gen_ai.provider.name'],
        SpanAttributes['gen_ai.system'] != '', SpanAttributes['gen_ai.system'], SpanAttributes['llm.provider']),
    ADD COLUMN IF NOT EXISTS CacheReadTokens UInt32 MATERIALIZED
        toUInt32(least(toUInt64OrZero({field:cache_read_tokens}), 4294967295)) CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS CacheWriteTokens UInt32 MATERIALIZED
        toUInt32(least(toUInt64OrZero({field:cache_write_tokens}), 4294967295)) CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS InputHash UInt64 MATERIALIZED if(SpanAttributes['mast.input.message_ids'] = '', 0,
        sipHash64(SpanAttributes['mast.input.message_ids'])) CODEC(ZSTD(1)),
    -- Tells tools apart that recorded the same call: 0 is ours.
    ADD COLUMN IF NOT EXISTS Recorder UInt8 MATERIALIZED if(SpanAttributes['mast.framework'] != ''
        OR startsWith(ScopeName, 'mast_trace'), 0, 1 + cityHash64(ScopeName) % 255) CODEC(ZSTD(1));

ALTER TABLE {database}.otel_traces{local} {on_cluster}
    MODIFY SETTING min_bytes_for_wide_part = 67108864, min_parts_to_merge_at_once = 10;

{distributed:otel_traces, cityHash64(TraceId)};

-- The exporter's companion: Grafana's trace view looks up a trace's time range here.
-- reader: traces
CREATE TABLE IF NOT EXISTS {database}.otel_traces_trace_id_ts{local} {on_cluster}
(
    TraceId String CODEC(ZSTD(1)),
    Start DateTime CODEC(Delta, ZSTD(1)),
    End DateTime CODEC(Delta, ZSTD(1)),
    INDEX idx_trace_id TraceId TYPE bloom_filter(0.01) GRANULARITY 1
)
ENGINE = {replicated}MergeTree
PARTITION BY toDate(Start)
ORDER BY (TraceId, Start)
{ttl:toDateTime(Start)}
SETTINGS index_granularity = 8192, ttl_only_drop_parts = 1{table_settings};

{distributed:otel_traces_trace_id_ts, cityHash64(TraceId)};

-- reader: none
CREATE MATERIALIZED VIEW IF NOT EXISTS {database}.otel_traces_trace_id_ts_mv {on_cluster}
TO {database}.otel_traces_trace_id_ts{local} AS
SELECT TraceId, toDateTime(min(Timestamp)) AS Start, toDateTime(max(Timestamp)) AS End
FROM {database}.otel_traces{local}
WHERE TraceId != ''
GROUP BY TraceId;
