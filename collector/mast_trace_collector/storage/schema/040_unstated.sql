-- Google ADK's calls of models without tokens are calls of models, and a tool of MLflow has the name of its span. Spans
-- that are stored already keep what was computed then.
ALTER TABLE {database}.otel_traces{local} {on_cluster}
    MODIFY COLUMN Operation LowCardinality(String) MATERIALIZED {operation},
    MODIFY COLUMN ToolName LowCardinality(String) MATERIALIZED if({field:tool} = '' AND Operation = 'execute_tool'
        AND SpanAttributes['mlflow.spanType'] != '', SpanName, {field:tool});
