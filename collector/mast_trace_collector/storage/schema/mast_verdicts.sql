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
    CostUsd Float64,
    RunKey UInt64 MATERIALIZED halfMD5(Project, TraceId) CODEC(NONE),
    -- The run as the judge read it. RunSeen is its LastSeen then: a later one means that something came.
    -- 0 says that the verdict was written before this was kept.
    RunSeen DateTime64(3) DEFAULT 0,
    RunSpans UInt64,
    RunErrors UInt64,
    RunInputTokens UInt64,
    RunOutputTokens UInt64,
    RunAgents Array(LowCardinality(String)),
    RunModels Array(LowCardinality(String)),
    RunOutcome LowCardinality(String),
    RunOutcomeReason String,
    RunTermination LowCardinality(String),
    Kind LowCardinality(String),
    -- The modes that the verdict has looked for. Verdicts of before schema 16 do not say: they count in no share.
    Examined Array(LowCardinality(String)),
    -- Whether the probabilities were measured on runs like this one.
    Calibrated Bool,
    -- How often a model read the run, and in how many readings it said this; 0 where it is not known.
    Readings UInt16,
    Agreeing UInt16,
    `LookFirst.Step` Array(UInt32),
    `LookFirst.Agent` Array(LowCardinality(String)),
    `LookFirst.Basis` Array(LowCardinality(String)),
    `LookFirst.Why` Array(String) CODEC(ZSTD(1)),
    `LookFirst.Quotes` Array(Array(String)) CODEC(ZSTD(1)),
    `LookFirst.SpanId` Array(String) CODEC(ZSTD(1)),
    `LookFirst.ReachesAnswer` Array(Bool),
    `LookFirst.Right` Array(UInt32),
    `LookFirst.Cases` Array(UInt32),
    `LookFirst.PlantedRight` Array(UInt32),
    `LookFirst.PlantedCases` Array(UInt32),
    Prompt LowCardinality(String),
    -- The step that the model names itself, whatever became of it.
    ModelStep Nullable(UInt32),
    `LookFirst.Heirs` Array(Array(UInt32)) CODEC(ZSTD(1)),
    `LookFirst.PossibleHeirs` Array(Array(UInt32)) CODEC(ZSTD(1)),
    -- A place that is unlike good runs names one of them, and the step there that shows it.
    `LookFirst.GoodRun` Array(String) CODEC(ZSTD(1)),
    `LookFirst.GoodStep` Array(UInt32)
)
ENGINE = {replicated}ReplacingMergeTree(JudgedAt)
PARTITION BY toDate(RunEnd)
ORDER BY (Project, TraceId, Fingerprint, JudgeVersion)
{ttl:toDateTime(RunEnd)}
SETTINGS index_granularity = 1024{table_settings};

{distributed:mast_verdicts, cityHash64(TraceId)};

-- The verdict that counts: the newest of each run, whichever judge gave it.
-- A view keeps the columns that its table had when it was made: who adds one makes the view anew.
-- reader: view
CREATE VIEW IF NOT EXISTS {database}.mast_latest_verdicts {on_cluster} AS
SELECT *
FROM {database}.mast_verdicts
ORDER BY JudgedAt DESC
LIMIT 1 BY Project, TraceId;
