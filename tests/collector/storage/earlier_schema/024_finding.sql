-- Users and versions of services, by which runs are grouped. Both are computed on insert; spans of before compute
-- them when they are read. A person may call several steps of a run decisive.
ALTER TABLE {database}.otel_traces{local} {on_cluster}
    ADD COLUMN IF NOT EXISTS UserId String MATERIALIZED if(SpanAttributes['user.id'] != '', SpanAttributes['user.id'],
        SpanAttributes['enduser.id']) CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS ServiceVersion LowCardinality(String) MATERIALIZED ResourceAttributes['service.version'];

ALTER TABLE {database}.otel_traces {on_cluster}
    ADD COLUMN IF NOT EXISTS UserId String MATERIALIZED if(SpanAttributes['user.id'] != '', SpanAttributes['user.id'],
        SpanAttributes['enduser.id']),
    ADD COLUMN IF NOT EXISTS ServiceVersion LowCardinality(String) MATERIALIZED ResourceAttributes['service.version'];

ALTER TABLE {database}.mast_human_labels{local} {on_cluster}
    ADD COLUMN IF NOT EXISTS DecisiveSteps Array(UInt32);

ALTER TABLE {database}.mast_human_labels {on_cluster}
    ADD COLUMN IF NOT EXISTS DecisiveSteps Array(UInt32);
