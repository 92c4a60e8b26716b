-- The results of `mast-trace selftest`: of the planted faults of a system, how many the judge finds. They hold
-- counts and no text of a run, and are kept as people's labels are. One row for each measure, mode and stage.
-- reader: project
CREATE TABLE IF NOT EXISTS {database}.mast_selftests{local} {on_cluster}
(
    Project LowCardinality(String),
    SelftestId String CODEC(ZSTD(1)),
    MeasuredAt DateTime64(6) CODEC(Delta, ZSTD(1)),
    ServiceName LowCardinality(String),
    Framework LowCardinality(String),
    JudgeVersion LowCardinality(String),
    Measure LowCardinality(String),
    Stage LowCardinality(String),
    Mode LowCardinality(String),
    Hits UInt32,
    Runs UInt32,
    Low Nullable(Float64),
    High Nullable(Float64),
    Operators Array(LowCardinality(String)),
    Originals UInt32,
    Note String CODEC(ZSTD(1))
)
ENGINE = {replicated}ReplacingMergeTree(MeasuredAt)
PARTITION BY toYYYYMM(MeasuredAt)
ORDER BY (Project, SelftestId, Measure, Stage, Mode)
SETTINGS index_granularity = 1024{table_settings};

{distributed:mast_selftests, cityHash64(SelftestId)};
