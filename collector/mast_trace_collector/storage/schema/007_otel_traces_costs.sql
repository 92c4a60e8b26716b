-- What a stored span costs. Where the engine writes the text of numbers, the view needs not; a column
-- for each of two ids that stand in SpanAttributes was paid for and never asked for; long texts that
-- come again within a megabyte are found by the second level of ZSTD; and a part of one insert is
-- one file, which is synced once, not two hundred.
--
-- The inlet is changed in place and not made anew: a collector that writes while there is no view
-- would lose its spans. Between the two statements an insert fails and takes the way over Python.
ALTER TABLE {database}.mast_otlp_inlet {on_cluster}
    MODIFY COLUMN resource_spans {part:otlp_resource_spans};

ALTER TABLE {database}.mast_otlp_inlet_mv {on_cluster} MODIFY QUERY
{part:otlp_rows};

ALTER TABLE {database}.otel_traces{local} {on_cluster}
    MODIFY COLUMN SpanAttributes CODEC(ZSTD(2));

ALTER TABLE {database}.otel_traces{local} {on_cluster}
    MODIFY SETTING min_bytes_for_wide_part = 134217728, min_parts_to_merge_at_once = 10;

ALTER TABLE {database}.otel_traces{local} {on_cluster}
    DROP COLUMN IF EXISTS MessageId, DROP COLUMN IF EXISTS ContentHash;

ALTER TABLE {database}.otel_traces{local} {on_cluster}
    ADD COLUMN IF NOT EXISTS MessageId String ALIAS SpanAttributes['mast.message.id'],
    ADD COLUMN IF NOT EXISTS ContentHash String ALIAS SpanAttributes['mast.message.content_hash'];
