-- Google ADK's calls of models without tokens are calls of models. Spans that are stored already keep what was computed then.
ALTER TABLE {database}.otel_traces{local} {on_cluster}
    MODIFY COLUMN Operation LowCardinality(String) MATERIALIZED {operation};
