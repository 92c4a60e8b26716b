-- What makes the dashboards quick: the newest verdict of each run in a narrow row, with what the run
-- was when it was judged, so that a run which has not changed since need not be put together again.

-- A run in 8 bytes, for grouping and joining: an order of magnitude cheaper than its project and id.
-- Half an MD5, so that nobody can find an id that is taken for another project's run.
ALTER TABLE {database}.mast_run_states{local} {on_cluster}
    ADD COLUMN IF NOT EXISTS RunKey UInt64 MATERIALIZED halfMD5(Project, TraceId) CODEC(NONE);

ALTER TABLE {database}.mast_run_states {on_cluster}
    ADD COLUMN IF NOT EXISTS RunKey UInt64 MATERIALIZED halfMD5(Project, TraceId);

ALTER TABLE {database}.mast_run_states{local} {on_cluster} MATERIALIZE COLUMN RunKey;

-- The run as the judge read it. RunSeen is its LastSeen then: a later one means that something came.
-- 0 says that the verdict was written before this was kept.
ALTER TABLE {database}.mast_verdicts{local} {on_cluster}
    ADD COLUMN IF NOT EXISTS RunKey UInt64 MATERIALIZED halfMD5(Project, TraceId) CODEC(NONE),
    ADD COLUMN IF NOT EXISTS RunSeen DateTime64(3) DEFAULT 0,
    ADD COLUMN IF NOT EXISTS RunSpans UInt64,
    ADD COLUMN IF NOT EXISTS RunErrors UInt64,
    ADD COLUMN IF NOT EXISTS RunInputTokens UInt64,
    ADD COLUMN IF NOT EXISTS RunOutputTokens UInt64,
    ADD COLUMN IF NOT EXISTS RunAgents Array(LowCardinality(String)),
    ADD COLUMN IF NOT EXISTS RunModels Array(LowCardinality(String)),
    ADD COLUMN IF NOT EXISTS RunOutcome LowCardinality(String),
    ADD COLUMN IF NOT EXISTS RunOutcomeReason String,
    ADD COLUMN IF NOT EXISTS RunTermination LowCardinality(String);

ALTER TABLE {database}.mast_verdicts {on_cluster}
    ADD COLUMN IF NOT EXISTS RunKey UInt64 MATERIALIZED halfMD5(Project, TraceId),
    ADD COLUMN IF NOT EXISTS RunSeen DateTime64(3) DEFAULT 0,
    ADD COLUMN IF NOT EXISTS RunSpans UInt64,
    ADD COLUMN IF NOT EXISTS RunErrors UInt64,
    ADD COLUMN IF NOT EXISTS RunInputTokens UInt64,
    ADD COLUMN IF NOT EXISTS RunOutputTokens UInt64,
    ADD COLUMN IF NOT EXISTS RunAgents Array(LowCardinality(String)),
    ADD COLUMN IF NOT EXISTS RunModels Array(LowCardinality(String)),
    ADD COLUMN IF NOT EXISTS RunOutcome LowCardinality(String),
    ADD COLUMN IF NOT EXISTS RunOutcomeReason String,
    ADD COLUMN IF NOT EXISTS RunTermination LowCardinality(String);

ALTER TABLE {database}.mast_verdicts{local} {on_cluster} MATERIALIZE COLUMN RunKey;

-- A view keeps the columns that its table had when it was made.
CREATE OR REPLACE VIEW {database}.mast_latest_verdicts {on_cluster} AS
SELECT *
FROM {database}.mast_verdicts
ORDER BY JudgedAt DESC
LIMIT 1 BY Project, TraceId;

-- A run that is judged again has two rows until ClickHouse merges them, for ever if it began on another
-- day then: who reads looks for keys that come twice. FINAL would do it too, but merges all parts
-- while it reads. The last settings make one part of each day that is over.
-- reader: project
CREATE TABLE IF NOT EXISTS {database}.mast_findings{local} {on_cluster}
(
    Project LowCardinality(String),
    TraceId String CODEC(ZSTD(1)),
    RunKey UInt64 DEFAULT halfMD5(Project, TraceId) CODEC(NONE),
    RunStart DateTime64(9) CODEC(LZ4),
    RunEnd DateTime64(9) CODEC(LZ4),
    RunSeen DateTime64(3) CODEC(LZ4),
    JudgedAt DateTime64(3) CODEC(LZ4),
    Fingerprint String CODEC(ZSTD(1)),
    JudgeVersion LowCardinality(String),
    Status Enum8('ok' = 1, 'unscored' = 2),
    StatusReason String CODEC(ZSTD(1)),
    Method LowCardinality(String),
    ServiceName LowCardinality(String),
    Framework LowCardinality(String),
    Name LowCardinality(String),
    Steps UInt32,
    Outcome LowCardinality(String),
    Modes Nested
    (
        Code LowCardinality(String),
        Probability Float32,
        Evidence LowCardinality(String)
    ),
    -- Bit i is set for the i-th of the fourteen failure modes.
    ModeBits UInt16 DEFAULT arraySum(code -> bitShiftLeft(toUInt16(1),
        indexOf(['1.1', '1.2', '1.3', '1.4', '1.5', '2.1', '2.2', '2.3', '2.4', '2.5', '2.6', '3.1', '3.2', '3.3'],
            code) - 1),
        arrayDistinct(arrayFilter(code -> code IN ('1.1', '1.2', '1.3', '1.4', '1.5', '2.1', '2.2', '2.3', '2.4',
            '2.5', '2.6', '3.1', '3.2', '3.3'), arrayMap(code -> toString(code), Modes.Code)))),
    DecisiveStep Nullable(UInt32),
    DecisiveAgent LowCardinality(String),
    DecisiveProbability Float32,
    DecisiveRule LowCardinality(String),
    DecisiveReason String CODEC(ZSTD(1)),
    CostUsd Float64,
    RunSpans UInt64,
    RunErrors UInt64,
    RunInputTokens UInt64,
    RunOutputTokens UInt64,
    RunAgents Array(LowCardinality(String)),
    RunModels Array(LowCardinality(String)),
    RunOutcome LowCardinality(String),
    RunOutcomeReason String CODEC(ZSTD(1)),
    RunTermination LowCardinality(String)
)
ENGINE = {replicated}ReplacingMergeTree(JudgedAt)
PARTITION BY toDate(RunStart)
ORDER BY RunKey
{ttl:toDateTime(RunEnd)}
SETTINGS index_granularity = 8192, min_age_to_force_merge_seconds = 3600,
    min_age_to_force_merge_on_partition_only = 1{table_settings};

{distributed:mast_findings, cityHash64(TraceId)};

-- reader: none
CREATE MATERIALIZED VIEW IF NOT EXISTS {database}.mast_findings_mv {on_cluster}
TO {database}.mast_findings{local} AS
SELECT {finding_columns}
FROM {database}.mast_verdicts{local};

-- What is there already; a row that came by the view meanwhile is the same row.
INSERT INTO {database}.mast_findings ({finding_columns})
SELECT {finding_columns}
FROM {database}.mast_verdicts
SETTINGS max_partitions_per_insert_block = 0, distributed_foreground_insert = 1;
