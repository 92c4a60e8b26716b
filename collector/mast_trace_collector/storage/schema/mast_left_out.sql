-- Runs whose spans were left out after their verdict, so that failures can be kept longer. Their states and verdicts
-- stay: every share counts them. One row for each run, whatever happened between: it is written before the spans are
-- deleted, and again as done. RunEnd is the end of the run, whose retention the row follows.
-- reader: project
CREATE TABLE IF NOT EXISTS {database}.mast_left_out{local} {on_cluster}
(
    Project LowCardinality(String),
    TraceId String CODEC(ZSTD(1)),
    RunKey UInt64 MATERIALIZED halfMD5(Project, TraceId) CODEC(NONE),
    LeftOutAt DateTime64(6) CODEC(Delta, ZSTD(1)),
    Done Bool,
    KeptShare Float64,
    ServiceName LowCardinality(String),
    Framework LowCardinality(String),
    -- What the spans alone held, so that a comparison of versions still counts the run.
    ServiceVersion LowCardinality(String),
    Branch LowCardinality(String),
    Spans UInt64,
    InputTokens UInt64,
    OutputTokens UInt64,
    RunStart DateTime64(9) CODEC(Delta, ZSTD(1)),
    RunEnd DateTime64(9) CODEC(Delta, ZSTD(1)),
    RunSeen DateTime64(3) CODEC(Delta, ZSTD(1)),
    UserId String CODEC(ZSTD(1)),
    ConversationId String CODEC(ZSTD(1)),
    -- False for runs that schema 25 left out: their spans are gone, and nobody knows their user and session.
    GroupsKnown Bool,
    -- The judge looks up the runs that have been seen of late.
    INDEX idx_seen RunSeen TYPE minmax GRANULARITY 1
)
ENGINE = {replicated}ReplacingMergeTree(LeftOutAt)
PARTITION BY toDate(RunEnd)
ORDER BY (Project, TraceId)
{ttl:toDateTime(RunEnd)}
SETTINGS index_granularity = 1024{table_settings};

{distributed:mast_left_out, cityHash64(TraceId)};
