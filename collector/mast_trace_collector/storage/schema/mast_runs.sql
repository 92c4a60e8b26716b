-- One row per run and insert, merged per day, kept by ClickHouse as spans arrive. Every column
-- merges to the same value when a span arrives twice: spans are a set, times are extremes, and of
-- what is said of the outcome the latest counts. Nothing here needs a look at the spans again.
--
-- Sets are of plain numbers and choices are of plain strings because ClickHouse merges those an
-- order of magnitude faster than tuples:
--   Spans      of each span, 32 bits of its id's hash above 32 of its content's: what a run's
--              fingerprint is made of, which stays what it was, so that verdicts stay valid
--   SpanIds    of each span that is no model call with tokens, the 64 bits of its id
--   ErrorIds   of each span that failed, the same
--   Calls      of each model call with tokens, the 64 bits of its id, 28 of its input, 28 of its output, 8 of
--              who recorded it (0 for mast-trace)
--   Charges    for what a call costs; nothing writes it yet. 64 bits of its id, 64 of millionths of a dollar:
--              of several for one call the greatest counts, as with tokens
--   Around     of each model call with tokens inside of another span, the id of that: a call right inside of
--              another has its tokens, which count once
--   Named      a digit (0 for the root), the start in 19 digits, the name: the smallest is the run's
--   Said       a digit (1 for a person's word), the time in 19 digits, the outcome, a line break, the
--              reason: the greatest counts
--   Kind       what kind of run it is; empty for a program's own
-- These are 16 bytes of a span, 24 of a model call, 8 more of one that failed. Tokens of a call that do not fit
-- are cut to what does, and a set keeps so many numbers that a million spans may come twice with different
-- contents; then the run's totals are "at least".
--   Old        1 of what was stored before ids were whole (schema 11); 3 once its spans were looked for and some are
--              gone; one more (2, 4) once all of the run has been stored again
--   OldSpans.. what was known of the run then. It is what is known of one whose spans are gone: "about"
-- Errors and Tokens are what was stored then; they are not written any more.
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
    Agents SimpleAggregateFunction(groupUniqArrayArray(1000), Array(String)) CODEC(ZSTD(1)),
    Models SimpleAggregateFunction(groupUniqArrayArray(1000), Array(String)) CODEC(ZSTD(1)),
    Spans SimpleAggregateFunction(groupUniqArrayArray(2097152), Array(UInt64)) CODEC(ZSTD(1)),
    Errors SimpleAggregateFunction(groupUniqArrayArray, Array(UInt64)) CODEC(ZSTD(1)),
    Tokens SimpleAggregateFunction(groupUniqArrayArray, Array(UInt64)) CODEC(ZSTD(1)),
    Said SimpleAggregateFunction(max, String) CODEC(ZSTD(1)),
    -- A run in 8 bytes, for grouping and joining: an order of magnitude cheaper than its project and id.
    -- Half an MD5, so that nobody can find an id that is taken for another project's run.
    RunKey UInt64 MATERIALIZED halfMD5(Project, TraceId) CODEC(NONE),
    SpanIds SimpleAggregateFunction(groupUniqArrayArray(1048576), Array(UInt64)) CODEC(ZSTD(1)),
    ErrorIds SimpleAggregateFunction(groupUniqArrayArray(1048576), Array(UInt64)) CODEC(ZSTD(1)),
    Calls SimpleAggregateFunction(groupUniqArrayArray(2097152), Array(UInt128)) CODEC(ZSTD(1)),
    Charges SimpleAggregateFunction(groupUniqArrayArray(2097152), Array(UInt128)) CODEC(ZSTD(1)),
    Old SimpleAggregateFunction(max, UInt8) DEFAULT notEmpty(Spans),
    OldSpans SimpleAggregateFunction(max, UInt64),
    OldErrors SimpleAggregateFunction(max, UInt64),
    OldInputTokens SimpleAggregateFunction(max, UInt64),
    OldOutputTokens SimpleAggregateFunction(max, UInt64),
    Kind SimpleAggregateFunction(max, String) CODEC(ZSTD(1)),
    -- A run whose threads called a model outside of it says so on its root: its tokens are at least those that it has.
    CallsMissing SimpleAggregateFunction(max, UInt8),
    Around SimpleAggregateFunction(groupUniqArrayArray(1048576), Array(UInt64)) CODEC(ZSTD(1)),
    -- Runs come about when they happen, so a day's partition holds few other times.
    INDEX idx_start Start TYPE minmax GRANULARITY 1
)
ENGINE = {replicated}AggregatingMergeTree
PARTITION BY Day
ORDER BY (Project, TraceId, Day)
{ttl:Day}
SETTINGS index_granularity = 1024, ttl_only_drop_parts = 1{table_settings};

{distributed:mast_run_states, cityHash64(TraceId)};

-- A migration that changes the view leaves it without the tokens of before (seen with ClickHouse 26.9): an insert
-- that is done again then adds the same numbers to the same sets.
-- reader: none
CREATE MATERIALIZED VIEW IF NOT EXISTS {database}.mast_run_states_mv {on_cluster}
TO {database}.mast_run_states{local} AS
{run_states_v5};

-- A run is known from its beginning: the record that says so is a log record, for the run's own span is sent
-- when it has ended, which a process that is killed does not live to see. What the record says is what that
-- span will say, and is merged like it: it may come twice, late, or not at all. It is no span and no end.
-- reader: none
CREATE MATERIALIZED VIEW IF NOT EXISTS {database}.mast_run_starts_mv {on_cluster}
TO {database}.mast_run_states{local} AS
WITH
    multiIf(LogAttributes['gen_ai.workflow.name'] != '', LogAttributes['gen_ai.workflow.name'],
        LogAttributes['gen_ai.agent.name'] != '', LogAttributes['gen_ai.agent.name'], Body) AS name,
    if(LogAttributes['mast.run.kind'] != '', LogAttributes['mast.run.kind'],
        ResourceAttributes['mast.run.kind']) AS kind
SELECT
    Project,
    TraceId,
    today() AS Day,
    min(Timestamp) AS Start,
    max(Timestamp) AS End,
    now64(3) AS LastSeen,
    toUInt8(0) AS Root,
    -- As of a root inside of an application's trace: before all spans but a root that is the trace's own.
    min(concat('1', leftPad(toString(greatest(toUnixTimestamp64Nano(Timestamp), 0)), 19, '0'), name)) AS Named,
    max(toString(ServiceName)) AS ServiceName,
    max(LogAttributes['mast.framework']) AS Framework,
    max(LogAttributes['gen_ai.conversation.id']) AS ConversationId,
    max(substring(kind, 1, 64)) AS Kind,
    toUInt8(0) AS Old
FROM {database}.otel_logs{local}
WHERE TraceId != '' AND SpanId != ''
    AND if(EventName != '', EventName, LogAttributes['event.name']) = 'mast.run.start'
GROUP BY Project, TraceId;

-- A span that comes twice with another content changes the fingerprint (the run is judged again)
-- but is counted once. A condition on the runs' keys is met before anything is put together, and reads 8 bytes of a
-- state.
-- reader: view
CREATE VIEW IF NOT EXISTS {database}.mast_runs {on_cluster} AS
{runs_v5};
