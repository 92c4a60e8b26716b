-- The facts of a run that are asked for again and again: its version, the actions of its agents, its model calls, each
-- counted once, its tools, and the measures of its team. Never money: prices change. One row for each run, written once no more of it comes; the
-- row with the newest Seen counts, the arrival of the newest span that it knows of. A run whose spans are left out
-- keeps its facts.
-- reader: project
CREATE TABLE IF NOT EXISTS {database}.mast_run_facts{local} {on_cluster}
(
    Project LowCardinality(String),
    TraceId String CODEC(ZSTD(1)),
    RunKey UInt64 DEFAULT halfMD5(Project, TraceId) CODEC(NONE),
    Seen DateTime64(3) CODEC(Delta, ZSTD(1)),
    RunEnd DateTime64(9) CODEC(Delta, ZSTD(1)),
    Version LowCardinality(String),
    Actions Array(Tuple(Agent LowCardinality(String), Name LowCardinality(String), Times UInt64)) CODEC(ZSTD(1)),
    Calls Array(Tuple(At DateTime64(9), SpanId String, Agent LowCardinality(String), Model LowCardinality(String),
        Provider LowCardinality(String), Sent UInt64, CacheRead UInt64, CacheWrite UInt64, Output UInt64, Again UInt8,
        Resent UInt64)) CODEC(ZSTD(1)),
    Tools Array(Tuple(At DateTime64(9), Agent LowCardinality(String), Tool LowCardinality(String))) CODEC(ZSTD(1)),
    Team Tuple(Agents UInt64, Messages UInt64, Acts UInt64, Chosen UInt64, ByAgents UInt64, Read UInt64, Written UInt64,
        Spoken UInt64, Together Int64, Active Int64) CODEC(ZSTD(1))
)
ENGINE = {replicated}ReplacingMergeTree(Seen)
PARTITION BY toDate(RunEnd)
ORDER BY RunKey
{ttl:toDateTime(RunEnd)}
SETTINGS index_granularity = 1024, min_age_to_force_merge_seconds = 3600,
    min_age_to_force_merge_on_partition_only = 1{table_settings};

{distributed:mast_run_facts, cityHash64(TraceId)};

-- The same of the spans that are stored: for runs whose facts are not written yet, and to write them.
-- reader: view
CREATE VIEW IF NOT EXISTS {database}.mast_span_facts {on_cluster} AS
{facts};
