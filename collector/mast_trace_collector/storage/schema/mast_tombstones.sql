-- Runs that were erased. A tombstone is written before the first row of its run is deleted and stays for ever, so that
-- what arrives later about the run (a verdict, a late span, a restored backup) is refused, or found and deleted. It holds
-- no text of anybody. ErasedAt is when the run was erased first, ChangedAt when its deletion was begun last, DoneAt
-- the ChangedAt of the last deletion that was verified, Arrived the rows that were deleted after the first one.
-- reader: none
CREATE TABLE IF NOT EXISTS {database}.mast_tombstones{local} {on_cluster}
(
    Project LowCardinality(String),
    TraceId String CODEC(ZSTD(1)),
    ErasedAt SimpleAggregateFunction(min, DateTime64(3)) CODEC(ZSTD(1)),
    ChangedAt SimpleAggregateFunction(max, DateTime64(6)) CODEC(ZSTD(1)),
    DoneAt SimpleAggregateFunction(max, DateTime64(6)) CODEC(ZSTD(1)),
    Arrived SimpleAggregateFunction(sum, UInt64) CODEC(ZSTD(1))
)
ENGINE = {replicated}AggregatingMergeTree
ORDER BY (Project, TraceId)
SETTINGS index_granularity = 1024{table_settings};

{distributed:mast_tombstones, cityHash64(TraceId)};
