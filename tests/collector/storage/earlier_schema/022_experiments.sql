-- The runs of experiments, with their arms and the lessons that they were given: kept as spans arrive, and from a
-- run's record of its beginning, so that a run whose process is killed is known to have no outcome.
-- reader: project
CREATE TABLE IF NOT EXISTS {database}.mast_experiment_runs{local} {on_cluster}
(
    Project LowCardinality(String),
    TraceId String CODEC(ZSTD(1)),
    SpanId String CODEC(ZSTD(1)),
    Experiment LowCardinality(String),
    Arm LowCardinality(String),
    Task String CODEC(ZSTD(1)),
    Repetition UInt32,
    Design LowCardinality(String),
    FeedbackId String CODEC(ZSTD(1)),
    FeedbackVersion LowCardinality(String),
    Start DateTime64(9) CODEC(Delta, ZSTD(1)),
    ServiceName LowCardinality(String)
)
ENGINE = {replicated}ReplacingMergeTree
PARTITION BY toDate(Start)
ORDER BY (Project, Experiment, TraceId, SpanId)
{ttl:toDateTime(Start)}
SETTINGS index_granularity = 1024{table_settings};

{distributed:mast_experiment_runs, cityHash64(TraceId)};

-- reader: none
CREATE MATERIALIZED VIEW IF NOT EXISTS {database}.mast_experiment_runs_mv {on_cluster}
TO {database}.mast_experiment_runs{local} AS
SELECT
    Project,
    TraceId,
    SpanId,
    SpanAttributes['mast.experiment.name'] AS Experiment,
    SpanAttributes['mast.experiment.arm'] AS Arm,
    SpanAttributes['mast.experiment.task'] AS Task,
    toUInt32OrZero(SpanAttributes['mast.experiment.repetition']) AS Repetition,
    SpanAttributes['mast.experiment.design'] AS Design,
    SpanAttributes['mast.feedback.id'] AS FeedbackId,
    SpanAttributes['mast.feedback.version'] AS FeedbackVersion,
    Timestamp AS Start,
    ServiceName
FROM {database}.otel_traces{local}
WHERE TraceId != '' AND (SpanAttributes['mast.experiment.name'] != '' OR SpanAttributes['mast.feedback.id'] != '');

-- reader: none
CREATE MATERIALIZED VIEW IF NOT EXISTS {database}.mast_experiment_starts_mv {on_cluster}
TO {database}.mast_experiment_runs{local} AS
SELECT
    Project,
    TraceId,
    SpanId,
    LogAttributes['mast.experiment.name'] AS Experiment,
    LogAttributes['mast.experiment.arm'] AS Arm,
    LogAttributes['mast.experiment.task'] AS Task,
    toUInt32OrZero(LogAttributes['mast.experiment.repetition']) AS Repetition,
    LogAttributes['mast.experiment.design'] AS Design,
    LogAttributes['mast.feedback.id'] AS FeedbackId,
    LogAttributes['mast.feedback.version'] AS FeedbackVersion,
    Timestamp AS Start,
    ServiceName
FROM {database}.otel_logs{local}
WHERE TraceId != '' AND SpanId != ''
    AND if(EventName != '', EventName, LogAttributes['event.name']) = 'mast.run.start'
    AND (LogAttributes['mast.experiment.name'] != '' OR LogAttributes['mast.feedback.id'] != '');

-- The plan of an experiment: of several plans of one name the first stays.
-- reader: project
CREATE TABLE IF NOT EXISTS {database}.mast_experiments{local} {on_cluster}
(
    Project LowCardinality(String),
    Name String CODEC(ZSTD(1)),
    PlannedAt DateTime64(6) CODEC(Delta, ZSTD(1)),
    Plan String CODEC(ZSTD(1)),
    Precedence UInt64
)
ENGINE = {replicated}ReplacingMergeTree(Precedence)
ORDER BY (Project, Name)
SETTINGS index_granularity = 1024{table_settings};

{distributed:mast_experiments, cityHash64(Name)};

-- Every look at an experiment, with what it said.
-- reader: project
CREATE TABLE IF NOT EXISTS {database}.mast_experiment_looks{local} {on_cluster}
(
    Project LowCardinality(String),
    Name String CODEC(ZSTD(1)),
    LookedAt DateTime64(6) CODEC(Delta, ZSTD(1)),
    Tasks UInt64,
    Runs UInt64,
    Words Array(String) CODEC(ZSTD(1))
)
ENGINE = {replicated}ReplacingMergeTree
ORDER BY (Project, Name, LookedAt)
SETTINGS index_granularity = 1024{table_settings};

{distributed:mast_experiment_looks, cityHash64(Name)};

-- Lessons as an experiment froze them. They quote runs, so erasure and retention follow those.
-- reader: project
CREATE TABLE IF NOT EXISTS {database}.mast_lessons{local} {on_cluster}
(
    Project LowCardinality(String),
    TraceId String CODEC(ZSTD(1)),
    Experiment String CODEC(ZSTD(1)),
    Number UInt32,
    Version LowCardinality(String),
    FrozenAt DateTime64(6) CODEC(Delta, ZSTD(1)),
    Lesson String CODEC(ZSTD(1)),
    RunEnd DateTime64(9) CODEC(Delta, ZSTD(1))
)
ENGINE = {replicated}ReplacingMergeTree(FrozenAt)
PARTITION BY toDate(RunEnd)
ORDER BY (Project, Experiment, TraceId, Number)
{ttl:toDateTime(RunEnd)}
SETTINGS index_granularity = 1024{table_settings};

{distributed:mast_lessons, cityHash64(TraceId)};
