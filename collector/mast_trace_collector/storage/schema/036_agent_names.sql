-- Agents that no attribute states are found in the names of spans, LangChain's metadata and whole outputs, as the reader
-- of a run finds them. Spans that are stored already keep what was computed then.
ALTER TABLE {database}.otel_traces{local} {on_cluster}
    MODIFY COLUMN Operation LowCardinality(String) MATERIALIZED {operation},
    MODIFY COLUMN AgentName LowCardinality(String) MATERIALIZED if(Operation = 'invoke_workflow', '', {agent});
