-- The ledger: one row per call of a judge's model, written when the call ends. It keeps the answer, so
-- that a judge that is stopped in the middle of a run does not pay for it again.
-- reader: project
CREATE TABLE IF NOT EXISTS {database}.mast_judge_calls{local} {on_cluster}
(
    CallId String,
    Project LowCardinality(String),
    TraceId String CODEC(ZSTD(1)),
    JudgeVersion LowCardinality(String),
    Stage LowCardinality(String),
    Model LowCardinality(String),
    StartedAt DateTime64(3) CODEC(Delta, ZSTD(1)),
    DurationMs UInt32,
    Status LowCardinality(String),
    Error String,
    Retries UInt16,
    InputTokens UInt64,
    CachedTokens UInt64,
    OutputTokens UInt64,
    CostUsd Float64,
    RequestHash String,
    Answer String CODEC(ZSTD(1)),
    -- The number of the reading: a model may read a run several times.
    Sample UInt8 DEFAULT 1,
    INDEX idx_trace_id TraceId TYPE bloom_filter(0.01) GRANULARITY 1
)
ENGINE = {replicated}ReplacingMergeTree
PARTITION BY toYYYYMM(StartedAt)
ORDER BY (Project, StartedAt, CallId)
{ttl:toDateTime(StartedAt)}
SETTINGS index_granularity = 1024{table_settings};

{distributed:mast_judge_calls, cityHash64(TraceId)};
