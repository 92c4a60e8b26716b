-- A span that states no operation is the call of a model or of a tool by its other attributes: OpenLLMetry before 0.55,
-- Vercel's AI SDK, MLflow and Langfuse's SDK are read. OpenLLMetry's entities are agents and tools. Spans that are stored already keep what was computed then.
ALTER TABLE {database}.otel_traces{local} {on_cluster}
    MODIFY COLUMN Operation LowCardinality(String) MATERIALIZED {operation},
    MODIFY COLUMN AgentName LowCardinality(String) MATERIALIZED if(Operation = 'invoke_workflow', '', {field:agent}),
    MODIFY COLUMN ToolName LowCardinality(String) MATERIALIZED {field:tool},
    MODIFY COLUMN Model LowCardinality(String) MATERIALIZED {field:model},
    MODIFY COLUMN InputTokens UInt32 MATERIALIZED toUInt32(least(toUInt64OrZero({field:input_tokens}), 0xFFFFFFFF)),
    MODIFY COLUMN OutputTokens UInt32 MATERIALIZED toUInt32(least(toUInt64OrZero({field:output_tokens}), 0xFFFFFFFF));
