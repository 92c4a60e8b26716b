-- Prices and counts of model calls ask for these attributes of every call in a range, and read all of its texts for
-- them. Computed on insert; spans of before compute them when they are read. Recorder tells tools apart that
-- recorded the same call: 0 is ours.
ALTER TABLE {database}.otel_traces{local} {on_cluster}
    ADD COLUMN IF NOT EXISTS Provider LowCardinality(String) MATERIALIZED multiIf(
        SpanAttributes['gen_ai.provider.name'] != '', SpanAttributes['gen_ai.provider.name'],
        SpanAttributes['gen_ai.system'] != '', SpanAttributes['gen_ai.system'], SpanAttributes['llm.provider']),
    ADD COLUMN IF NOT EXISTS CacheReadTokens UInt32 MATERIALIZED
        toUInt32(least(toUInt64OrZero({field:cache_read_tokens}), 4294967295)) CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS CacheWriteTokens UInt32 MATERIALIZED
        toUInt32(least(toUInt64OrZero({field:cache_write_tokens}), 4294967295)) CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS InputHash UInt64 MATERIALIZED if(SpanAttributes['mast.input.message_ids'] = '', 0,
        sipHash64(SpanAttributes['mast.input.message_ids'])) CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS Recorder UInt8 MATERIALIZED if(SpanAttributes['mast.framework'] != ''
        OR startsWith(ScopeName, 'mast_trace'), 0, 1 + cityHash64(ScopeName) % 255) CODEC(ZSTD(1));

ALTER TABLE {database}.otel_traces {on_cluster}
    ADD COLUMN IF NOT EXISTS Provider LowCardinality(String) MATERIALIZED multiIf(
        SpanAttributes['gen_ai.provider.name'] != '', SpanAttributes['gen_ai.provider.name'],
        SpanAttributes['gen_ai.system'] != '', SpanAttributes['gen_ai.system'], SpanAttributes['llm.provider']),
    ADD COLUMN IF NOT EXISTS CacheReadTokens UInt32 MATERIALIZED
        toUInt32(least(toUInt64OrZero({field:cache_read_tokens}), 4294967295)),
    ADD COLUMN IF NOT EXISTS CacheWriteTokens UInt32 MATERIALIZED
        toUInt32(least(toUInt64OrZero({field:cache_write_tokens}), 4294967295)),
    ADD COLUMN IF NOT EXISTS InputHash UInt64 MATERIALIZED if(SpanAttributes['mast.input.message_ids'] = '', 0,
        sipHash64(SpanAttributes['mast.input.message_ids'])),
    ADD COLUMN IF NOT EXISTS Recorder UInt8 MATERIALIZED if(SpanAttributes['mast.framework'] != ''
        OR startsWith(ScopeName, 'mast_trace'), 0, 1 + cityHash64(ScopeName) % 255);
