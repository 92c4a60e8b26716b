-- Replays of runs. They are no runs: none of these rows is a span, a run's state or a verdict, so nothing that
-- counts runs, tokens or cost can see them. RunEnd is the end of the original run, whose retention they follow.
--
-- An experiment is planned once in a run's lifetime: of several plans of one id the first stays.
-- reader: project
CREATE TABLE IF NOT EXISTS {database}.mast_replay_plans{local} {on_cluster}
(
    Project LowCardinality(String),
    TraceId String CODEC(ZSTD(1)),
    PlanId String CODEC(ZSTD(1)),
    Name LowCardinality(String),
    PlannedAt DateTime64(6) CODEC(Delta, ZSTD(1)),
    Fingerprint String CODEC(ZSTD(1)),
    ServiceName LowCardinality(String),
    RunEnd DateTime64(9) CODEC(Delta, ZSTD(1)),
    Plan String CODEC(ZSTD(1)),
    Precedence UInt64
)
ENGINE = {replicated}ReplacingMergeTree(Precedence)
PARTITION BY toDate(RunEnd)
ORDER BY (Project, TraceId, PlanId)
{ttl:toDateTime(RunEnd)}
SETTINGS index_granularity = 1024{table_settings};

{distributed:mast_replay_plans, cityHash64(TraceId)};

-- One row for each replay. It is written as reserved, with the most that it may cost, before the program is
-- started, and again when it has ended: what a killed experiment has spent at most is known. Of several results
-- with one number the first stays, so that none can be replaced by a more welcome one.
-- reader: project
CREATE TABLE IF NOT EXISTS {database}.mast_replays{local} {on_cluster}
(
    Project LowCardinality(String),
    TraceId String CODEC(ZSTD(1)),
    PlanId String CODEC(ZSTD(1)),
    Sequence UInt32,
    Arm LowCardinality(String),
    Step Int32,
    SpanId String CODEC(ZSTD(1)),
    FixSource LowCardinality(String),
    FixHash String CODEC(ZSTD(1)),
    FixText String CODEC(ZSTD(1)),
    FixModel LowCardinality(String),
    Hold Bool,
    Phase LowCardinality(String),
    Pair Int32,
    Status LowCardinality(String),
    Outcome LowCardinality(String),
    Reason String CODEC(ZSTD(1)),
    ServedCalls UInt32,
    ServedTools UInt32,
    LiveCalls UInt32,
    LiveTools UInt32,
    InputTokens UInt64,
    OutputTokens UInt64,
    CostUsd Nullable(Float64),
    Models Array(LowCardinality(String)),
    CallsHash String CODEC(ZSTD(1)),
    Answer String CODEC(ZSTD(1)),
    StartedAt DateTime64(6) CODEC(Delta, ZSTD(1)),
    Seconds Float64,
    ProgramHash String CODEC(ZSTD(1)),
    Holder String CODEC(ZSTD(1)),
    ServiceName LowCardinality(String),
    RunEnd DateTime64(9) CODEC(Delta, ZSTD(1)),
    Precedence UInt64
)
ENGINE = {replicated}ReplacingMergeTree(Precedence)
PARTITION BY toDate(RunEnd)
ORDER BY (Project, TraceId, PlanId, Sequence)
{ttl:toDateTime(RunEnd)}
SETTINGS index_granularity = 1024{table_settings};

{distributed:mast_replays, cityHash64(TraceId)};

-- The conclusion that the replays of a run allow; the latest one counts. Its steps are those of the run as it was
-- with this fingerprint.
-- reader: project
CREATE TABLE IF NOT EXISTS {database}.mast_confirmations{local} {on_cluster}
(
    Project LowCardinality(String),
    TraceId String CODEC(ZSTD(1)),
    RunKey UInt64 MATERIALIZED halfMD5(Project, TraceId) CODEC(NONE),
    ConfirmedAt DateTime64(6) CODEC(Delta, ZSTD(1)),
    Fingerprint String CODEC(ZSTD(1)),
    PlanId String CODEC(ZSTD(1)),
    Status LowCardinality(String),
    Text String CODEC(ZSTD(1)),
    OriginStep Nullable(Int32),
    OriginAgent LowCardinality(String),
    OriginSpanId String CODEC(ZSTD(1)),
    PointOfNoReturn Nullable(Int32),
    PointAgent LowCardinality(String),
    Refuted Array(Int32),
    Curve Nested
    (
        Step Int32,
        Successes UInt32,
        Runs UInt32,
        Low Float64,
        High Float64
    ),
    Contrasts Nested
    (
        Step Int32,
        Agent LowCardinality(String),
        Source LowCardinality(String),
        FixSuccesses UInt32,
        KeepSuccesses UInt32,
        Pairs UInt32,
        Censored UInt32,
        EValue Float64,
        Threshold Float64,
        Effect Float64
    ),
    PlannedContrasts UInt32,
    Replays UInt32,
    LiveCalls UInt64,
    CostUsd Nullable(Float64),
    Json String CODEC(ZSTD(1)),
    ServiceName LowCardinality(String),
    RunEnd DateTime64(9) CODEC(Delta, ZSTD(1))
)
ENGINE = {replicated}ReplacingMergeTree(ConfirmedAt)
PARTITION BY toDate(RunEnd)
ORDER BY (Project, TraceId)
{ttl:toDateTime(RunEnd)}
SETTINGS index_granularity = 1024{table_settings};

{distributed:mast_confirmations, cityHash64(TraceId)};
