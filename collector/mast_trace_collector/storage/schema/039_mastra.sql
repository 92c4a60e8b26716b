-- Spans of Mastra's exporter before its release 1.0 state operations of their own, and Claude Code's name an agent by
-- its id alone. Spans that are stored already keep what was computed then.
ALTER TABLE {database}.otel_traces{local} {on_cluster}
    MODIFY COLUMN Operation LowCardinality(String) MATERIALIZED {operation},
    MODIFY COLUMN AgentName LowCardinality(String) MATERIALIZED if(Operation = 'invoke_workflow', '', {agent});
