-- One row per run and insert, merged per day, kept by ClickHouse as spans arrive. Every column
-- merges to the same value when a span arrives twice: spans are a set, times are extremes, and of
-- what is said of the outcome the latest counts. Nothing here needs a look at the spans again.
--
-- Sets are of plain numbers and choices are of plain strings because ClickHouse merges those an
-- order of magnitude faster than tuples:
--   Spans   of each span, 32 bits of its id's hash above 32 bits of its content's
--   Errors  of each span that failed, the hash of its id
--   Tokens  of each model call, 16 bits of its id's hash, 1 that says that the span is of mast-trace,
--           23 of its input and 24 of its output
--   Named   a digit (0 for the root), the start in 19 digits, the name: the smallest is the run's
--   Said    a digit (1 for a person's word), the time in 19 digits, the outcome, a line break, the
--           reason: the greatest counts
-- reader: project
CREATE TABLE IF NOT EXISTS {database}.mast_run_states{local} {on_cluster}
(
    Project LowCardinality(String),
    TraceId String CODEC(ZSTD(1)),
    Day Date DEFAULT today(),
    Start SimpleAggregateFunction(min, DateTime64(9)) DEFAULT toDateTime64('2262-01-01', 9) CODEC(ZSTD(1)),
    End SimpleAggregateFunction(max, DateTime64(9)) CODEC(ZSTD(1)),
    LastSeen SimpleAggregateFunction(max, DateTime64(3)) DEFAULT now64(3) CODEC(ZSTD(1)),
    -- 2: a span without parent has ended. 1: a run's own root inside an application's trace.
    Root SimpleAggregateFunction(max, UInt8),
    Named SimpleAggregateFunction(min, String) DEFAULT '~' CODEC(ZSTD(1)),
    ServiceName SimpleAggregateFunction(max, String) CODEC(ZSTD(1)),
    Framework SimpleAggregateFunction(max, String) CODEC(ZSTD(1)),
    ConversationId SimpleAggregateFunction(max, String) CODEC(ZSTD(1)),
    TerminationReason SimpleAggregateFunction(max, String) CODEC(ZSTD(1)),
    Agents SimpleAggregateFunction(groupUniqArrayArray, Array(String)) CODEC(ZSTD(1)),
    Models SimpleAggregateFunction(groupUniqArrayArray, Array(String)) CODEC(ZSTD(1)),
    Spans SimpleAggregateFunction(groupUniqArrayArray, Array(UInt64)) CODEC(ZSTD(1)),
    Errors SimpleAggregateFunction(groupUniqArrayArray, Array(UInt64)) CODEC(ZSTD(1)),
    Tokens SimpleAggregateFunction(groupUniqArrayArray, Array(UInt64)) CODEC(ZSTD(1)),
    Said SimpleAggregateFunction(max, String) CODEC(ZSTD(1)),
    -- Runs come about when they happen, so a day's partition holds few other times.
    INDEX idx_start Start TYPE minmax GRANULARITY 1
)
ENGINE = {replicated}AggregatingMergeTree
PARTITION BY Day
ORDER BY (Project, TraceId, Day)
{ttl:Day}
SETTINGS index_granularity = 1024, ttl_only_drop_parts = 1{table_settings};

{distributed:mast_run_states, cityHash64(TraceId)};

-- reader: none
CREATE MATERIALIZED VIEW IF NOT EXISTS {database}.mast_run_states_mv {on_cluster}
TO {database}.mast_run_states{local} AS
{part:run_states.v1};

-- A span that comes twice with another content changes the fingerprint (the run is judged again)
-- but is counted once.
-- reader: view
CREATE VIEW IF NOT EXISTS {database}.mast_runs {on_cluster} AS
{runs};
