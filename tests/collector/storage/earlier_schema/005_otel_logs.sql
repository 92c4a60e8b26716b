-- The table of the OpenTelemetry Collector's ClickHouse exporter for logs, column for column, in the
-- order of runs like otel_traces: what is looked for here is what was said of a run.
-- reader: project
CREATE TABLE IF NOT EXISTS {database}.otel_logs{local} {on_cluster}
(
    Timestamp DateTime64(9) CODEC(Delta, ZSTD(1)),
    TimestampTime DateTime DEFAULT toDateTime(Timestamp),
    TraceId String CODEC(ZSTD(1)),
    SpanId String CODEC(ZSTD(1)),
    TraceFlags UInt8,
    SeverityText LowCardinality(String) CODEC(ZSTD(1)),
    SeverityNumber UInt8,
    ServiceName LowCardinality(String) CODEC(ZSTD(1)),
    Body String CODEC(ZSTD(1)),
    ResourceSchemaUrl LowCardinality(String) CODEC(ZSTD(1)),
    ResourceAttributes Map(LowCardinality(String), String) CODEC(ZSTD(1)),
    ScopeSchemaUrl LowCardinality(String) CODEC(ZSTD(1)),
    ScopeName String CODEC(ZSTD(1)),
    ScopeVersion LowCardinality(String) CODEC(ZSTD(1)),
    ScopeAttributes Map(LowCardinality(String), String) CODEC(ZSTD(1)),
    LogAttributes Map(LowCardinality(String), String) CODEC(ZSTD(1)),
    EventName String CODEC(ZSTD(1))
)
ENGINE = {replicated}MergeTree
PARTITION BY toDate(TimestampTime)
ORDER BY (TraceId, Timestamp)
{ttl:TimestampTime}
SETTINGS index_granularity = 1024, ttl_only_drop_parts = 1{table_settings};

-- By ALTER, for a table that the exporter made itself; older ones of it had no name of the event.
ALTER TABLE {database}.otel_logs{local} {on_cluster}
    ADD COLUMN IF NOT EXISTS EventName String CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS Project LowCardinality(String) MATERIALIZED ResourceAttributes['mast.project'];

{distributed:otel_logs, cityHash64(TraceId)};

-- What any tool found out about a run or a span: the events gen_ai.evaluation.result of OpenTelemetry.
-- A name is given only once for each thing that it is about; the latest word counts.
-- reader: view
CREATE VIEW IF NOT EXISTS {database}.mast_evaluations {on_cluster} AS
SELECT
    Project,
    TraceId,
    SpanId,
    Timestamp,
    ServiceName,
    LogAttributes['gen_ai.evaluation.name'] AS Name,
    toFloat64OrNull(LogAttributes['gen_ai.evaluation.score.value']) AS Score,
    LogAttributes['gen_ai.evaluation.score.label'] AS Label,
    LogAttributes['gen_ai.evaluation.explanation'] AS Explanation,
    LogAttributes['error.type'] AS ErrorType
FROM {database}.otel_logs
WHERE if(EventName != '', EventName, LogAttributes['event.name']) = 'gen_ai.evaluation.result'
ORDER BY Timestamp DESC
LIMIT 1 BY Project, TraceId, SpanId, Name, ServiceName;
