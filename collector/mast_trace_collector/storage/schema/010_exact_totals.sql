-- Exact totals of a run, up to a million spans. What was stored before kept 16 bits of a call's id and 32
-- of a span's, so that calls with the same tokens were taken for one. From here on each span is a fact:
--   SpanFacts   of each span, 16 bytes: 64 bits of its id, 31 that are free, 1 that says that it failed,
--               32 of its content's hash
--   CallFacts   of each model call with tokens instead, 32 bytes: 64 bits of its id, 31 of its input, 31 of
--               its output, 1 that says that it failed, 1 that is free; 38 for its cost in millionths of a
--               dollar (nothing writes it yet), 26 of the tokens that were read from a cache; 24 of those
--               that were written to one, 8 of who recorded it (0 for mast-trace), 32 of its content's hash
-- A fact is a plain number, and a set of them merges to the same whatever comes twice. A value that does not
-- fit is cut to what does: then the run's total is "at least". So it is of a run with more facts than a set
-- keeps, which is 2^21, so that a million spans may come twice with different contents.
--   Failed      1 if a span failed: known without looking at facts
--   Kind        what kind of run it is; empty for a program's own
-- Spans, Errors and Tokens are not written any more. What stands in them makes the fingerprint as before,
-- and is what is known of a run whose spans are gone.
ALTER TABLE {database}.mast_run_states{local} {on_cluster}
    MODIFY COLUMN Agents SimpleAggregateFunction(groupUniqArrayArray(1000), Array(String)) CODEC(ZSTD(1)),
    MODIFY COLUMN Models SimpleAggregateFunction(groupUniqArrayArray(1000), Array(String)) CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS SpanFacts SimpleAggregateFunction(groupUniqArrayArray(2097152), Array(UInt128)) CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS CallFacts SimpleAggregateFunction(groupUniqArrayArray(2097152), Array(UInt256)) CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS Failed SimpleAggregateFunction(max, UInt8) DEFAULT notEmpty(Errors),
    ADD COLUMN IF NOT EXISTS Kind SimpleAggregateFunction(max, String) CODEC(ZSTD(1));

ALTER TABLE {database}.mast_run_states {on_cluster}
    MODIFY COLUMN Agents SimpleAggregateFunction(groupUniqArrayArray(1000), Array(String)),
    MODIFY COLUMN Models SimpleAggregateFunction(groupUniqArrayArray(1000), Array(String)),
    ADD COLUMN IF NOT EXISTS SpanFacts SimpleAggregateFunction(groupUniqArrayArray(2097152), Array(UInt128)),
    ADD COLUMN IF NOT EXISTS CallFacts SimpleAggregateFunction(groupUniqArrayArray(2097152), Array(UInt256)),
    ADD COLUMN IF NOT EXISTS Failed SimpleAggregateFunction(max, UInt8) DEFAULT notEmpty(Errors),
    ADD COLUMN IF NOT EXISTS Kind SimpleAggregateFunction(max, String);

-- A count beyond 32 bits was read as none.
ALTER TABLE {database}.otel_traces{local} {on_cluster}
    MODIFY COLUMN InputTokens UInt32 MATERIALIZED toUInt32(least(toUInt64OrZero({field:input_tokens}), 0xFFFFFFFF)),
    MODIFY COLUMN OutputTokens UInt32 MATERIALIZED toUInt32(least(toUInt64OrZero({field:output_tokens}), 0xFFFFFFFF));

-- The view may have forgotten tokens of before, see 007: an insert that is done again then adds the same
-- facts to the same sets.
ALTER TABLE {database}.mast_run_states_mv {on_cluster} MODIFY QUERY
{run_states_v2};

CREATE OR REPLACE VIEW {database}.mast_runs {on_cluster} AS
{part:runs.v2};

ALTER TABLE {database}.mast_verdicts{local} {on_cluster} ADD COLUMN IF NOT EXISTS Kind LowCardinality(String);

ALTER TABLE {database}.mast_verdicts {on_cluster} ADD COLUMN IF NOT EXISTS Kind LowCardinality(String);

ALTER TABLE {database}.mast_findings{local} {on_cluster} ADD COLUMN IF NOT EXISTS Kind LowCardinality(String);

ALTER TABLE {database}.mast_findings {on_cluster} ADD COLUMN IF NOT EXISTS Kind LowCardinality(String);

-- A view keeps the columns that its table had when it was made.
CREATE OR REPLACE VIEW {database}.mast_latest_verdicts {on_cluster} AS
SELECT *
FROM {database}.mast_verdicts
ORDER BY JudgedAt DESC
LIMIT 1 BY Project, TraceId;

ALTER TABLE {database}.mast_findings_mv {on_cluster} MODIFY QUERY
SELECT {finding_columns}, Kind
FROM {database}.mast_verdicts{local};
