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
    SpanAttributes Map(LowCardinality(String), String) CODEC(ZSTD(1)),
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
-- everything: fewer merges, of more parts at a time, take a quarter off the cost of a span.
SETTINGS index_granularity = 1024, ttl_only_drop_parts = 1, min_parts_to_merge_at_once = 6{table_settings};

-- What dashboards need typed, computed on insert from the exporter's own columns, so that a stock
-- collector's INSERT fills it too. Added by ALTER: a table that the exporter made itself gets the
-- same columns.
ALTER TABLE {database}.otel_traces{local} {on_cluster}
    ADD COLUMN IF NOT EXISTS Project LowCardinality(String) MATERIALIZED ResourceAttributes['mast.project'],
    ADD COLUMN IF NOT EXISTS Operation LowCardinality(String) MATERIALIZED transform(multiIf(SpanAttributes['gen_ai.operation.name'] != '', SpanAttributes['gen_ai.operation.name'], SpanAttributes['openinference.span.kind'] != '', SpanAttributes['openinference.span.kind'], SpanAttributes['traceloop.span.kind']), ['LLM', 'TOOL', 'AGENT', 'agent', 'tool', 'workflow', 'text_completion', 'generate_content'], ['chat', 'execute_tool', 'invoke_agent', 'invoke_agent', 'execute_tool', 'invoke_workflow', 'chat', 'chat'], multiIf(SpanAttributes['gen_ai.operation.name'] != '', SpanAttributes['gen_ai.operation.name'], SpanAttributes['openinference.span.kind'] != '', SpanAttributes['openinference.span.kind'], SpanAttributes['traceloop.span.kind'])),
    ADD COLUMN IF NOT EXISTS Framework LowCardinality(String) MATERIALIZED {field:framework},
    ADD COLUMN IF NOT EXISTS AgentName LowCardinality(String) MATERIALIZED multiIf(SpanAttributes['gen_ai.agent.name'] != '', SpanAttributes['gen_ai.agent.name'], SpanAttributes['crewai.agent.role'] != '', SpanAttributes['crewai.agent.role'], SpanAttributes['graph.node.id'] != '', SpanAttributes['graph.node.id'], SpanAttributes['agent.name']),
    ADD COLUMN IF NOT EXISTS ToolName LowCardinality(String) MATERIALIZED multiIf(SpanAttributes['gen_ai.tool.name'] != '', SpanAttributes['gen_ai.tool.name'], SpanAttributes['tool.name']),
    ADD COLUMN IF NOT EXISTS Model LowCardinality(String) MATERIALIZED multiIf(SpanAttributes['gen_ai.response.model'] != '', SpanAttributes['gen_ai.response.model'], SpanAttributes['gen_ai.request.model'] != '', SpanAttributes['gen_ai.request.model'], SpanAttributes['llm.model_name']),
    ADD COLUMN IF NOT EXISTS ConversationId String MATERIALIZED {field:conversation} CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS Sender LowCardinality(String) MATERIALIZED {field:sender},
    ADD COLUMN IF NOT EXISTS Recipients Array(LowCardinality(String)) MATERIALIZED {strings:recipients},
    ADD COLUMN IF NOT EXISTS MessageId String MATERIALIZED SpanAttributes['mast.message.id'] CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS ContentHash String MATERIALIZED SpanAttributes['mast.message.content_hash'] CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS HandoffTarget LowCardinality(String) MATERIALIZED SpanAttributes['gen_ai.agent.handoff.target.name'],
    ADD COLUMN IF NOT EXISTS InputTokens UInt32 MATERIALIZED toUInt32OrZero(multiIf(SpanAttributes['gen_ai.usage.input_tokens'] != '', SpanAttributes['gen_ai.usage.input_tokens'], SpanAttributes['llm.token_count.prompt'] != '', SpanAttributes['llm.token_count.prompt'], SpanAttributes['gen_ai.usage.prompt_tokens'])),
    ADD COLUMN IF NOT EXISTS OutputTokens UInt32 MATERIALIZED toUInt32OrZero(multiIf(SpanAttributes['gen_ai.usage.output_tokens'] != '', SpanAttributes['gen_ai.usage.output_tokens'], SpanAttributes['llm.token_count.completion'] != '', SpanAttributes['llm.token_count.completion'], SpanAttributes['gen_ai.usage.completion_tokens'])),
    ADD COLUMN IF NOT EXISTS ErrorType LowCardinality(String) MATERIALIZED SpanAttributes['error.type'],
    ADD COLUMN IF NOT EXISTS ReceivedAt DateTime64(3) MATERIALIZED now64(3) CODEC(Delta, ZSTD(1));

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
