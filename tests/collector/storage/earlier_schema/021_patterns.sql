-- What recurs over runs. One narrow row for each judged run, with all that patterns are counted from: the places and
-- masked texts of its findings, the actions of its agents, its service's version. A run that is judged again has a new
-- row, and the newest verdict's row counts, so that nothing counts twice; a run that is erased or has expired
-- is in no share.
-- reader: project
CREATE TABLE IF NOT EXISTS {database}.mast_pattern_runs{local} {on_cluster}
(
    Project LowCardinality(String),
    TraceId String CODEC(ZSTD(1)),
    RunKey UInt64 DEFAULT halfMD5(Project, TraceId) CODEC(NONE),
    JudgedAt DateTime64(3) CODEC(LZ4),
    Fingerprint String CODEC(ZSTD(1)),
    RunStart DateTime64(9) CODEC(LZ4),
    RunEnd DateTime64(9) CODEC(LZ4),
    ServiceName LowCardinality(String),
    Framework LowCardinality(String),
    Version LowCardinality(String),
    Outcome LowCardinality(String),
    ExaminedBits UInt16,
    Steps UInt32,
    DecisiveStep Nullable(UInt32),
    DecisiveAgent LowCardinality(String),
    Tokens UInt64,
    Hits Nested
    (
        Code LowCardinality(String),
        Agent LowCardinality(String),
        Peer LowCardinality(String),
        Tool LowCardinality(String),
        Template UInt64,
        Text String,
        Step UInt32,
        SpanId String
    ) CODEC(ZSTD(1)),
    Actions Nested
    (
        Agent LowCardinality(String),
        Name LowCardinality(String)
    ) CODEC(ZSTD(1))
)
ENGINE = {replicated}ReplacingMergeTree(JudgedAt)
PARTITION BY toDate(RunEnd)
ORDER BY RunKey
{ttl:toDateTime(RunEnd)}
SETTINGS index_granularity = 8192, min_age_to_force_merge_seconds = 3600,
    min_age_to_force_merge_on_partition_only = 1{table_settings};

{distributed:mast_pattern_runs, cityHash64(TraceId)};

-- What people said of a pattern; the latest word counts. OldVersions are the versions that do not have the fix.
-- reader: project
CREATE TABLE IF NOT EXISTS {database}.mast_pattern_states{local} {on_cluster}
(
    Project LowCardinality(String),
    PatternId String,
    ChangedAt DateTime64(6) CODEC(Delta, ZSTD(1)),
    State LowCardinality(String),
    Version String,
    OldVersions Array(String),
    Author LowCardinality(String),
    Note String CODEC(ZSTD(1))
)
ENGINE = {replicated}ReplacingMergeTree(ChangedAt)
ORDER BY (Project, PatternId)
SETTINGS index_granularity = 1024{table_settings};

{distributed:mast_pattern_states, cityHash64(PatternId)};

-- A model's sentence on a pattern, with the passages that it quotes. They stand in the runs that are named; RunEnd is the end
-- of the last of these, whose retention the row follows.
-- reader: project
CREATE TABLE IF NOT EXISTS {database}.mast_pattern_names{local} {on_cluster}
(
    Project LowCardinality(String),
    PatternId String,
    NamedAt DateTime64(6) CODEC(Delta, ZSTD(1)),
    Sentence String CODEC(ZSTD(1)),
    Quotes Array(String) CODEC(ZSTD(1)),
    TraceIds Array(String) CODEC(ZSTD(1)),
    Model LowCardinality(String),
    RunEnd DateTime64(9) CODEC(Delta, ZSTD(1))
)
ENGINE = {replicated}ReplacingMergeTree(NamedAt)
PARTITION BY toDate(RunEnd)
ORDER BY (Project, PatternId)
{ttl:toDateTime(RunEnd)}
SETTINGS index_granularity = 1024{table_settings};

{distributed:mast_pattern_names, cityHash64(PatternId)};
