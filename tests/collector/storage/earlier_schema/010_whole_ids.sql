-- Room for exact totals of a run, up to a million spans. What was stored before keeps 16 bits of a call's id
-- and 32 of a span's, so that calls with the same tokens are taken for one. From here on ids are whole:
--   Spans      of each span, as before, 32 bits of its id's hash above 32 of its content's: what a run's
--              fingerprint is made of, which stays what it was, so that verdicts stay valid
--   SpanIds    of each span that is no model call with tokens, the 64 bits of its id
--   ErrorIds   of each span that failed, the same
--   Calls      of each model call with tokens, the 64 bits of its id, 28 of its input, 28 of its output, 8 of
--              who recorded it (0 for mast-trace)
--   Charges    for what a call costs; nothing writes it yet. 64 bits of its id, 64 of millionths of a dollar:
--              of several for one call the greatest counts, as with tokens
--   Kind       what kind of run it is; empty for a program's own
-- These are 16 bytes of a span, 24 of a model call, 8 more of one that failed. They are plain numbers, of
-- which a set merges to the same whatever comes twice. Tokens of a call that do not fit are cut to what does,
-- and a set keeps so many numbers that a million spans may come twice with different contents; then the run's
-- totals are "at least".
--   Old        1 of what was stored before; 2 once all of the run has been stored again, with whole ids
--   OldSpans.. what was known of the run then. It is what is known of one whose spans are gone: "about"
-- Errors and Tokens are not written any more.
ALTER TABLE {database}.mast_run_states{local} {on_cluster}
    MODIFY COLUMN Agents SimpleAggregateFunction(groupUniqArrayArray(1000), Array(String)) CODEC(ZSTD(1)),
    MODIFY COLUMN Models SimpleAggregateFunction(groupUniqArrayArray(1000), Array(String)) CODEC(ZSTD(1)),
    MODIFY COLUMN Spans SimpleAggregateFunction(groupUniqArrayArray(2097152), Array(UInt64)) CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS SpanIds SimpleAggregateFunction(groupUniqArrayArray(1048576), Array(UInt64)) CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS ErrorIds SimpleAggregateFunction(groupUniqArrayArray(1048576), Array(UInt64)) CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS Calls SimpleAggregateFunction(groupUniqArrayArray(2097152), Array(UInt128)) CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS Charges SimpleAggregateFunction(groupUniqArrayArray(2097152), Array(UInt128)) CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS Old SimpleAggregateFunction(max, UInt8) DEFAULT notEmpty(Spans),
    ADD COLUMN IF NOT EXISTS OldSpans SimpleAggregateFunction(max, UInt64),
    ADD COLUMN IF NOT EXISTS OldErrors SimpleAggregateFunction(max, UInt64),
    ADD COLUMN IF NOT EXISTS OldInputTokens SimpleAggregateFunction(max, UInt64),
    ADD COLUMN IF NOT EXISTS OldOutputTokens SimpleAggregateFunction(max, UInt64),
    ADD COLUMN IF NOT EXISTS Kind SimpleAggregateFunction(max, String) CODEC(ZSTD(1));

ALTER TABLE {database}.mast_run_states {on_cluster}
    MODIFY COLUMN Agents SimpleAggregateFunction(groupUniqArrayArray(1000), Array(String)),
    MODIFY COLUMN Models SimpleAggregateFunction(groupUniqArrayArray(1000), Array(String)),
    MODIFY COLUMN Spans SimpleAggregateFunction(groupUniqArrayArray(2097152), Array(UInt64)),
    ADD COLUMN IF NOT EXISTS SpanIds SimpleAggregateFunction(groupUniqArrayArray(1048576), Array(UInt64)),
    ADD COLUMN IF NOT EXISTS ErrorIds SimpleAggregateFunction(groupUniqArrayArray(1048576), Array(UInt64)),
    ADD COLUMN IF NOT EXISTS Calls SimpleAggregateFunction(groupUniqArrayArray(2097152), Array(UInt128)),
    ADD COLUMN IF NOT EXISTS Charges SimpleAggregateFunction(groupUniqArrayArray(2097152), Array(UInt128)),
    ADD COLUMN IF NOT EXISTS Old SimpleAggregateFunction(max, UInt8) DEFAULT notEmpty(Spans),
    ADD COLUMN IF NOT EXISTS OldSpans SimpleAggregateFunction(max, UInt64),
    ADD COLUMN IF NOT EXISTS OldErrors SimpleAggregateFunction(max, UInt64),
    ADD COLUMN IF NOT EXISTS OldInputTokens SimpleAggregateFunction(max, UInt64),
    ADD COLUMN IF NOT EXISTS OldOutputTokens SimpleAggregateFunction(max, UInt64),
    ADD COLUMN IF NOT EXISTS Kind SimpleAggregateFunction(max, String);

-- A count beyond 32 bits was read as none.
ALTER TABLE {database}.otel_traces{local} {on_cluster}
    MODIFY COLUMN InputTokens UInt32 MATERIALIZED toUInt32(least(toUInt64OrZero(multiIf(SpanAttributes['gen_ai.usage.input_tokens'] != '', SpanAttributes['gen_ai.usage.input_tokens'], SpanAttributes['llm.token_count.prompt'] != '', SpanAttributes['llm.token_count.prompt'], SpanAttributes['gen_ai.usage.prompt_tokens'])), 0xFFFFFFFF)),
    MODIFY COLUMN OutputTokens UInt32 MATERIALIZED toUInt32(least(toUInt64OrZero(multiIf(SpanAttributes['gen_ai.usage.output_tokens'] != '', SpanAttributes['gen_ai.usage.output_tokens'], SpanAttributes['llm.token_count.completion'] != '', SpanAttributes['llm.token_count.completion'], SpanAttributes['gen_ai.usage.completion_tokens'])), 0xFFFFFFFF));

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
