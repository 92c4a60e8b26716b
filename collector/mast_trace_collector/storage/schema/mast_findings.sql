-- What makes the dashboards quick: the newest verdict of each run in a narrow row, with what the run
-- was when it was judged, so that a run which has not changed since need not be put together again. The row is the
-- verdict as it is shown: it says what replays have left of it. The judge's verdict itself stays in mast_verdicts.
--
-- A run that is judged again has two rows until ClickHouse merges them, for ever if it began on another
-- day then: who reads looks for keys that come twice. FINAL would do it too, but merges all parts
-- while it reads. The last settings make one part of each day that is over.
-- reader: project
CREATE TABLE IF NOT EXISTS {database}.mast_findings{local} {on_cluster}
(
    Project LowCardinality(String),
    TraceId String CODEC(ZSTD(1)),
    -- A run in 8 bytes, for grouping and joining: an order of magnitude cheaper than its project and id.
    -- Half an MD5, so that nobody can find an id that is taken for another project's run.
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
    RunTermination LowCardinality(String),
    Kind LowCardinality(String),
    -- As in ModeBits.
    ExaminedBits UInt16,
    Calibrated Bool,
    DecisiveSpanId String CODEC(ZSTD(1)),
    `LookFirst.Step` Array(UInt32),
    `LookFirst.Agent` Array(LowCardinality(String)),
    `LookFirst.Basis` Array(LowCardinality(String)),
    `LookFirst.Why` Array(String) CODEC(ZSTD(1)),
    Confirmation LowCardinality(String),
    -- 0 in the row that the view below makes of a verdict. Who stores a conclusion of replays, or a verdict
    -- on a run that has one, adds a row of the same JudgedAt that shows it: among these the newest ShownAt counts.
    ShownAt DateTime64(6) DEFAULT 0
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
SELECT {finding_columns}, Kind, Calibrated, {examined_bits} AS ExaminedBits,
    DecisiveSpanId, `LookFirst.Step`, `LookFirst.Agent`, `LookFirst.Basis`, `LookFirst.Why`
FROM {database}.mast_verdicts{local};
