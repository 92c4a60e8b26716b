-- What the judge found. Judging a run again with the same content and the same judge replaces the
-- row; another fingerprint or another judge version is another row.
-- reader: project
CREATE TABLE IF NOT EXISTS {database}.mast_verdicts{local} {on_cluster}
(
    Project LowCardinality(String),
    TraceId String CODEC(ZSTD(1)),
    Fingerprint String CODEC(ZSTD(1)),
    JudgeVersion LowCardinality(String),
    JudgedAt DateTime64(3) CODEC(Delta, ZSTD(1)),
    Status Enum8('ok' = 1, 'unscored' = 2),
    StatusReason String,
    Method LowCardinality(String),
    ServiceName LowCardinality(String),
    Framework LowCardinality(String),
    Name LowCardinality(String),
    RunStart DateTime64(9) CODEC(Delta, ZSTD(1)),
    RunEnd DateTime64(9) CODEC(Delta, ZSTD(1)),
    Steps UInt32,
    Outcome LowCardinality(String),
    FailureProbability Float32,
    Modes Nested
    (
        Code LowCardinality(String),
        Probability Float32,
        Evidence LowCardinality(String),
        Reason String,
        Steps Array(UInt32),
        SpanIds Array(String),
        Quotes Array(String)
    ),
    Abstained Bool,
    DecisiveStep Nullable(UInt32),
    DecisiveSpanId String,
    DecisiveAgent LowCardinality(String),
    DecisiveProbability Float32,
    DecisiveRule LowCardinality(String),
    DecisiveReason String CODEC(ZSTD(1)),
    MinimalFix String CODEC(ZSTD(1)),
    Candidates Nested
    (
        Step UInt32,
        SpanId String,
        Agent LowCardinality(String),
        Probability Float32,
        Rule LowCardinality(String)
    ),
    Model LowCardinality(String),
    Calls UInt32,
    InputTokens UInt64,
    OutputTokens UInt64,
    CostUsd Float64
)
ENGINE = {replicated}ReplacingMergeTree(JudgedAt)
PARTITION BY toDate(RunEnd)
ORDER BY (Project, TraceId, Fingerprint, JudgeVersion)
{ttl:toDateTime(RunEnd)}
SETTINGS index_granularity = 1024{table_settings};

{distributed:mast_verdicts, cityHash64(TraceId)};

-- The verdict that counts: the newest of each run, whichever judge gave it.
-- reader: view
CREATE VIEW IF NOT EXISTS {database}.mast_latest_verdicts {on_cluster} AS
SELECT *
FROM {database}.mast_verdicts
ORDER BY JudgedAt DESC
LIMIT 1 BY Project, TraceId;

-- What people say of a run: the latest word of each annotator counts.
-- reader: project
CREATE TABLE IF NOT EXISTS {database}.mast_human_labels{local} {on_cluster}
(
    Project LowCardinality(String),
    TraceId String CODEC(ZSTD(1)),
    Annotator LowCardinality(String),
    LabelledAt DateTime64(3),
    Outcome LowCardinality(String),
    Modes Array(LowCardinality(String)),
    DecisiveStep Nullable(UInt32),
    DecisiveAgent LowCardinality(String),
    Note String CODEC(ZSTD(1))
)
ENGINE = {replicated}ReplacingMergeTree(LabelledAt)
ORDER BY (Project, TraceId, Annotator)
SETTINGS index_granularity = 1024{table_settings};

{distributed:mast_human_labels, cityHash64(TraceId)};

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
    INDEX idx_trace_id TraceId TYPE bloom_filter(0.01) GRANULARITY 1
)
ENGINE = {replicated}ReplacingMergeTree
PARTITION BY toYYYYMM(StartedAt)
ORDER BY (Project, StartedAt, CallId)
{ttl:toDateTime(StartedAt)}
SETTINGS index_granularity = 1024{table_settings};

{distributed:mast_judge_calls, cityHash64(TraceId)};
