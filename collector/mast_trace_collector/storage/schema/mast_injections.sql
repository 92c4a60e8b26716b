-- Faults that were planted in successful runs, with what their replays have shown. They are no runs either: the
-- faulty run is kept as JSON, and no list, trend, alert or cost can see it. RunEnd is the end of the original run,
-- whose retention they follow.
-- reader: project
CREATE TABLE IF NOT EXISTS {database}.mast_injections{local} {on_cluster}
(
    Project LowCardinality(String),
    TraceId String CODEC(ZSTD(1)),
    FaultId String CODEC(ZSTD(1)),
    InjectedAt DateTime64(6) CODEC(Delta, ZSTD(1)),
    Operator LowCardinality(String),
    Mode LowCardinality(String),
    Level LowCardinality(String),
    Step Int32,
    SpanId String CODEC(ZSTD(1)),
    Agent LowCardinality(String),
    MissedBy Array(LowCardinality(String)),
    Verdict LowCardinality(String),
    Decisive Bool,
    Deterministic Bool,
    Faulty UInt32,
    FaultyFailures UInt32,
    Restored UInt32,
    RestoredSuccesses UInt32,
    EValue Float64,
    SuccessAfter Nullable(Float64),
    Phrasing Int32,
    Seed Int64,
    Change String CODEC(ZSTD(1)),
    Run String CODEC(ZSTD(3)),
    ServiceName LowCardinality(String),
    Framework LowCardinality(String),
    RunEnd DateTime64(9) CODEC(Delta, ZSTD(1)),
    -- The step after which runs with a planted fault hardly ever succeed if all up to it is kept; NULL where it is not known.
    PointOfNoReturn Nullable(Int32)
)
ENGINE = {replicated}ReplacingMergeTree(InjectedAt)
PARTITION BY toDate(RunEnd)
ORDER BY (Project, TraceId, FaultId)
{ttl:toDateTime(RunEnd)}
SETTINGS index_granularity = 1024{table_settings};

{distributed:mast_injections, cityHash64(TraceId)};
