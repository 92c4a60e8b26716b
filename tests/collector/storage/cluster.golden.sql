CREATE DATABASE IF NOT EXISTS traces ON CLUSTER main;

CREATE TABLE IF NOT EXISTS traces.mast_schema_migrations_local ON CLUSTER main
(
    Version UInt32,
    Name String,
    AppliedAt DateTime64(3) DEFAULT now64(3),
    Options String
)
ENGINE = ReplicatedReplacingMergeTree
ORDER BY Version;

CREATE TABLE IF NOT EXISTS traces.mast_schema_migrations ON CLUSTER main AS traces.mast_schema_migrations_local
ENGINE = Distributed('main', 'traces', 'mast_schema_migrations_local', Version);

CREATE TABLE IF NOT EXISTS traces.otel_traces_local ON CLUSTER main
(
    Timestamp DateTime64(9) CODEC(Delta, ZSTD(1)),
    TraceId String CODEC(ZSTD(1)),
    SpanId String CODEC(ZSTD(1)),
    ParentSpanId String CODEC(ZSTD(1)),
    TraceState String CODEC(ZSTD(1)),
    SpanName LowCardinality(String) CODEC(ZSTD(1)),
    SpanKind LowCardinality(String) CODEC(ZSTD(1)),
    ServiceName LowCardinality(String) CODEC(ZSTD(1)),
    ResourceAttributes Map(LowCardinality(String), String) CODEC(ZSTD(1)),
    ScopeName String CODEC(ZSTD(1)),
    ScopeVersion String CODEC(ZSTD(1)),
    SpanAttributes Map(LowCardinality(String), String) CODEC(ZSTD(2)),
    Duration UInt64 CODEC(ZSTD(1)),
    StatusCode LowCardinality(String) CODEC(ZSTD(1)),
    StatusMessage String CODEC(ZSTD(1)),
    Events Nested
    (
        Timestamp DateTime64(9),
        Name LowCardinality(String),
        Attributes Map(LowCardinality(String), String)
    ) CODEC(ZSTD(1)),
    Links Nested
    (
        TraceId String,
        SpanId String,
        TraceState String,
        Attributes Map(LowCardinality(String), String)
    ) CODEC(ZSTD(1))
)
ENGINE = ReplicatedMergeTree
PARTITION BY toDate(Timestamp)
ORDER BY (TraceId, Timestamp, SpanId)
TTL toDateTime(Timestamp) + toIntervalDay(30)
SETTINGS index_granularity = 1024, ttl_only_drop_parts = 1, min_parts_to_merge_at_once = 10, fsync_after_insert = 1, fsync_part_directory = 1, storage_policy = 'hot_cold',
    min_bytes_for_wide_part = 67108864;

ALTER TABLE traces.otel_traces_local ON CLUSTER main
    MODIFY COLUMN SpanAttributes CODEC(ZSTD(2)),
    ADD COLUMN IF NOT EXISTS Project LowCardinality(String) MATERIALIZED ResourceAttributes['mast.project'],
    ADD COLUMN IF NOT EXISTS Operation LowCardinality(String) MATERIALIZED coalesce(nullIf(if(multiIf(ScopeName = '@arizeai/openinference-instrumentation-langchain', arrayFilter(name -> has(extractAll(SpanName, '^(?:(.+))$'), name), extractAll(SpanAttributes['output.value'], '"AIMessage\\w*"\\],"kwargs":\\{(?:"\\w+":"(?:[^"\\\\]|\\\\.)*",)*"name":"([^"]*)"'))[-1], ScopeName = '@mastra/otel', extractAll(SpanName, '^(?:agent\\.(.+))$')[-1], ScopeName = 'ai', arrayFilter(name -> notEmpty(extractAll(SpanName, '^(?:ai\\.(?:generate|stream)(?:Text|Object))$')), extractAll(SpanAttributes['ai.telemetry.functionId'], '(.+)'))[-1], ScopeName = 'com.anthropic.claude_code.tracing', extractAll(SpanName, '^(?:(claude)_code\\.interaction)$')[-1], ScopeName = 'gcp.vertex.agent', extractAll(SpanName, '^(?:(?:agent_run|invoke_agent) \\[?([^\\]]+)\\]?)$')[-1], ScopeName = 'openinference.instrumentation.dspy' AND SpanAttributes['openinference.span.kind'] = 'CHAIN', arrayFilter(name -> name NOT IN ('Avatar', 'BestOfN', 'ChainOfThought', 'CodeAct', 'KNN', 'MultiChainComparison', 'Parallel', 'Predict', 'ProgramOfThought', 'RLM', 'ReAct', 'ReActV2', 'Refine', 'Retry'), extractAll(SpanName, '^(?:(\\w+)(?:\\(.*\\))?\\.forward)$'))[-1], ScopeName = 'openinference.instrumentation.llama_index', arrayFilter(name -> notEmpty(extractAll(SpanName, '^(?:.*\\.run_agent_step)$')), extractAll(SpanAttributes['input.value'], 'current_agent_name=\'([^\']*)\''))[-1], ScopeName = 'openinference.instrumentation.smolagents', extractAll(SpanName, '^(?:(.+)\\.run)$')[-1], ScopeName = 'pydantic-ai', arrayFilter(name -> notEmpty(extractAll(SpanName, '^(?:agent run)$')), extractAll(SpanAttributes['agent_name'], '(.+)'))[-1], '') = '', '', 'invoke_agent'), ''), nullIf(transform(multiIf(SpanAttributes['gen_ai.operation.name'] != '', SpanAttributes['gen_ai.operation.name'], SpanAttributes['openinference.span.kind'] != '', SpanAttributes['openinference.span.kind'], SpanAttributes['traceloop.span.kind'] != '', SpanAttributes['traceloop.span.kind'], SpanAttributes['llm.request.type'] != '', SpanAttributes['llm.request.type'], SpanAttributes['langfuse.observation.type'] != '', SpanAttributes['langfuse.observation.type'], SpanAttributes['mlflow.spanType'] != '', SpanAttributes['mlflow.spanType'], SpanAttributes['ai.operationId']), ['LLM', 'TOOL', 'AGENT', 'agent', 'tool', 'workflow', 'invoke_swarm', 'invoke_graph', 'text_completion', 'generate_content', 'completion', 'generation', '"LLM"', '"CHAT_MODEL"', '"TOOL"', '"AGENT"', 'ai.generateText.doGenerate', 'ai.streamText.doStream', 'ai.generateObject.doGenerate', 'ai.streamObject.doStream', 'ai.toolCall', 'agent.run', 'workflow.run', 'tool.execute', 'tool_selection'], ['chat', 'execute_tool', 'invoke_agent', 'invoke_agent', 'execute_tool', 'invoke_workflow', 'invoke_workflow', 'invoke_workflow', 'chat', 'chat', 'chat', 'chat', 'chat', 'chat', 'execute_tool', 'invoke_agent', 'chat', 'chat', 'chat', 'chat', 'execute_tool', 'invoke_agent', 'invoke_workflow', 'execute_tool', 'chat']), ''), multiIf((SpanAttributes['gen_ai.tool.name'] != '' OR SpanAttributes['tool.name'] != '' OR SpanAttributes['ai.toolCall.name'] != '') AND SpanAttributes['mcp.method.name'] IN ('', 'tools/call'), 'execute_tool', (SpanAttributes['gen_ai.usage.input_tokens'] != '' OR SpanAttributes['llm.token_count.prompt'] != '' OR SpanAttributes['gen_ai.usage.prompt_tokens'] != '' OR SpanAttributes['llm.usage.prompt_tokens'] != '' OR SpanAttributes['ai.usage.promptTokens'] != '' OR SpanAttributes['gen_ai.usage.output_tokens'] != '' OR SpanAttributes['llm.token_count.completion'] != '' OR SpanAttributes['gen_ai.usage.completion_tokens'] != '' OR SpanAttributes['llm.usage.completion_tokens'] != '' OR SpanAttributes['ai.usage.completionTokens'] != '' OR SpanAttributes['gen_ai.input.messages'] != '' OR SpanAttributes['gen_ai.output.messages'] != '' OR SpanAttributes['gen_ai.prompt.0.content'] != '' OR SpanAttributes['gen_ai.completion.0.content'] != '' OR SpanAttributes['gcp.vertex.agent.llm_request'] != '' OR SpanAttributes['gcp.vertex.agent.llm_response'] != '') AND multiIf(SpanAttributes['gen_ai.response.model'] != '', SpanAttributes['gen_ai.response.model'], SpanAttributes['gen_ai.request.model'] != '', SpanAttributes['gen_ai.request.model'], SpanAttributes['llm.model_name'] != '', SpanAttributes['llm.model_name'], SpanAttributes['llm.request.model'] != '', SpanAttributes['llm.request.model'], SpanAttributes['langfuse.observation.model.name'] != '', SpanAttributes['langfuse.observation.model.name'], SpanAttributes['ai.model.id']) != '', 'chat', '')),
    ADD COLUMN IF NOT EXISTS Framework LowCardinality(String) MATERIALIZED SpanAttributes['mast.framework'],
    ADD COLUMN IF NOT EXISTS AgentName LowCardinality(String) MATERIALIZED if(Operation = 'invoke_workflow', '', coalesce(nullIf(coalesce(nullIf(SpanAttributes['langsmith.metadata.lc_agent_name'], ''), nullIf(SpanAttributes['traceloop.association.properties.lc_agent_name'], ''), JSONExtractString(SpanAttributes['metadata'], 'lc_agent_name')), ''), nullIf(arrayLast(part -> NOT match(part, '^[0-9]*$') AND part NOT IN ('agent', 'model', 'tools', 'call_model', 'call_agent', '__start__', 'default'), arrayMap(part -> splitByChar(':', part)[1], splitByChar('|', coalesce(nullIf(SpanAttributes['langsmith.metadata.langgraph_checkpoint_ns'], ''), nullIf(SpanAttributes['traceloop.association.properties.langgraph_checkpoint_ns'], ''), JSONExtractString(SpanAttributes['metadata'], 'langgraph_checkpoint_ns'))))), ''), nullIf(multiIf(ScopeName = '@arizeai/openinference-instrumentation-langchain', arrayFilter(name -> has(extractAll(SpanName, '^(?:(.+))$'), name), extractAll(SpanAttributes['output.value'], '"AIMessage\\w*"\\],"kwargs":\\{(?:"\\w+":"(?:[^"\\\\]|\\\\.)*",)*"name":"([^"]*)"'))[-1], ScopeName = '@mastra/otel', extractAll(SpanName, '^(?:agent\\.(.+))$')[-1], ScopeName = 'ai', arrayFilter(name -> notEmpty(extractAll(SpanName, '^(?:ai\\.(?:generate|stream)(?:Text|Object))$')), extractAll(SpanAttributes['ai.telemetry.functionId'], '(.+)'))[-1], ScopeName = 'com.anthropic.claude_code.tracing', extractAll(SpanName, '^(?:(claude)_code\\.interaction)$')[-1], ScopeName = 'gcp.vertex.agent', extractAll(SpanName, '^(?:(?:agent_run|invoke_agent) \\[?([^\\]]+)\\]?)$')[-1], ScopeName = 'openinference.instrumentation.dspy' AND SpanAttributes['openinference.span.kind'] = 'CHAIN', arrayFilter(name -> name NOT IN ('Avatar', 'BestOfN', 'ChainOfThought', 'CodeAct', 'KNN', 'MultiChainComparison', 'Parallel', 'Predict', 'ProgramOfThought', 'RLM', 'ReAct', 'ReActV2', 'Refine', 'Retry'), extractAll(SpanName, '^(?:(\\w+)(?:\\(.*\\))?\\.forward)$'))[-1], ScopeName = 'openinference.instrumentation.llama_index', arrayFilter(name -> notEmpty(extractAll(SpanName, '^(?:.*\\.run_agent_step)$')), extractAll(SpanAttributes['input.value'], 'current_agent_name=\'([^\']*)\''))[-1], ScopeName = 'openinference.instrumentation.smolagents', extractAll(SpanName, '^(?:(.+)\\.run)$')[-1], ScopeName = 'pydantic-ai', arrayFilter(name -> notEmpty(extractAll(SpanName, '^(?:agent run)$')), extractAll(SpanAttributes['agent_name'], '(.+)'))[-1], ''), ''), arrayFirst(name -> name NOT IN ('agent', 'model', 'tools', 'call_model', 'call_agent', '__start__', 'default'), [multiIf(SpanAttributes['gen_ai.agent.name'] != '', SpanAttributes['gen_ai.agent.name'], SpanAttributes['crewai.agent.role'] != '', SpanAttributes['crewai.agent.role'], SpanAttributes['agent.name'] != '', SpanAttributes['agent.name'], SpanAttributes['agent_name'] != '', SpanAttributes['agent_name'], SpanAttributes['graph.node.name'] != '', SpanAttributes['graph.node.name'], SpanAttributes['graph.node.id'] != '', SpanAttributes['graph.node.id'], SpanAttributes['ai.telemetry.functionId'] != '', SpanAttributes['ai.telemetry.functionId'], SpanAttributes['agent_id'] != '', SpanAttributes['agent_id'], if(SpanAttributes['traceloop.span.kind'] = 'agent', SpanAttributes['traceloop.entity.name'], ''))]))),
    ADD COLUMN IF NOT EXISTS ToolName LowCardinality(String) MATERIALIZED if(multiIf(SpanAttributes['gen_ai.tool.name'] != '', SpanAttributes['gen_ai.tool.name'], SpanAttributes['tool.name'] != '', SpanAttributes['tool.name'], SpanAttributes['ai.toolCall.name'] != '', SpanAttributes['ai.toolCall.name'], if(SpanAttributes['traceloop.span.kind'] = 'tool', SpanAttributes['traceloop.entity.name'], '')) = '' AND Operation = 'execute_tool'
        AND SpanAttributes['mlflow.spanType'] != '', SpanName, multiIf(SpanAttributes['gen_ai.tool.name'] != '', SpanAttributes['gen_ai.tool.name'], SpanAttributes['tool.name'] != '', SpanAttributes['tool.name'], SpanAttributes['ai.toolCall.name'] != '', SpanAttributes['ai.toolCall.name'], if(SpanAttributes['traceloop.span.kind'] = 'tool', SpanAttributes['traceloop.entity.name'], ''))),
    ADD COLUMN IF NOT EXISTS Model LowCardinality(String) MATERIALIZED multiIf(SpanAttributes['gen_ai.response.model'] != '', SpanAttributes['gen_ai.response.model'], SpanAttributes['gen_ai.request.model'] != '', SpanAttributes['gen_ai.request.model'], SpanAttributes['llm.model_name'] != '', SpanAttributes['llm.model_name'], SpanAttributes['llm.request.model'] != '', SpanAttributes['llm.request.model'], SpanAttributes['langfuse.observation.model.name'] != '', SpanAttributes['langfuse.observation.model.name'], SpanAttributes['ai.model.id']),
    ADD COLUMN IF NOT EXISTS ConversationId String MATERIALIZED multiIf(SpanAttributes['gen_ai.conversation.id'] != '', SpanAttributes['gen_ai.conversation.id'], SpanAttributes['session.id']) CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS Sender LowCardinality(String) MATERIALIZED SpanAttributes['mast.message.sender'],
    ADD COLUMN IF NOT EXISTS Recipients Array(LowCardinality(String)) MATERIALIZED multiIf(SpanAttributes['mast.message.recipients'] = '', [], JSONType(SpanAttributes['mast.message.recipients']) = 'Array', JSONExtract(SpanAttributes['mast.message.recipients'], 'Array(String)'), [SpanAttributes['mast.message.recipients']]),
    ADD COLUMN IF NOT EXISTS HandoffTarget LowCardinality(String) MATERIALIZED multiIf(SpanAttributes['mast.handoff.target.name'] != '', SpanAttributes['mast.handoff.target.name'], SpanAttributes['gen_ai.agent.handoff.target.name'] != '', SpanAttributes['gen_ai.agent.handoff.target.name'], SpanAttributes['gen_ai.transfer.target.name']),
    ADD COLUMN IF NOT EXISTS InputTokens UInt32 MATERIALIZED toUInt32(least(toUInt64OrZero(multiIf(SpanAttributes['gen_ai.usage.input_tokens'] != '', SpanAttributes['gen_ai.usage.input_tokens'], SpanAttributes['llm.token_count.prompt'] != '', SpanAttributes['llm.token_count.prompt'], SpanAttributes['gen_ai.usage.prompt_tokens'] != '', SpanAttributes['gen_ai.usage.prompt_tokens'], SpanAttributes['llm.usage.prompt_tokens'] != '', SpanAttributes['llm.usage.prompt_tokens'], SpanAttributes['ai.usage.promptTokens'])), 0xFFFFFFFF)),
    ADD COLUMN IF NOT EXISTS OutputTokens UInt32 MATERIALIZED toUInt32(least(toUInt64OrZero(multiIf(SpanAttributes['gen_ai.usage.output_tokens'] != '', SpanAttributes['gen_ai.usage.output_tokens'], SpanAttributes['llm.token_count.completion'] != '', SpanAttributes['llm.token_count.completion'], SpanAttributes['gen_ai.usage.completion_tokens'] != '', SpanAttributes['gen_ai.usage.completion_tokens'], SpanAttributes['llm.usage.completion_tokens'] != '', SpanAttributes['llm.usage.completion_tokens'], SpanAttributes['ai.usage.completionTokens'])), 0xFFFFFFFF)),
    ADD COLUMN IF NOT EXISTS ErrorType LowCardinality(String) MATERIALIZED SpanAttributes['error.type'],
    ADD COLUMN IF NOT EXISTS ReceivedAt DateTime64(3) MATERIALIZED now64(3) CODEC(Delta, ZSTD(1)),
    ADD COLUMN IF NOT EXISTS MessageId String ALIAS SpanAttributes['mast.message.id'],
    ADD COLUMN IF NOT EXISTS ContentHash String ALIAS SpanAttributes['mast.message.content_hash'],
    ADD COLUMN IF NOT EXISTS UserId String MATERIALIZED if(SpanAttributes['user.id'] != '', SpanAttributes['user.id'],
        SpanAttributes['enduser.id']) CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS ServiceVersion LowCardinality(String) MATERIALIZED ResourceAttributes['service.version'],
    ADD COLUMN IF NOT EXISTS Provider LowCardinality(String) MATERIALIZED multiIf(
        SpanAttributes['gen_ai.provider.name'] != '', SpanAttributes['gen_ai.provider.name'],
        SpanAttributes['gen_ai.system'] != '', SpanAttributes['gen_ai.system'], SpanAttributes['llm.provider']),
    ADD COLUMN IF NOT EXISTS CacheReadTokens UInt32 MATERIALIZED
        toUInt32(least(toUInt64OrZero(multiIf(SpanAttributes['gen_ai.usage.cache_read.input_tokens'] != '', SpanAttributes['gen_ai.usage.cache_read.input_tokens'], SpanAttributes['gen_ai.usage.cache_read_input_tokens'] != '', SpanAttributes['gen_ai.usage.cache_read_input_tokens'], SpanAttributes['llm.token_count.prompt_details.cache_read'])), 4294967295)) CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS CacheWriteTokens UInt32 MATERIALIZED
        toUInt32(least(toUInt64OrZero(multiIf(SpanAttributes['gen_ai.usage.cache_write.input_tokens'] != '', SpanAttributes['gen_ai.usage.cache_write.input_tokens'], SpanAttributes['gen_ai.usage.cache_creation.input_tokens'] != '', SpanAttributes['gen_ai.usage.cache_creation.input_tokens'], SpanAttributes['gen_ai.usage.cache_creation_input_tokens'] != '', SpanAttributes['gen_ai.usage.cache_creation_input_tokens'], SpanAttributes['llm.token_count.prompt_details.cache_write'])), 4294967295)) CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS InputHash UInt64 MATERIALIZED if(SpanAttributes['mast.input.message_ids'] = '', 0,
        sipHash64(SpanAttributes['mast.input.message_ids'])) CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS Recorder UInt8 MATERIALIZED if(SpanAttributes['mast.framework'] != ''
        OR startsWith(ScopeName, 'mast_trace'), 0, 1 + cityHash64(ScopeName) % 255) CODEC(ZSTD(1));

ALTER TABLE traces.otel_traces_local ON CLUSTER main
    MODIFY SETTING min_bytes_for_wide_part = 67108864, min_parts_to_merge_at_once = 10;

CREATE TABLE IF NOT EXISTS traces.otel_traces ON CLUSTER main AS traces.otel_traces_local
ENGINE = Distributed('main', 'traces', 'otel_traces_local', cityHash64(TraceId));

CREATE TABLE IF NOT EXISTS traces.otel_traces_trace_id_ts_local ON CLUSTER main
(
    TraceId String CODEC(ZSTD(1)),
    Start DateTime CODEC(Delta, ZSTD(1)),
    End DateTime CODEC(Delta, ZSTD(1)),
    INDEX idx_trace_id TraceId TYPE bloom_filter(0.01) GRANULARITY 1
)
ENGINE = ReplicatedMergeTree
PARTITION BY toDate(Start)
ORDER BY (TraceId, Start)
TTL toDateTime(Start) + toIntervalDay(30)
SETTINGS index_granularity = 8192, ttl_only_drop_parts = 1, fsync_after_insert = 1, fsync_part_directory = 1, storage_policy = 'hot_cold';

CREATE TABLE IF NOT EXISTS traces.otel_traces_trace_id_ts ON CLUSTER main AS traces.otel_traces_trace_id_ts_local
ENGINE = Distributed('main', 'traces', 'otel_traces_trace_id_ts_local', cityHash64(TraceId));

CREATE MATERIALIZED VIEW IF NOT EXISTS traces.otel_traces_trace_id_ts_mv ON CLUSTER main
TO traces.otel_traces_trace_id_ts_local AS
SELECT TraceId, toDateTime(min(Timestamp)) AS Start, toDateTime(max(Timestamp)) AS End
FROM traces.otel_traces_local
WHERE TraceId != ''
GROUP BY TraceId;

CREATE TABLE IF NOT EXISTS traces.otel_logs_local ON CLUSTER main
(
    Timestamp DateTime64(9) CODEC(Delta, ZSTD(1)),
    TimestampTime DateTime DEFAULT toDateTime(Timestamp),
    TraceId String CODEC(ZSTD(1)),
    SpanId String CODEC(ZSTD(1)),
    TraceFlags UInt8,
    SeverityText LowCardinality(String) CODEC(ZSTD(1)),
    SeverityNumber UInt8,
    ServiceName LowCardinality(String) CODEC(ZSTD(1)),
    Body String CODEC(ZSTD(1)),
    ResourceSchemaUrl LowCardinality(String) CODEC(ZSTD(1)),
    ResourceAttributes Map(LowCardinality(String), String) CODEC(ZSTD(1)),
    ScopeSchemaUrl LowCardinality(String) CODEC(ZSTD(1)),
    ScopeName String CODEC(ZSTD(1)),
    ScopeVersion LowCardinality(String) CODEC(ZSTD(1)),
    ScopeAttributes Map(LowCardinality(String), String) CODEC(ZSTD(1)),
    LogAttributes Map(LowCardinality(String), String) CODEC(ZSTD(1)),
    EventName String CODEC(ZSTD(1))
)
ENGINE = ReplicatedMergeTree
PARTITION BY toDate(TimestampTime)
ORDER BY (TraceId, Timestamp)
TTL TimestampTime + toIntervalDay(30)
SETTINGS index_granularity = 1024, ttl_only_drop_parts = 1, fsync_after_insert = 1, fsync_part_directory = 1, storage_policy = 'hot_cold';

ALTER TABLE traces.otel_logs_local ON CLUSTER main
    ADD COLUMN IF NOT EXISTS EventName String CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS Project LowCardinality(String) MATERIALIZED ResourceAttributes['mast.project'];

CREATE TABLE IF NOT EXISTS traces.otel_logs ON CLUSTER main AS traces.otel_logs_local
ENGINE = Distributed('main', 'traces', 'otel_logs_local', cityHash64(TraceId));

CREATE VIEW IF NOT EXISTS traces.mast_evaluations ON CLUSTER main AS
SELECT
    Project,
    TraceId,
    SpanId,
    Timestamp,
    ServiceName,
    LogAttributes['gen_ai.evaluation.name'] AS Name,
    toFloat64OrNull(LogAttributes['gen_ai.evaluation.score.value']) AS Score,
    LogAttributes['gen_ai.evaluation.score.label'] AS Label,
    LogAttributes['gen_ai.evaluation.explanation'] AS Explanation,
    LogAttributes['error.type'] AS ErrorType
FROM traces.otel_logs
WHERE if(EventName != '', EventName, LogAttributes['event.name']) = 'gen_ai.evaluation.result'
ORDER BY Timestamp DESC
LIMIT 1 BY Project, TraceId, SpanId, Name, ServiceName;

CREATE TABLE IF NOT EXISTS traces.mast_workers_local ON CLUSTER main
(
    WorkerId String,
    Seen DateTime64(3),
    Gone Bool,
    Reading Array(String)
)
ENGINE = ReplicatedReplacingMergeTree(Seen)
ORDER BY WorkerId
TTL toDateTime(Seen) + toIntervalHour(1)
SETTINGS index_granularity = 1024, fsync_after_insert = 1, fsync_part_directory = 1, storage_policy = 'hot_cold';

CREATE TABLE IF NOT EXISTS traces.mast_workers ON CLUSTER main AS traces.mast_workers_local
ENGINE = Distributed('main', 'traces', 'mast_workers_local', cityHash64(WorkerId));

CREATE TABLE IF NOT EXISTS traces.mast_verdicts_local ON CLUSTER main
(
    Project LowCardinality(String),
    TraceId String CODEC(ZSTD(1)),
    Fingerprint String CODEC(ZSTD(1)),
    JudgeVersion LowCardinality(String),
    JudgedAt DateTime64(3) CODEC(Delta, ZSTD(1)),
    Status Enum8('ok' = 1, 'unscored' = 2),
    StatusReason String,
    Method LowCardinality(String),
    ServiceName LowCardinality(String),
    Framework LowCardinality(String),
    Name LowCardinality(String),
    RunStart DateTime64(9) CODEC(Delta, ZSTD(1)),
    RunEnd DateTime64(9) CODEC(Delta, ZSTD(1)),
    Steps UInt32,
    Outcome LowCardinality(String),
    FailureProbability Float32,
    Modes Nested
    (
        Code LowCardinality(String),
        Probability Float32,
        Evidence LowCardinality(String),
        Reason String,
        Steps Array(UInt32),
        SpanIds Array(String),
        Quotes Array(String)
    ),
    Abstained Bool,
    DecisiveStep Nullable(UInt32),
    DecisiveSpanId String,
    DecisiveAgent LowCardinality(String),
    DecisiveProbability Float32,
    DecisiveRule LowCardinality(String),
    DecisiveReason String CODEC(ZSTD(1)),
    MinimalFix String CODEC(ZSTD(1)),
    Candidates Nested
    (
        Step UInt32,
        SpanId String,
        Agent LowCardinality(String),
        Probability Float32,
        Rule LowCardinality(String)
    ),
    Model LowCardinality(String),
    Calls UInt32,
    InputTokens UInt64,
    OutputTokens UInt64,
    CostUsd Float64,
    RunKey UInt64 MATERIALIZED halfMD5(Project, TraceId) CODEC(NONE),
    RunSeen DateTime64(3) DEFAULT 0,
    RunSpans UInt64,
    RunErrors UInt64,
    RunInputTokens UInt64,
    RunOutputTokens UInt64,
    RunAgents Array(LowCardinality(String)),
    RunModels Array(LowCardinality(String)),
    RunOutcome LowCardinality(String),
    RunOutcomeReason String,
    RunTermination LowCardinality(String),
    Kind LowCardinality(String),
    Examined Array(LowCardinality(String)),
    Calibrated Bool,
    Readings UInt16,
    Agreeing UInt16,
    `LookFirst.Step` Array(UInt32),
    `LookFirst.Agent` Array(LowCardinality(String)),
    `LookFirst.Basis` Array(LowCardinality(String)),
    `LookFirst.Why` Array(String) CODEC(ZSTD(1)),
    `LookFirst.Quotes` Array(Array(String)) CODEC(ZSTD(1)),
    `LookFirst.SpanId` Array(String) CODEC(ZSTD(1)),
    `LookFirst.ReachesAnswer` Array(Bool),
    `LookFirst.Right` Array(UInt32),
    `LookFirst.Cases` Array(UInt32),
    `LookFirst.PlantedRight` Array(UInt32),
    `LookFirst.PlantedCases` Array(UInt32),
    Prompt LowCardinality(String),
    ModelStep Nullable(UInt32),
    `LookFirst.Heirs` Array(Array(UInt32)) CODEC(ZSTD(1)),
    `LookFirst.PossibleHeirs` Array(Array(UInt32)) CODEC(ZSTD(1)),
    `LookFirst.GoodRun` Array(String) CODEC(ZSTD(1)),
    `LookFirst.GoodStep` Array(UInt32)
)
ENGINE = ReplicatedReplacingMergeTree(JudgedAt)
PARTITION BY toDate(RunEnd)
ORDER BY (Project, TraceId, Fingerprint, JudgeVersion)
TTL toDateTime(RunEnd) + toIntervalDay(30)
SETTINGS index_granularity = 1024, fsync_after_insert = 1, fsync_part_directory = 1, storage_policy = 'hot_cold';

CREATE TABLE IF NOT EXISTS traces.mast_verdicts ON CLUSTER main AS traces.mast_verdicts_local
ENGINE = Distributed('main', 'traces', 'mast_verdicts_local', cityHash64(TraceId));

CREATE VIEW IF NOT EXISTS traces.mast_latest_verdicts ON CLUSTER main AS
SELECT *
FROM traces.mast_verdicts
ORDER BY JudgedAt DESC
LIMIT 1 BY Project, TraceId;

CREATE TABLE IF NOT EXISTS traces.mast_tombstones_local ON CLUSTER main
(
    Project LowCardinality(String),
    TraceId String CODEC(ZSTD(1)),
    ErasedAt SimpleAggregateFunction(min, DateTime64(3)) CODEC(ZSTD(1)),
    ChangedAt SimpleAggregateFunction(max, DateTime64(6)) CODEC(ZSTD(1)),
    DoneAt SimpleAggregateFunction(max, DateTime64(6)) CODEC(ZSTD(1)),
    Arrived SimpleAggregateFunction(sum, UInt64) CODEC(ZSTD(1))
)
ENGINE = ReplicatedAggregatingMergeTree
ORDER BY (Project, TraceId)
SETTINGS index_granularity = 1024, fsync_after_insert = 1, fsync_part_directory = 1, storage_policy = 'hot_cold';

CREATE TABLE IF NOT EXISTS traces.mast_tombstones ON CLUSTER main AS traces.mast_tombstones_local
ENGINE = Distributed('main', 'traces', 'mast_tombstones_local', cityHash64(TraceId));

CREATE TABLE IF NOT EXISTS traces.mast_selftests_local ON CLUSTER main
(
    Project LowCardinality(String),
    SelftestId String CODEC(ZSTD(1)),
    MeasuredAt DateTime64(6) CODEC(Delta, ZSTD(1)),
    ServiceName LowCardinality(String),
    Framework LowCardinality(String),
    JudgeVersion LowCardinality(String),
    Measure LowCardinality(String),
    Stage LowCardinality(String),
    Mode LowCardinality(String),
    Hits UInt32,
    Runs UInt32,
    Low Nullable(Float64),
    High Nullable(Float64),
    Operators Array(LowCardinality(String)),
    Originals UInt32,
    Note String CODEC(ZSTD(1))
)
ENGINE = ReplicatedReplacingMergeTree(MeasuredAt)
PARTITION BY toYYYYMM(MeasuredAt)
ORDER BY (Project, SelftestId, Measure, Stage, Mode)
SETTINGS index_granularity = 1024, fsync_after_insert = 1, fsync_part_directory = 1, storage_policy = 'hot_cold';

CREATE TABLE IF NOT EXISTS traces.mast_selftests ON CLUSTER main AS traces.mast_selftests_local
ENGINE = Distributed('main', 'traces', 'mast_selftests_local', cityHash64(SelftestId));

CREATE TABLE IF NOT EXISTS traces.mast_run_states_local ON CLUSTER main
(
    Project LowCardinality(String),
    TraceId String CODEC(ZSTD(1)),
    Day Date DEFAULT today(),
    Start SimpleAggregateFunction(min, DateTime64(9)) DEFAULT toDateTime64('2262-01-01', 9) CODEC(ZSTD(1)),
    End SimpleAggregateFunction(max, DateTime64(9)) CODEC(ZSTD(1)),
    LastSeen SimpleAggregateFunction(max, DateTime64(3)) DEFAULT now64(3) CODEC(ZSTD(1)),
    Root SimpleAggregateFunction(max, UInt8),
    Named SimpleAggregateFunction(min, String) DEFAULT '~' CODEC(ZSTD(1)),
    ServiceName SimpleAggregateFunction(max, String) CODEC(ZSTD(1)),
    Framework SimpleAggregateFunction(max, String) CODEC(ZSTD(1)),
    ConversationId SimpleAggregateFunction(max, String) CODEC(ZSTD(1)),
    TerminationReason SimpleAggregateFunction(max, String) CODEC(ZSTD(1)),
    Agents SimpleAggregateFunction(groupUniqArrayArray(1000), Array(String)) CODEC(ZSTD(1)),
    Models SimpleAggregateFunction(groupUniqArrayArray(1000), Array(String)) CODEC(ZSTD(1)),
    Spans SimpleAggregateFunction(groupUniqArrayArray(2097152), Array(UInt64)) CODEC(ZSTD(1)),
    Errors SimpleAggregateFunction(groupUniqArrayArray, Array(UInt64)) CODEC(ZSTD(1)),
    Tokens SimpleAggregateFunction(groupUniqArrayArray, Array(UInt64)) CODEC(ZSTD(1)),
    Said SimpleAggregateFunction(max, String) CODEC(ZSTD(1)),
    RunKey UInt64 MATERIALIZED halfMD5(Project, TraceId) CODEC(NONE),
    SpanIds SimpleAggregateFunction(groupUniqArrayArray(1048576), Array(UInt64)) CODEC(ZSTD(1)),
    ErrorIds SimpleAggregateFunction(groupUniqArrayArray(1048576), Array(UInt64)) CODEC(ZSTD(1)),
    Calls SimpleAggregateFunction(groupUniqArrayArray(2097152), Array(UInt128)) CODEC(ZSTD(1)),
    Charges SimpleAggregateFunction(groupUniqArrayArray(2097152), Array(UInt128)) CODEC(ZSTD(1)),
    Old SimpleAggregateFunction(max, UInt8) DEFAULT notEmpty(Spans),
    OldSpans SimpleAggregateFunction(max, UInt64),
    OldErrors SimpleAggregateFunction(max, UInt64),
    OldInputTokens SimpleAggregateFunction(max, UInt64),
    OldOutputTokens SimpleAggregateFunction(max, UInt64),
    Kind SimpleAggregateFunction(max, String) CODEC(ZSTD(1)),
    CallsMissing SimpleAggregateFunction(max, UInt8),
    Around SimpleAggregateFunction(groupUniqArrayArray(1048576), Array(UInt64)) CODEC(ZSTD(1)),
    INDEX idx_start Start TYPE minmax GRANULARITY 1
)
ENGINE = ReplicatedAggregatingMergeTree
PARTITION BY Day
ORDER BY (Project, TraceId, Day)
TTL Day + toIntervalDay(30)
SETTINGS index_granularity = 1024, ttl_only_drop_parts = 1, fsync_after_insert = 1, fsync_part_directory = 1, storage_policy = 'hot_cold';

CREATE TABLE IF NOT EXISTS traces.mast_run_states ON CLUSTER main AS traces.mast_run_states_local
ENGINE = Distributed('main', 'traces', 'mast_run_states_local', cityHash64(TraceId));

CREATE MATERIALIZED VIEW IF NOT EXISTS traces.mast_run_states_mv ON CLUSTER main
TO traces.mast_run_states_local AS
WITH
    multiIf(ParentSpanId = '', 2, Operation = 'invoke_workflow', 1, 0) AS root,
    greatest(toUnixTimestamp64Nano(Timestamp), 0) AS started,
    started + toInt64(least(Duration, toUInt64(9223372036854775807 - started))) AS ended,
    -- An id of OpenTelemetry is 64 bits: taken as they are, two are never mistaken for one, whoever chose
    -- them. No hash can promise that. What is no such id is hashed.
    reinterpretAsUInt64(unhex(SpanId)) AS number,
    if(lower(hex(reinterpretAsFixedString(number))) = SpanId, number, sipHash64(SpanId)) AS id,
    -- A sum, because the order of attributes means nothing and may differ in a repetition.
    arraySum((name, value) -> cityHash64(name, value),
        mapKeys(SpanAttributes), mapValues(SpanAttributes)) AS attributes,
    cityHash64(started, ended, ParentSpanId, SpanName, StatusCode, StatusMessage, attributes) AS content,
    Operation = 'chat' AND (InputTokens > 0 OR OutputTokens > 0) AS has_tokens,
    SpanAttributes['mast.framework'] != '' OR startsWith(ScopeName, 'mast_trace') AS is_ours,
    if(is_ours, 0, 1 + cityHash64(ScopeName) % 255) AS source,
    if(SpanAttributes['mast.run.kind'] != '', SpanAttributes['mast.run.kind'],
        ResourceAttributes['mast.run.kind']) AS kind,
    SpanAttributes['mast.run.outcome'] AS outcome
SELECT
    Project,
    TraceId,
    today() AS Day,
    min(Timestamp) AS Start,
    max(fromUnixTimestamp64Nano(ended)) AS End,
    now64(3) AS LastSeen,
    max(root) AS Root,
    min(concat(toString(2 - root), leftPad(toString(started), 19, '0'),
        multiIf(SpanAttributes['gen_ai.workflow.name'] != '', SpanAttributes['gen_ai.workflow.name'],
            Operation = 'invoke_workflow' AND SpanAttributes['gen_ai.agent.name'] != '',
            SpanAttributes['gen_ai.agent.name'], toString(SpanName)))) AS Named,
    max(toString(ServiceName)) AS ServiceName,
    max(toString(Framework)) AS Framework,
    max(ConversationId) AS ConversationId,
    max(SpanAttributes['mast.run.termination_reason']) AS TerminationReason,
    max(substring(kind, 1, 64)) AS Kind,
    groupUniqArrayIf(1000)(toString(AgentName), AgentName != '') AS Agents,
    groupUniqArrayIf(1000)(toString(Model), Model != '') AS Models,
    toUInt8(0) AS Old,
    toUInt8(max(SpanAttributes['mast.run.calls_missing'] = 'true')) AS CallsMissing,
    groupUniqArrayIf(1048576)(if(lower(hex(reinterpretAsFixedString(reinterpretAsUInt64(unhex(ParentSpanId))))) = ParentSpanId,
        reinterpretAsUInt64(unhex(ParentSpanId)), sipHash64(ParentSpanId)),
        has_tokens AND ParentSpanId != '' AND ParentSpanId != SpanId) AS Around,
    groupUniqArray(2097152)(bitOr(bitAnd(cityHash64(SpanId), 0xFFFFFFFF00000000), bitShiftRight(content, 32))) AS Spans,
    groupUniqArrayIf(1048576)(id, NOT has_tokens) AS SpanIds,
    groupUniqArrayIf(1048576)(id, StatusCode = 'Error') AS ErrorIds,
    groupUniqArrayIf(2097152)(bitOr(bitShiftLeft(toUInt128(id), 64), toUInt128(bitOr(
        bitShiftLeft(toUInt64(least(InputTokens, 0xFFFFFFF)), 36), bitOr(
        bitShiftLeft(toUInt64(least(OutputTokens, 0xFFFFFFF)), 8), source)))), has_tokens) AS Calls,
    maxIf(concat('0', leftPad(toString(ended), 19, '0'), outcome, '\n',
        SpanAttributes['mast.run.outcome_reason']), outcome IN ('success', 'failure')) AS Said
FROM traces.otel_traces_local
WHERE TraceId != ''
GROUP BY Project, TraceId;

CREATE MATERIALIZED VIEW IF NOT EXISTS traces.mast_run_starts_mv ON CLUSTER main
TO traces.mast_run_states_local AS
WITH
    multiIf(LogAttributes['gen_ai.workflow.name'] != '', LogAttributes['gen_ai.workflow.name'],
        LogAttributes['gen_ai.agent.name'] != '', LogAttributes['gen_ai.agent.name'], Body) AS name,
    if(LogAttributes['mast.run.kind'] != '', LogAttributes['mast.run.kind'],
        ResourceAttributes['mast.run.kind']) AS kind
SELECT
    Project,
    TraceId,
    today() AS Day,
    min(Timestamp) AS Start,
    max(Timestamp) AS End,
    now64(3) AS LastSeen,
    toUInt8(0) AS Root,
    min(concat('1', leftPad(toString(greatest(toUnixTimestamp64Nano(Timestamp), 0)), 19, '0'), name)) AS Named,
    max(toString(ServiceName)) AS ServiceName,
    max(LogAttributes['mast.framework']) AS Framework,
    max(LogAttributes['gen_ai.conversation.id']) AS ConversationId,
    max(substring(kind, 1, 64)) AS Kind,
    toUInt8(0) AS Old
FROM traces.otel_logs_local
WHERE TraceId != '' AND SpanId != ''
    AND if(EventName != '', EventName, LogAttributes['event.name']) = 'mast.run.start'
GROUP BY Project, TraceId;

CREATE VIEW IF NOT EXISTS traces.mast_runs ON CLUSTER main AS
WITH
    -- Concatenated, sorted and compacted: several times faster than ClickHouse's set of numbers.
    groupArrayArray(4194304)(s.Spans) AS stored_marks,
    arrayCompact(arraySort(stored_marks)) AS marks,
    groupArrayArray(2097152)(s.SpanIds) AS span_ids,
    groupArrayArray(2097152)(s.ErrorIds) AS error_ids,
    groupArrayArray(4194304)(s.Calls) AS stored_calls,
    -- Of a call that came with several contents, the one with the most input tokens counts, then output.
    arrayCompact(call -> bitShiftRight(call, 64), arrayReverseSort(stored_calls)) AS calls,
    arrayMap(call -> toUInt64(call), arrayFilter(call -> bitAnd(call, 0xFFFFFFFFFFFFFF00) != 0,
        arrayCompact(call -> bitShiftRight(call, 64), arraySort(call -> (bitShiftRight(call, 64), bitAnd(call, 255), call),
        arrayConcat(calls, arrayMap(id -> bitOr(bitShiftLeft(toUInt128(id), 64), toUInt128(1)),
        groupUniqArrayArray(2097152)(s.Around))))))) AS used,
    -- Where several tools have recorded calls, of those with the same tokens there were as many as the tool
    -- saw that saw most.
    if(arrayUniq(arrayMap(use -> toUInt8(use), used)) > 1, arrayFilter((use, nth) -> nth = 1, used,
        arrayEnumerateUniq(arrayMap(use -> bitShiftRight(use, 8), used), arrayEnumerateUniq(used))), used) AS counted,
    -- A set is as large as it may be, or more was stored than is read: there was more.
    max(length(s.SpanIds)) >= 1048576 OR max(length(s.ErrorIds)) >= 1048576 OR max(length(s.Calls)) >= 2097152
        OR length(span_ids) >= 2097152 OR length(error_ids) >= 2097152 OR length(stored_calls) >= 4194304 AS is_full,
    -- Odd: stored before, and not stored again with whole ids.
    bitTest(max(s.Old), 0) AS is_old,
    max(s.Said) AS said,
    position(said, '\n') AS line_break
SELECT
    s.RunKey AS RunKey,
    s.Project AS Project,
    s.TraceId AS TraceId,
    substring(min(s.Named), 21) AS Name,
    max(s.ServiceName) AS ServiceName,
    max(s.Framework) AS Framework,
    max(s.ConversationId) AS ConversationId,
    min(s.Start) AS Start,
    max(s.End) AS End,
    max(s.LastSeen) AS LastSeen,
    toUInt8(max(s.Root) > 0) AS RootSeen,
    greatest(arrayUniq(arrayConcat(span_ids, arrayMap(call -> toUInt64(bitShiftRight(call, 64)), calls))),
        if(is_old, max(s.OldSpans), 0)) AS Spans,
    greatest(arrayUniq(error_ids), if(is_old, max(s.OldErrors), 0)) AS Errors,
    greatest(arraySum(use -> bitShiftRight(use, 36), counted), if(is_old, max(s.OldInputTokens), 0)) AS InputTokens,
    greatest(arraySum(use -> bitAnd(bitShiftRight(use, 8), 0xFFFFFFF), counted),
        if(is_old, max(s.OldOutputTokens), 0)) AS OutputTokens,
    arraySort(groupUniqArrayArray(1000)(s.Agents)) AS Agents,
    arraySort(groupUniqArrayArray(1000)(s.Models)) AS Models,
    if(line_break = 0, '', substring(said, 21, line_break - 21)) AS Outcome,
    if(line_break = 0, '', substring(said, line_break + 1)) AS OutcomeReason,
    max(s.TerminationReason) AS TerminationReason,
    -- Of a run beyond the bound it is made of what does not depend on which marks were kept.
    lower(hex(if(length(marks) >= 2097152 OR length(stored_marks) >= 4194304,
        cityHash64(Start, End, RootSeen, Outcome, OutcomeReason),
        cityHash64(marks, Outcome, OutcomeReason)))) AS Fingerprint,
    max(s.Kind) AS Kind,
    multiIf(max(s.Old) = 1, 'being counted', is_old, 'about', is_full OR max(s.CallsMissing) = 1 OR arrayExists(use -> bitShiftRight(use, 36) = 0xFFFFFFF
        OR bitAnd(bitShiftRight(use, 8), 0xFFFFFFF) = 0xFFFFFFF, counted), 'at least', 'exact') AS Totals,
    toUInt8(max(notEmpty(s.ErrorIds) OR notEmpty(s.Errors))) AS Failed
FROM traces.mast_run_states AS s
GROUP BY s.RunKey, s.Project, s.TraceId;

CREATE TABLE IF NOT EXISTS traces.mast_run_facts_local ON CLUSTER main
(
    Project LowCardinality(String),
    TraceId String CODEC(ZSTD(1)),
    RunKey UInt64 DEFAULT halfMD5(Project, TraceId) CODEC(NONE),
    Seen DateTime64(3) CODEC(Delta, ZSTD(1)),
    RunEnd DateTime64(9) CODEC(Delta, ZSTD(1)),
    Version LowCardinality(String),
    Actions Array(Tuple(Agent LowCardinality(String), Name LowCardinality(String), Times UInt64)) CODEC(ZSTD(1)),
    Calls Array(Tuple(At DateTime64(9), SpanId String, Agent LowCardinality(String), Model LowCardinality(String),
        Provider LowCardinality(String), Sent UInt64, CacheRead UInt64, CacheWrite UInt64, Output UInt64, Again UInt8,
        Resent UInt64)) CODEC(ZSTD(1)),
    Tools Array(Tuple(At DateTime64(9), Agent LowCardinality(String), Tool LowCardinality(String))) CODEC(ZSTD(1)),
    Team Tuple(Agents UInt64, Messages UInt64, Acts UInt64, Chosen UInt64, ByAgents UInt64, Read UInt64, Written UInt64,
        Spoken UInt64, Together Int64, Active Int64) CODEC(ZSTD(1))
)
ENGINE = ReplicatedReplacingMergeTree(Seen)
PARTITION BY toDate(RunEnd)
ORDER BY RunKey
TTL toDateTime(RunEnd) + toIntervalDay(30)
SETTINGS index_granularity = 1024, min_age_to_force_merge_seconds = 3600,
    min_age_to_force_merge_on_partition_only = 1, fsync_after_insert = 1, fsync_part_directory = 1, storage_policy = 'hot_cold';

CREATE TABLE IF NOT EXISTS traces.mast_run_facts ON CLUSTER main AS traces.mast_run_facts_local
ENGINE = Distributed('main', 'traces', 'mast_run_facts_local', cityHash64(TraceId));

CREATE VIEW IF NOT EXISTS traces.mast_span_facts ON CLUSTER main AS
SELECT Project, TraceId, RunKey, Version, Actions, Calls, Tools,
    (Agents, Messages, Acts, Chosen, ByAgents, Read, Written, Spoken,
        arraySum((time, open) -> if(open > 1, time, 0), Times, Open),
        arraySum((time, open) -> if(open > 0, time, 0), Times, Open)) AS Team
-- Each level reads the columns of the one inside: names within one level are replaced by their definitions
-- wherever they occur, which takes engines of 25.8 seconds before they read a row. For each AND and OR, the planner reads all
-- levels inside: they stand in the innermost one, and `if` stands for them further out, which halves the time of planning.
FROM (SELECT *, arrayCumSum(event -> event.2, Events) AS Open,
    -- Nobody works after the last event, so its time is of no account.
    arrayMap((event, after) -> after.1 - event.1, Events, arrayResize(arraySlice(Events, 2), length(Events))) AS Times
-- Events (time, change) of one agent, of which those stay that begin or end its work as a whole.
FROM (SELECT *, arraySort(event -> (event.1, -event.2), arrayFlatten(arrayMap(
        agent -> arrayFilter((event, open) -> open = if(event.2 = 1, 1, 0),
            arraySort(event -> (event.1, -event.2), arrayConcat(
                arrayMap(w -> (w.2, toInt8(1)), arrayFilter(w -> w.1 = agent, Work)),
                arrayMap(w -> (w.3, toInt8(-1)), arrayFilter(w -> w.1 = agent, Work)))) AS events,
            arrayCumSum(event -> event.2, events)),
        arrayDistinct(arrayMap(w -> w.1, Work))))) AS Events
-- Stretches of work of each agent: (agent, begin, end). A tool inside which another agent's model works is an agent that
-- was called as a tool.
FROM (SELECT *, arrayConcat(Chats, arrayFilter(t -> NOT arrayExists(
        c -> c.1 != t.1 AND t.2 <= c.2 AND c.3 <= t.3, Chats), Uses)) AS Work,
    arrayMap((act, times) -> (act.1, act.2, times), Acted.1, Acted.2) AS Actions,
    arraySum(text -> text.3, arrayPopBack(Texts)) AS Spoken
FROM
(
    SELECT
        Project,
        TraceId,
        halfMD5(Project, TraceId) AS RunKey,
        argMinIf(ServiceVersion, Timestamp, Operation != '') AS Version,
        sumMapIf(Done, arrayMap(act -> 1, Done), Acting) AS Acted,
        groupArrayIf((Timestamp, SpanId, Agent, Model, Provider, Sent, CacheRead, CacheWrite, Output, Again, Resent),
            Counted) AS Calls,
        groupArrayIf((Timestamp, AgentName, ToolName), Operation = 'execute_tool') AS Tools,
        uniqExactIf(Agent, Agent != '') AS Agents,
        countIf(Operation = 'send_message') AS Messages,
        countIf(HasAct) AS Acts,
        countIf(SelectedBy != '') AS Chosen,
        countIf(SelectedBy IN ('agent', 'model')) AS ByAgents,
        sumIf(Sent, Operation = 'chat') AS Read,
        sumIf(Output, Operation = 'chat') AS Written,
        arraySort(groupArrayIf((Timestamp, SpanId, Output), Speaks)) AS Texts,
        groupArrayIf(10000)(Stretch, if(Agent != '', IsChat, 0)) AS Chats,
        groupArrayIf(10000)(Stretch, if(Agent != '', IsUse, 0)) AS Uses
    FROM
    (
        SELECT *, arrayDistinct([(Actor, ''), (Actor, Action)]) AS Done, (Agent, Began, Ended) AS Stretch,
            if(Request != 0, Request = lagInFrame(Request) OVER same, 0) AS Again,
            least(Sent, lagInFrame(Sent + Output) OVER same) AS Resent
        FROM
        (
            -- Where several tools have recorded calls, of those with the same tokens there were as many as the tool saw
            -- that saw most.
            SELECT *, if(HasTokens, row_number() OVER (
                PARTITION BY Project, TraceId, HasTokens, Sent, Output, Nth ORDER BY Source) = 1, 0) AS Counted
            FROM
            (
                SELECT *, if(Turn != '', Turn, Caller) AS Agent, row_number() OVER (
                    PARTITION BY Project, TraceId, HasTokens, Source, Sent, Output ORDER BY Timestamp, SpanId) AS Nth
                FROM
                (
                    -- What is stored twice counts once. A call around another has its tokens once more, and its agent; ours
                    -- counts all the same, see copies.py.
                    SELECT *, max(Within) OVER copies AS Caller,
                        if(Spends, if(Source = 0, 1, max(Around) OVER copies = 0), 0) AS HasTokens, row_number() OVER copies AS Copy
                    FROM
                    (
                        SELECT *, if(Key = SpanId, max(Key != SpanId) OVER (PARTITION BY Project, TraceId, Key), 0) AS Around,
                            max(if(Key = SpanId, Turn, '')) OVER (PARTITION BY Project, TraceId, Key) AS Within
                        FROM
                        (
                            SELECT *, arrayJoin(if(IsInside, [SpanId, ParentSpanId], [SpanId])) AS Key
                            FROM
                            (
                                -- The turns of calls that do not name their agent; most do.
                                SELECT *, if(AgentName != '', AgentName, max(if(Operation = 'invoke_agent', AgentName, '')) OVER (
                                    PARTITION BY Project, TraceId, if(Operation = 'invoke_agent', SpanId, ParentSpanId))) AS Turn
                                FROM
                                (
                                    SELECT toString(Project) AS Project, TraceId, SpanId, ParentSpanId, Timestamp,
                                        toUnixTimestamp64Nano(Timestamp) AS Began, Began + toInt64(Duration) AS Ended,
                                        toString(Operation) AS Operation, toString(AgentName) AS AgentName,
                                        if(Sender != '', toString(Sender), AgentName) AS Actor, toString(ToolName) AS ToolName,
                                        multiIf(Operation = 'execute_tool', concat(if(StatusCode = 'Error', 'failing tool ', 'tool '), ToolName),
                                            Operation = 'send_message' AND length(Recipients) = 1,
                                            concat('message to ', toString(Recipients[1])), '') AS Action,
                                        Actor != '' AND Operation != '' AS Acting,
                                        Operation = 'send_message' AND SpanAttributes['mast.message.performative'] != '' AS HasAct,
                                        SpanAttributes['mast.next_speaker.selected_by'] AS SelectedBy,
                                        toString(Model) AS Model, toString(Provider) AS Provider,
                                        toString(ServiceVersion) AS ServiceVersion,
                                        toUInt64(InputTokens) AS Sent, toUInt64(OutputTokens) AS Output,
                                        toUInt64(CacheReadTokens) AS CacheRead, toUInt64(CacheWriteTokens) AS CacheWrite,
                                        InputHash AS Request, Recorder AS Source,
                                        Operation = 'chat' AND Duration > 0 AS IsChat,
                                        Operation = 'execute_tool' AND Duration > 0 AS IsUse,
                                        Operation = 'chat' AND (Sent > 0 OR Output > 0) AS Spends,
                                        Spends AND ParentSpanId != '' AND ParentSpanId != SpanId AS IsInside,
                                        Operation = 'chat'
                                            AND position(lower(SpanAttributes['gen_ai.response.finish_reasons']), 'tool') = 0 AS Speaks
                                    FROM traces.otel_traces
                                    WHERE TraceId != ''
                    ))))
                    WINDOW copies AS (PARTITION BY Project, TraceId, SpanId ORDER BY Key = SpanId DESC, Sent DESC, Output DESC
                        ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)
                )
                WHERE Copy = 1
            )
        )
        WINDOW same AS (PARTITION BY Project, TraceId, Counted, Agent ORDER BY Timestamp, SpanId
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
    )
    GROUP BY Project, TraceId
))))
-- Each window divides its rows anew among all threads. On two threads the facts of a thousand runs took 2.6 times the
-- processor time; on sixteen, a question about runs whose facts are written took four times.
SETTINGS max_threads = 1;

CREATE TABLE IF NOT EXISTS traces.mast_replay_plans_local ON CLUSTER main
(
    Project LowCardinality(String),
    TraceId String CODEC(ZSTD(1)),
    PlanId String CODEC(ZSTD(1)),
    Name LowCardinality(String),
    PlannedAt DateTime64(6) CODEC(Delta, ZSTD(1)),
    Fingerprint String CODEC(ZSTD(1)),
    ServiceName LowCardinality(String),
    RunEnd DateTime64(9) CODEC(Delta, ZSTD(1)),
    Plan String CODEC(ZSTD(1)),
    Precedence UInt64
)
ENGINE = ReplicatedReplacingMergeTree(Precedence)
PARTITION BY toDate(RunEnd)
ORDER BY (Project, TraceId, PlanId)
TTL toDateTime(RunEnd) + toIntervalDay(30)
SETTINGS index_granularity = 1024, fsync_after_insert = 1, fsync_part_directory = 1, storage_policy = 'hot_cold';

CREATE TABLE IF NOT EXISTS traces.mast_replay_plans ON CLUSTER main AS traces.mast_replay_plans_local
ENGINE = Distributed('main', 'traces', 'mast_replay_plans_local', cityHash64(TraceId));

CREATE TABLE IF NOT EXISTS traces.mast_replays_local ON CLUSTER main
(
    Project LowCardinality(String),
    TraceId String CODEC(ZSTD(1)),
    PlanId String CODEC(ZSTD(1)),
    Sequence UInt32,
    Arm LowCardinality(String),
    Step Int32,
    SpanId String CODEC(ZSTD(1)),
    FixSource LowCardinality(String),
    FixHash String CODEC(ZSTD(1)),
    FixText String CODEC(ZSTD(1)),
    FixModel LowCardinality(String),
    Hold Bool,
    Phase LowCardinality(String),
    Pair Int32,
    Status LowCardinality(String),
    Outcome LowCardinality(String),
    Reason String CODEC(ZSTD(1)),
    ServedCalls UInt32,
    ServedTools UInt32,
    LiveCalls UInt32,
    LiveTools UInt32,
    InputTokens UInt64,
    OutputTokens UInt64,
    CostUsd Nullable(Float64),
    Models Array(LowCardinality(String)),
    CallsHash String CODEC(ZSTD(1)),
    Answer String CODEC(ZSTD(1)),
    StartedAt DateTime64(6) CODEC(Delta, ZSTD(1)),
    Seconds Float64,
    ProgramHash String CODEC(ZSTD(1)),
    Holder String CODEC(ZSTD(1)),
    ServiceName LowCardinality(String),
    RunEnd DateTime64(9) CODEC(Delta, ZSTD(1)),
    Precedence UInt64
)
ENGINE = ReplicatedReplacingMergeTree(Precedence)
PARTITION BY toDate(RunEnd)
ORDER BY (Project, TraceId, PlanId, Sequence)
TTL toDateTime(RunEnd) + toIntervalDay(30)
SETTINGS index_granularity = 1024, fsync_after_insert = 1, fsync_part_directory = 1, storage_policy = 'hot_cold';

CREATE TABLE IF NOT EXISTS traces.mast_replays ON CLUSTER main AS traces.mast_replays_local
ENGINE = Distributed('main', 'traces', 'mast_replays_local', cityHash64(TraceId));

CREATE TABLE IF NOT EXISTS traces.mast_confirmations_local ON CLUSTER main
(
    Project LowCardinality(String),
    TraceId String CODEC(ZSTD(1)),
    RunKey UInt64 MATERIALIZED halfMD5(Project, TraceId) CODEC(NONE),
    ConfirmedAt DateTime64(6) CODEC(Delta, ZSTD(1)),
    Fingerprint String CODEC(ZSTD(1)),
    PlanId String CODEC(ZSTD(1)),
    Status LowCardinality(String),
    Text String CODEC(ZSTD(1)),
    OriginStep Nullable(Int32),
    OriginAgent LowCardinality(String),
    OriginSpanId String CODEC(ZSTD(1)),
    PointOfNoReturn Nullable(Int32),
    PointAgent LowCardinality(String),
    Refuted Array(Int32),
    Curve Nested
    (
        Step Int32,
        Successes UInt32,
        Runs UInt32,
        Low Float64,
        High Float64
    ),
    Contrasts Nested
    (
        Step Int32,
        Agent LowCardinality(String),
        Source LowCardinality(String),
        FixSuccesses UInt32,
        KeepSuccesses UInt32,
        Pairs UInt32,
        Censored UInt32,
        EValue Float64,
        Threshold Float64,
        Effect Float64
    ),
    PlannedContrasts UInt32,
    Replays UInt32,
    LiveCalls UInt64,
    CostUsd Nullable(Float64),
    Json String CODEC(ZSTD(1)),
    ServiceName LowCardinality(String),
    RunEnd DateTime64(9) CODEC(Delta, ZSTD(1))
)
ENGINE = ReplicatedReplacingMergeTree(ConfirmedAt)
PARTITION BY toDate(RunEnd)
ORDER BY (Project, TraceId)
TTL toDateTime(RunEnd) + toIntervalDay(30)
SETTINGS index_granularity = 1024, fsync_after_insert = 1, fsync_part_directory = 1, storage_policy = 'hot_cold';

CREATE TABLE IF NOT EXISTS traces.mast_confirmations ON CLUSTER main AS traces.mast_confirmations_local
ENGINE = Distributed('main', 'traces', 'mast_confirmations_local', cityHash64(TraceId));

CREATE TABLE IF NOT EXISTS traces.mast_prices_local ON CLUSTER main
(
    Project LowCardinality(String),
    Model LowCardinality(String),
    Provider LowCardinality(String),
    PricedAt DateTime64(6) CODEC(Delta, ZSTD(1)),
    Bands Nested
    (
        Since Date,
        Begin UInt32,
        End UInt32,
        Above Int64,
        Input Decimal(38, 12),
        CacheRead Decimal(38, 12),
        CacheWrite Decimal(38, 12),
        Output Decimal(38, 12),
        Calls Decimal(38, 12)
    )
)
ENGINE = ReplicatedReplacingMergeTree(PricedAt)
ORDER BY (Project, Model, Provider)
SETTINGS index_granularity = 1024, fsync_after_insert = 1, fsync_part_directory = 1, storage_policy = 'hot_cold';

CREATE TABLE IF NOT EXISTS traces.mast_prices ON CLUSTER main AS traces.mast_prices_local
ENGINE = Distributed('main', 'traces', 'mast_prices_local', cityHash64(Model));

CREATE TABLE IF NOT EXISTS traces.mast_pattern_runs_local ON CLUSTER main
(
    Project LowCardinality(String),
    TraceId String CODEC(ZSTD(1)),
    RunKey UInt64 DEFAULT halfMD5(Project, TraceId) CODEC(NONE),
    JudgedAt DateTime64(3) CODEC(LZ4),
    Fingerprint String CODEC(ZSTD(1)),
    RunStart DateTime64(9) CODEC(LZ4),
    RunEnd DateTime64(9) CODEC(LZ4),
    ServiceName LowCardinality(String),
    Framework LowCardinality(String),
    Version LowCardinality(String),
    Outcome LowCardinality(String),
    ExaminedBits UInt16,
    Steps UInt32,
    DecisiveStep Nullable(UInt32),
    DecisiveAgent LowCardinality(String),
    Tokens UInt64,
    Hits Nested
    (
        Code LowCardinality(String),
        Agent LowCardinality(String),
        Peer LowCardinality(String),
        Tool LowCardinality(String),
        Template UInt64,
        Text String,
        Step UInt32,
        SpanId String
    ) CODEC(ZSTD(1)),
    Actions Nested
    (
        Agent LowCardinality(String),
        Name LowCardinality(String)
    ) CODEC(ZSTD(1))
)
ENGINE = ReplicatedReplacingMergeTree(JudgedAt)
PARTITION BY toDate(RunEnd)
ORDER BY RunKey
TTL toDateTime(RunEnd) + toIntervalDay(30)
SETTINGS index_granularity = 8192, min_age_to_force_merge_seconds = 3600,
    min_age_to_force_merge_on_partition_only = 1, fsync_after_insert = 1, fsync_part_directory = 1, storage_policy = 'hot_cold';

CREATE TABLE IF NOT EXISTS traces.mast_pattern_runs ON CLUSTER main AS traces.mast_pattern_runs_local
ENGINE = Distributed('main', 'traces', 'mast_pattern_runs_local', cityHash64(TraceId));

CREATE TABLE IF NOT EXISTS traces.mast_pattern_states_local ON CLUSTER main
(
    Project LowCardinality(String),
    PatternId String,
    ChangedAt DateTime64(6) CODEC(Delta, ZSTD(1)),
    State LowCardinality(String),
    Version String,
    OldVersions Array(String),
    Author LowCardinality(String),
    Note String CODEC(ZSTD(1))
)
ENGINE = ReplicatedReplacingMergeTree(ChangedAt)
ORDER BY (Project, PatternId)
SETTINGS index_granularity = 1024, fsync_after_insert = 1, fsync_part_directory = 1, storage_policy = 'hot_cold';

CREATE TABLE IF NOT EXISTS traces.mast_pattern_states ON CLUSTER main AS traces.mast_pattern_states_local
ENGINE = Distributed('main', 'traces', 'mast_pattern_states_local', cityHash64(PatternId));

CREATE TABLE IF NOT EXISTS traces.mast_pattern_names_local ON CLUSTER main
(
    Project LowCardinality(String),
    PatternId String,
    NamedAt DateTime64(6) CODEC(Delta, ZSTD(1)),
    Sentence String CODEC(ZSTD(1)),
    Quotes Array(String) CODEC(ZSTD(1)),
    TraceIds Array(String) CODEC(ZSTD(1)),
    Model LowCardinality(String),
    RunEnd DateTime64(9) CODEC(Delta, ZSTD(1))
)
ENGINE = ReplicatedReplacingMergeTree(NamedAt)
PARTITION BY toDate(RunEnd)
ORDER BY (Project, PatternId)
TTL toDateTime(RunEnd) + toIntervalDay(30)
SETTINGS index_granularity = 1024, fsync_after_insert = 1, fsync_part_directory = 1, storage_policy = 'hot_cold';

CREATE TABLE IF NOT EXISTS traces.mast_pattern_names ON CLUSTER main AS traces.mast_pattern_names_local
ENGINE = Distributed('main', 'traces', 'mast_pattern_names_local', cityHash64(PatternId));

CREATE TABLE IF NOT EXISTS traces.mast_otlp_inlet ON CLUSTER main
(
    resource_spans Array(Tuple(
    resource Tuple(attributes Array(Tuple(key LowCardinality(String), value Tuple(value Enum8('none' = 0, 'string_value' = 1, 'bool_value' = 2, 'int_value' = 3, 'double_value' = 4, 'array_value' = 5, 'kvlist_value' = 6, 'bytes_value' = 7), string_value String, bool_value String, int_value String, double_value String, bytes_value String, kvlist_value String, array_value Tuple(values Array(Tuple(value Enum8('none' = 0, 'string_value' = 1, 'bool_value' = 2, 'int_value' = 3, 'double_value' = 4, 'array_value' = 5, 'kvlist_value' = 6, 'bytes_value' = 7), string_value String, bool_value Bool, int_value Int64, double_value Float64, bytes_value String, kvlist_value String, array_value String))))))),
    scope_spans Array(Tuple(
        scope Tuple(name String, version String),
        spans Array(Tuple(
            trace_id String,
            span_id String,
            trace_state String,
            parent_span_id String,
            name String,
            kind Int32,
            start_time_unix_nano UInt64,
            end_time_unix_nano UInt64,
            attributes Array(Tuple(key LowCardinality(String), value Tuple(value Enum8('none' = 0, 'string_value' = 1, 'bool_value' = 2, 'int_value' = 3, 'double_value' = 4, 'array_value' = 5, 'kvlist_value' = 6, 'bytes_value' = 7), string_value String, bool_value String, int_value String, double_value String, bytes_value String, kvlist_value String, array_value Tuple(values Array(Tuple(value Enum8('none' = 0, 'string_value' = 1, 'bool_value' = 2, 'int_value' = 3, 'double_value' = 4, 'array_value' = 5, 'kvlist_value' = 6, 'bytes_value' = 7), string_value String, bool_value Bool, int_value Int64, double_value Float64, bytes_value String, kvlist_value String, array_value String)))))),
            events Array(Tuple(time_unix_nano UInt64, name String, attributes Array(Tuple(key LowCardinality(String), value Tuple(value Enum8('none' = 0, 'string_value' = 1, 'bool_value' = 2, 'int_value' = 3, 'double_value' = 4, 'array_value' = 5, 'kvlist_value' = 6, 'bytes_value' = 7), string_value String, bool_value String, int_value String, double_value String, bytes_value String, kvlist_value String, array_value Tuple(values Array(Tuple(value Enum8('none' = 0, 'string_value' = 1, 'bool_value' = 2, 'int_value' = 3, 'double_value' = 4, 'array_value' = 5, 'kvlist_value' = 6, 'bytes_value' = 7), string_value String, bool_value Bool, int_value Int64, double_value Float64, bytes_value String, kvlist_value String, array_value String)))))))),
            links Array(Tuple(trace_id String, span_id String, trace_state String,
                attributes Array(Tuple(key LowCardinality(String), value Tuple(value Enum8('none' = 0, 'string_value' = 1, 'bool_value' = 2, 'int_value' = 3, 'double_value' = 4, 'array_value' = 5, 'kvlist_value' = 6, 'bytes_value' = 7), string_value String, bool_value String, int_value String, double_value String, bytes_value String, kvlist_value String, array_value Tuple(values Array(Tuple(value Enum8('none' = 0, 'string_value' = 1, 'bool_value' = 2, 'int_value' = 3, 'double_value' = 4, 'array_value' = 5, 'kvlist_value' = 6, 'bytes_value' = 7), string_value String, bool_value Bool, int_value Int64, double_value Float64, bytes_value String, kvlist_value String, array_value String)))))))),
            status Tuple(message String, code Int32)
        ))
    ))
)),
    mast_project Array(String)
)
ENGINE = Null;

CREATE MATERIALIZED VIEW IF NOT EXISTS traces.mast_otlp_inlet_mv ON CLUSTER main
TO traces.otel_traces AS
WITH
    mapFromArrays((resource_span.resource.attributes).key, arrayMap(v -> concat(v.string_value, multiIf(v.value = 'int_value', v.int_value, v.value = 'double_value', transform(replaceRegexpOne(v.double_value, 'e(\\d)', 'e+\\1'), ['nan', 'inf', '-inf'], ['json: unsupported value: NaN', 'json: unsupported value: +Inf', 'json: unsupported value: -Inf']), v.value = 'bool_value', v.bool_value, v.value = 'array_value', concat('[', arrayStringConcat(arrayMap(i -> multiIf(i.value = 'string_value', toJSONString(i.string_value), i.value = 'int_value', toString(i.int_value), i.value = 'bool_value', if(i.bool_value, 'true', 'false'), i.value = 'double_value', toString(i.double_value + 0), 'null'), v.array_value.values), ','), ']'), v.value = 'bytes_value', base64Encode(v.bytes_value), '')), (resource_span.resource.attributes).value)) AS sent,
    toInt64(least(span.start_time_unix_nano, 9223372036854775807)) AS started,
    toInt64(least(span.end_time_unix_nano, 9223372036854775807)) AS ended
SELECT
    fromUnixTimestamp64Nano(started) AS Timestamp,
    if(replaceAll(span.trace_id, '\0', '') = '', '', lower(hex(span.trace_id))) AS TraceId,
    if(replaceAll(span.span_id, '\0', '') = '', '', lower(hex(span.span_id))) AS SpanId,
    if(replaceAll(span.parent_span_id, '\0', '') = '', '', lower(hex(span.parent_span_id))) AS ParentSpanId,
    span.trace_state AS TraceState,
    span.name AS SpanName,
    transform(span.kind, [0, 1, 2, 3, 4, 5], ['Unspecified', 'Internal', 'Server', 'Client',
        'Producer', 'Consumer'], '') AS SpanKind,
    arrayFirst(attribute -> attribute.key = 'service.name',
        resource_span.resource.attributes).value.string_value AS ServiceName,
    multiIf(
        if(project = '\0', sent['mast.project'], project) = '',
        mapFilter((name, value) -> name != 'mast.project', sent),
        project = '\0',
        sent,
        mapUpdate(sent, map('mast.project', project))) AS ResourceAttributes,
    scope_span.scope.name AS ScopeName,
    scope_span.scope.version AS ScopeVersion,
    mapFromArrays((span.attributes).key, arrayMap(v -> concat(v.string_value, multiIf(v.value = 'int_value', v.int_value, v.value = 'double_value', transform(replaceRegexpOne(v.double_value, 'e(\\d)', 'e+\\1'), ['nan', 'inf', '-inf'], ['json: unsupported value: NaN', 'json: unsupported value: +Inf', 'json: unsupported value: -Inf']), v.value = 'bool_value', v.bool_value, v.value = 'array_value', concat('[', arrayStringConcat(arrayMap(i -> multiIf(i.value = 'string_value', toJSONString(i.string_value), i.value = 'int_value', toString(i.int_value), i.value = 'bool_value', if(i.bool_value, 'true', 'false'), i.value = 'double_value', toString(i.double_value + 0), 'null'), v.array_value.values), ','), ']'), v.value = 'bytes_value', base64Encode(v.bytes_value), '')), (span.attributes).value)) AS SpanAttributes,
    toUInt64(greatest(ended - started, 0)) AS Duration,
    transform(span.status.code, [0, 1, 2], ['Unset', 'Ok', 'Error'], '') AS StatusCode,
    span.status.message AS StatusMessage,
    arrayMap(time -> fromUnixTimestamp64Nano(toInt64(least(time, 9223372036854775807))), span.events.time_unix_nano)
        AS `Events.Timestamp`,
    span.events.name AS `Events.Name`,
    arrayMap(attributes -> mapFromArrays((attributes).key, arrayMap(v -> concat(v.string_value, multiIf(v.value = 'int_value', v.int_value, v.value = 'double_value', transform(replaceRegexpOne(v.double_value, 'e(\\d)', 'e+\\1'), ['nan', 'inf', '-inf'], ['json: unsupported value: NaN', 'json: unsupported value: +Inf', 'json: unsupported value: -Inf']), v.value = 'bool_value', v.bool_value, v.value = 'array_value', concat('[', arrayStringConcat(arrayMap(i -> multiIf(i.value = 'string_value', toJSONString(i.string_value), i.value = 'int_value', toString(i.int_value), i.value = 'bool_value', if(i.bool_value, 'true', 'false'), i.value = 'double_value', toString(i.double_value + 0), 'null'), v.array_value.values), ','), ']'), v.value = 'bytes_value', base64Encode(v.bytes_value), '')), (attributes).value)), span.events.attributes)
        AS `Events.Attributes`,
    arrayMap(id -> if(replaceAll(id, '\0', '') = '', '', lower(hex(id))), span.links.trace_id) AS `Links.TraceId`,
    arrayMap(id -> if(replaceAll(id, '\0', '') = '', '', lower(hex(id))), span.links.span_id) AS `Links.SpanId`,
    span.links.trace_state AS `Links.TraceState`,
    arrayMap(attributes -> mapFromArrays((attributes).key, arrayMap(v -> concat(v.string_value, multiIf(v.value = 'int_value', v.int_value, v.value = 'double_value', transform(replaceRegexpOne(v.double_value, 'e(\\d)', 'e+\\1'), ['nan', 'inf', '-inf'], ['json: unsupported value: NaN', 'json: unsupported value: +Inf', 'json: unsupported value: -Inf']), v.value = 'bool_value', v.bool_value, v.value = 'array_value', concat('[', arrayStringConcat(arrayMap(i -> multiIf(i.value = 'string_value', toJSONString(i.string_value), i.value = 'int_value', toString(i.int_value), i.value = 'bool_value', if(i.bool_value, 'true', 'false'), i.value = 'double_value', toString(i.double_value + 0), 'null'), v.array_value.values), ','), ']'), v.value = 'bytes_value', base64Encode(v.bytes_value), '')), (attributes).value)), span.links.attributes)
        AS `Links.Attributes`
FROM
(
    SELECT project, resource_span, scope_span, arrayJoin(scope_span.spans) AS span
    FROM
    (
        SELECT project, resource_span, arrayJoin(resource_span.scope_spans) AS scope_span
        FROM
        (
            SELECT mast_project[-1] AS project, arrayJoin(resource_spans) AS resource_span
            FROM traces.mast_otlp_inlet
        )
    )
)
WHERE throwIf(
    arrayExists(v -> v.value = 'kvlist_value' OR arrayExists(i -> i.value IN ('array_value', 'kvlist_value', 'bytes_value') OR match(i.string_value, '[\\x0b\\x0e\\x0f\\x1a-\\x1f]') OR (i.value = 'double_value' AND i.double_value != 0 AND NOT (abs(i.double_value) BETWEEN 1e-4 AND 1e15)), v.array_value.values), (resource_span.resource.attributes).value)
    OR arrayExists(v -> v.value = 'kvlist_value' OR arrayExists(i -> i.value IN ('array_value', 'kvlist_value', 'bytes_value') OR match(i.string_value, '[\\x0b\\x0e\\x0f\\x1a-\\x1f]') OR (i.value = 'double_value' AND i.double_value != 0 AND NOT (abs(i.double_value) BETWEEN 1e-4 AND 1e15)), v.array_value.values), (span.attributes).value)
    OR arrayExists(attributes -> arrayExists(v -> v.value = 'kvlist_value' OR arrayExists(i -> i.value IN ('array_value', 'kvlist_value', 'bytes_value') OR match(i.string_value, '[\\x0b\\x0e\\x0f\\x1a-\\x1f]') OR (i.value = 'double_value' AND i.double_value != 0 AND NOT (abs(i.double_value) BETWEEN 1e-4 AND 1e15)), v.array_value.values), (attributes).value), span.events.attributes)
    OR arrayExists(attributes -> arrayExists(v -> v.value = 'kvlist_value' OR arrayExists(i -> i.value IN ('array_value', 'kvlist_value', 'bytes_value') OR match(i.string_value, '[\\x0b\\x0e\\x0f\\x1a-\\x1f]') OR (i.value = 'double_value' AND i.double_value != 0 AND NOT (abs(i.double_value) BETWEEN 1e-4 AND 1e15)), v.array_value.values), (attributes).value), span.links.attributes)) = 0
SETTINGS short_circuit_function_evaluation = 'disable';

CREATE TABLE IF NOT EXISTS traces.mast_left_out_local ON CLUSTER main
(
    Project LowCardinality(String),
    TraceId String CODEC(ZSTD(1)),
    RunKey UInt64 MATERIALIZED halfMD5(Project, TraceId) CODEC(NONE),
    LeftOutAt DateTime64(6) CODEC(Delta, ZSTD(1)),
    Done Bool,
    KeptShare Float64,
    ServiceName LowCardinality(String),
    Framework LowCardinality(String),
    ServiceVersion LowCardinality(String),
    Branch LowCardinality(String),
    Spans UInt64,
    InputTokens UInt64,
    OutputTokens UInt64,
    RunStart DateTime64(9) CODEC(Delta, ZSTD(1)),
    RunEnd DateTime64(9) CODEC(Delta, ZSTD(1)),
    RunSeen DateTime64(3) CODEC(Delta, ZSTD(1)),
    UserId String CODEC(ZSTD(1)),
    ConversationId String CODEC(ZSTD(1)),
    GroupsKnown Bool,
    INDEX idx_seen RunSeen TYPE minmax GRANULARITY 1
)
ENGINE = ReplicatedReplacingMergeTree(LeftOutAt)
PARTITION BY toDate(RunEnd)
ORDER BY (Project, TraceId)
TTL toDateTime(RunEnd) + toIntervalDay(30)
SETTINGS index_granularity = 1024, fsync_after_insert = 1, fsync_part_directory = 1, storage_policy = 'hot_cold';

CREATE TABLE IF NOT EXISTS traces.mast_left_out ON CLUSTER main AS traces.mast_left_out_local
ENGINE = Distributed('main', 'traces', 'mast_left_out_local', cityHash64(TraceId));

CREATE TABLE IF NOT EXISTS traces.mast_judge_calls_local ON CLUSTER main
(
    CallId String,
    Project LowCardinality(String),
    TraceId String CODEC(ZSTD(1)),
    JudgeVersion LowCardinality(String),
    Stage LowCardinality(String),
    Model LowCardinality(String),
    StartedAt DateTime64(3) CODEC(Delta, ZSTD(1)),
    DurationMs UInt32,
    Status LowCardinality(String),
    Error String,
    Retries UInt16,
    InputTokens UInt64,
    CachedTokens UInt64,
    OutputTokens UInt64,
    CostUsd Float64,
    RequestHash String,
    Answer String CODEC(ZSTD(1)),
    Sample UInt8 DEFAULT 1,
    INDEX idx_trace_id TraceId TYPE bloom_filter(0.01) GRANULARITY 1
)
ENGINE = ReplicatedReplacingMergeTree
PARTITION BY toYYYYMM(StartedAt)
ORDER BY (Project, StartedAt, CallId)
TTL toDateTime(StartedAt) + toIntervalDay(30)
SETTINGS index_granularity = 1024, fsync_after_insert = 1, fsync_part_directory = 1, storage_policy = 'hot_cold';

CREATE TABLE IF NOT EXISTS traces.mast_judge_calls ON CLUSTER main AS traces.mast_judge_calls_local
ENGINE = Distributed('main', 'traces', 'mast_judge_calls_local', cityHash64(TraceId));

CREATE TABLE IF NOT EXISTS traces.mast_injections_local ON CLUSTER main
(
    Project LowCardinality(String),
    TraceId String CODEC(ZSTD(1)),
    FaultId String CODEC(ZSTD(1)),
    InjectedAt DateTime64(6) CODEC(Delta, ZSTD(1)),
    Operator LowCardinality(String),
    Mode LowCardinality(String),
    Level LowCardinality(String),
    Step Int32,
    SpanId String CODEC(ZSTD(1)),
    Agent LowCardinality(String),
    MissedBy Array(LowCardinality(String)),
    Verdict LowCardinality(String),
    Decisive Bool,
    Deterministic Bool,
    Faulty UInt32,
    FaultyFailures UInt32,
    Restored UInt32,
    RestoredSuccesses UInt32,
    EValue Float64,
    SuccessAfter Nullable(Float64),
    Phrasing Int32,
    Seed Int64,
    Change String CODEC(ZSTD(1)),
    Run String CODEC(ZSTD(3)),
    ServiceName LowCardinality(String),
    Framework LowCardinality(String),
    RunEnd DateTime64(9) CODEC(Delta, ZSTD(1)),
    PointOfNoReturn Nullable(Int32)
)
ENGINE = ReplicatedReplacingMergeTree(InjectedAt)
PARTITION BY toDate(RunEnd)
ORDER BY (Project, TraceId, FaultId)
TTL toDateTime(RunEnd) + toIntervalDay(30)
SETTINGS index_granularity = 1024, fsync_after_insert = 1, fsync_part_directory = 1, storage_policy = 'hot_cold';

CREATE TABLE IF NOT EXISTS traces.mast_injections ON CLUSTER main AS traces.mast_injections_local
ENGINE = Distributed('main', 'traces', 'mast_injections_local', cityHash64(TraceId));

CREATE TABLE IF NOT EXISTS traces.mast_human_labels_local ON CLUSTER main
(
    Project LowCardinality(String),
    TraceId String CODEC(ZSTD(1)),
    Annotator LowCardinality(String),
    LabelledAt DateTime64(3),
    Outcome LowCardinality(String),
    Modes Array(LowCardinality(String)),
    DecisiveStep Nullable(UInt32),
    DecisiveAgent LowCardinality(String),
    Note String CODEC(ZSTD(1)),
    DecisiveSteps Array(UInt32),
    Blind Bool
)
ENGINE = ReplicatedReplacingMergeTree(LabelledAt)
ORDER BY (Project, TraceId, Annotator)
SETTINGS index_granularity = 1024, fsync_after_insert = 1, fsync_part_directory = 1, storage_policy = 'hot_cold';

CREATE TABLE IF NOT EXISTS traces.mast_human_labels ON CLUSTER main AS traces.mast_human_labels_local
ENGINE = Distributed('main', 'traces', 'mast_human_labels_local', cityHash64(TraceId));

CREATE TABLE IF NOT EXISTS traces.mast_findings_local ON CLUSTER main
(
    Project LowCardinality(String),
    TraceId String CODEC(ZSTD(1)),
    RunKey UInt64 DEFAULT halfMD5(Project, TraceId) CODEC(NONE),
    RunStart DateTime64(9) CODEC(LZ4),
    RunEnd DateTime64(9) CODEC(LZ4),
    RunSeen DateTime64(3) CODEC(LZ4),
    JudgedAt DateTime64(3) CODEC(LZ4),
    Fingerprint String CODEC(ZSTD(1)),
    JudgeVersion LowCardinality(String),
    Status Enum8('ok' = 1, 'unscored' = 2),
    StatusReason String CODEC(ZSTD(1)),
    Method LowCardinality(String),
    ServiceName LowCardinality(String),
    Framework LowCardinality(String),
    Name LowCardinality(String),
    Steps UInt32,
    Outcome LowCardinality(String),
    Modes Nested
    (
        Code LowCardinality(String),
        Probability Float32,
        Evidence LowCardinality(String)
    ),
    ModeBits UInt16 DEFAULT arraySum(code -> bitShiftLeft(toUInt16(1),
        indexOf(['1.1', '1.2', '1.3', '1.4', '1.5', '2.1', '2.2', '2.3', '2.4', '2.5', '2.6', '3.1', '3.2', '3.3'],
            code) - 1),
        arrayDistinct(arrayFilter(code -> code IN ('1.1', '1.2', '1.3', '1.4', '1.5', '2.1', '2.2', '2.3', '2.4',
            '2.5', '2.6', '3.1', '3.2', '3.3'), arrayMap(code -> toString(code), Modes.Code)))),
    DecisiveStep Nullable(UInt32),
    DecisiveAgent LowCardinality(String),
    DecisiveProbability Float32,
    DecisiveRule LowCardinality(String),
    DecisiveReason String CODEC(ZSTD(1)),
    CostUsd Float64,
    RunSpans UInt64,
    RunErrors UInt64,
    RunInputTokens UInt64,
    RunOutputTokens UInt64,
    RunAgents Array(LowCardinality(String)),
    RunModels Array(LowCardinality(String)),
    RunOutcome LowCardinality(String),
    RunOutcomeReason String CODEC(ZSTD(1)),
    RunTermination LowCardinality(String),
    Kind LowCardinality(String),
    ExaminedBits UInt16,
    Calibrated Bool,
    DecisiveSpanId String CODEC(ZSTD(1)),
    `LookFirst.Step` Array(UInt32),
    `LookFirst.Agent` Array(LowCardinality(String)),
    `LookFirst.Basis` Array(LowCardinality(String)),
    `LookFirst.Why` Array(String) CODEC(ZSTD(1)),
    Confirmation LowCardinality(String),
    ShownAt DateTime64(6) DEFAULT 0
)
ENGINE = ReplicatedReplacingMergeTree(JudgedAt)
PARTITION BY toDate(RunStart)
ORDER BY RunKey
TTL toDateTime(RunEnd) + toIntervalDay(30)
SETTINGS index_granularity = 8192, min_age_to_force_merge_seconds = 3600,
    min_age_to_force_merge_on_partition_only = 1, fsync_after_insert = 1, fsync_part_directory = 1, storage_policy = 'hot_cold';

CREATE TABLE IF NOT EXISTS traces.mast_findings ON CLUSTER main AS traces.mast_findings_local
ENGINE = Distributed('main', 'traces', 'mast_findings_local', cityHash64(TraceId));

CREATE MATERIALIZED VIEW IF NOT EXISTS traces.mast_findings_mv ON CLUSTER main
TO traces.mast_findings_local AS
SELECT Project, TraceId, RunStart, RunEnd, RunSeen, JudgedAt, Fingerprint, JudgeVersion, Status,
    StatusReason, Method, ServiceName, Framework, Name, Steps, Outcome, `Modes.Code`,
    `Modes.Probability`, `Modes.Evidence`, DecisiveStep, DecisiveAgent, DecisiveProbability,
    DecisiveRule, DecisiveReason, CostUsd, RunSpans, RunErrors, RunInputTokens, RunOutputTokens,
    RunAgents, RunModels, RunOutcome, RunOutcomeReason, RunTermination, Kind, Calibrated, toUInt16(arraySum(code -> bitShiftLeft(toUInt16(1),
        indexOf(['1.1', '1.2', '1.3', '1.4', '1.5', '2.1', '2.2', '2.3', '2.4', '2.5', '2.6', '3.1', '3.2', '3.3'], code) - 1),
        arrayDistinct(arrayFilter(code -> code IN ('1.1', '1.2', '1.3', '1.4', '1.5', '2.1', '2.2', '2.3', '2.4', '2.5', '2.6', '3.1', '3.2', '3.3'),
            arrayMap(code -> toString(code), Examined))))) AS ExaminedBits,
    DecisiveSpanId, `LookFirst.Step`, `LookFirst.Agent`, `LookFirst.Basis`, `LookFirst.Why`
FROM traces.mast_verdicts_local;

CREATE TABLE IF NOT EXISTS traces.mast_experiment_runs_local ON CLUSTER main
(
    Project LowCardinality(String),
    TraceId String CODEC(ZSTD(1)),
    SpanId String CODEC(ZSTD(1)),
    Experiment LowCardinality(String),
    Arm LowCardinality(String),
    Task String CODEC(ZSTD(1)),
    Repetition UInt32,
    Design LowCardinality(String),
    FeedbackId String CODEC(ZSTD(1)),
    FeedbackVersion LowCardinality(String),
    Start DateTime64(9) CODEC(Delta, ZSTD(1)),
    ServiceName LowCardinality(String)
)
ENGINE = ReplicatedReplacingMergeTree
PARTITION BY toDate(Start)
ORDER BY (Project, Experiment, TraceId, SpanId)
TTL toDateTime(Start) + toIntervalDay(30)
SETTINGS index_granularity = 1024, fsync_after_insert = 1, fsync_part_directory = 1, storage_policy = 'hot_cold';

CREATE TABLE IF NOT EXISTS traces.mast_experiment_runs ON CLUSTER main AS traces.mast_experiment_runs_local
ENGINE = Distributed('main', 'traces', 'mast_experiment_runs_local', cityHash64(TraceId));

CREATE MATERIALIZED VIEW IF NOT EXISTS traces.mast_experiment_runs_mv ON CLUSTER main
TO traces.mast_experiment_runs_local AS
SELECT
    Project,
    TraceId,
    SpanId,
    SpanAttributes['mast.experiment.name'] AS Experiment,
    SpanAttributes['mast.experiment.arm'] AS Arm,
    SpanAttributes['mast.experiment.task'] AS Task,
    toUInt32OrZero(SpanAttributes['mast.experiment.repetition']) AS Repetition,
    SpanAttributes['mast.experiment.design'] AS Design,
    SpanAttributes['mast.feedback.id'] AS FeedbackId,
    SpanAttributes['mast.feedback.version'] AS FeedbackVersion,
    Timestamp AS Start,
    ServiceName
FROM traces.otel_traces_local
WHERE TraceId != '' AND (SpanAttributes['mast.experiment.name'] != '' OR SpanAttributes['mast.feedback.id'] != '');

CREATE MATERIALIZED VIEW IF NOT EXISTS traces.mast_experiment_starts_mv ON CLUSTER main
TO traces.mast_experiment_runs_local AS
SELECT
    Project,
    TraceId,
    SpanId,
    LogAttributes['mast.experiment.name'] AS Experiment,
    LogAttributes['mast.experiment.arm'] AS Arm,
    LogAttributes['mast.experiment.task'] AS Task,
    toUInt32OrZero(LogAttributes['mast.experiment.repetition']) AS Repetition,
    LogAttributes['mast.experiment.design'] AS Design,
    LogAttributes['mast.feedback.id'] AS FeedbackId,
    LogAttributes['mast.feedback.version'] AS FeedbackVersion,
    Timestamp AS Start,
    ServiceName
FROM traces.otel_logs_local
WHERE TraceId != '' AND SpanId != ''
    AND if(EventName != '', EventName, LogAttributes['event.name']) = 'mast.run.start'
    AND (LogAttributes['mast.experiment.name'] != '' OR LogAttributes['mast.feedback.id'] != '');

CREATE TABLE IF NOT EXISTS traces.mast_experiments_local ON CLUSTER main
(
    Project LowCardinality(String),
    Name String CODEC(ZSTD(1)),
    PlannedAt DateTime64(6) CODEC(Delta, ZSTD(1)),
    Plan String CODEC(ZSTD(1)),
    Precedence UInt64
)
ENGINE = ReplicatedReplacingMergeTree(Precedence)
ORDER BY (Project, Name)
SETTINGS index_granularity = 1024, fsync_after_insert = 1, fsync_part_directory = 1, storage_policy = 'hot_cold';

CREATE TABLE IF NOT EXISTS traces.mast_experiments ON CLUSTER main AS traces.mast_experiments_local
ENGINE = Distributed('main', 'traces', 'mast_experiments_local', cityHash64(Name));

CREATE TABLE IF NOT EXISTS traces.mast_experiment_looks_local ON CLUSTER main
(
    Project LowCardinality(String),
    Name String CODEC(ZSTD(1)),
    LookedAt DateTime64(6) CODEC(Delta, ZSTD(1)),
    Tasks UInt64,
    Runs UInt64,
    Words Array(String) CODEC(ZSTD(1))
)
ENGINE = ReplicatedReplacingMergeTree
ORDER BY (Project, Name, LookedAt)
SETTINGS index_granularity = 1024, fsync_after_insert = 1, fsync_part_directory = 1, storage_policy = 'hot_cold';

CREATE TABLE IF NOT EXISTS traces.mast_experiment_looks ON CLUSTER main AS traces.mast_experiment_looks_local
ENGINE = Distributed('main', 'traces', 'mast_experiment_looks_local', cityHash64(Name));

CREATE TABLE IF NOT EXISTS traces.mast_lessons_local ON CLUSTER main
(
    Project LowCardinality(String),
    TraceId String CODEC(ZSTD(1)),
    Experiment String CODEC(ZSTD(1)),
    Number UInt32,
    Version LowCardinality(String),
    FrozenAt DateTime64(6) CODEC(Delta, ZSTD(1)),
    Lesson String CODEC(ZSTD(1)),
    RunEnd DateTime64(9) CODEC(Delta, ZSTD(1))
)
ENGINE = ReplicatedReplacingMergeTree(FrozenAt)
PARTITION BY toDate(RunEnd)
ORDER BY (Project, Experiment, TraceId, Number)
TTL toDateTime(RunEnd) + toIntervalDay(30)
SETTINGS index_granularity = 1024, fsync_after_insert = 1, fsync_part_directory = 1, storage_policy = 'hot_cold';

CREATE TABLE IF NOT EXISTS traces.mast_lessons ON CLUSTER main AS traces.mast_lessons_local
ENGINE = Distributed('main', 'traces', 'mast_lessons_local', cityHash64(TraceId));

INSERT INTO traces.mast_schema_migrations (Version, Name, Options) VALUES (1, 'baseline', '{"cluster": "main", "database": "traces", "distributed": true, "fsync": true, "replicated": true, "storage_policy": "hot_cold", "ttl_days": 30}'), (2, 'baseline', '{"cluster": "main", "database": "traces", "distributed": true, "fsync": true, "replicated": true, "storage_policy": "hot_cold", "ttl_days": 30}'), (3, 'baseline', '{"cluster": "main", "database": "traces", "distributed": true, "fsync": true, "replicated": true, "storage_policy": "hot_cold", "ttl_days": 30}'), (4, 'baseline', '{"cluster": "main", "database": "traces", "distributed": true, "fsync": true, "replicated": true, "storage_policy": "hot_cold", "ttl_days": 30}'), (5, 'baseline', '{"cluster": "main", "database": "traces", "distributed": true, "fsync": true, "replicated": true, "storage_policy": "hot_cold", "ttl_days": 30}'), (6, 'baseline', '{"cluster": "main", "database": "traces", "distributed": true, "fsync": true, "replicated": true, "storage_policy": "hot_cold", "ttl_days": 30}'), (7, 'baseline', '{"cluster": "main", "database": "traces", "distributed": true, "fsync": true, "replicated": true, "storage_policy": "hot_cold", "ttl_days": 30}'), (8, 'baseline', '{"cluster": "main", "database": "traces", "distributed": true, "fsync": true, "replicated": true, "storage_policy": "hot_cold", "ttl_days": 30}'), (9, 'baseline', '{"cluster": "main", "database": "traces", "distributed": true, "fsync": true, "replicated": true, "storage_policy": "hot_cold", "ttl_days": 30}'), (10, 'baseline', '{"cluster": "main", "database": "traces", "distributed": true, "fsync": true, "replicated": true, "storage_policy": "hot_cold", "ttl_days": 30}'), (11, 'baseline', '{"cluster": "main", "database": "traces", "distributed": true, "fsync": true, "replicated": true, "storage_policy": "hot_cold", "ttl_days": 30}'), (12, 'baseline', '{"cluster": "main", "database": "traces", "distributed": true, "fsync": true, "replicated": true, "storage_policy": "hot_cold", "ttl_days": 30}'), (13, 'baseline', '{"cluster": "main", "database": "traces", "distributed": true, "fsync": true, "replicated": true, "storage_policy": "hot_cold", "ttl_days": 30}'), (14, 'baseline', '{"cluster": "main", "database": "traces", "distributed": true, "fsync": true, "replicated": true, "storage_policy": "hot_cold", "ttl_days": 30}'), (16, 'baseline', '{"cluster": "main", "database": "traces", "distributed": true, "fsync": true, "replicated": true, "storage_policy": "hot_cold", "ttl_days": 30}'), (17, 'baseline', '{"cluster": "main", "database": "traces", "distributed": true, "fsync": true, "replicated": true, "storage_policy": "hot_cold", "ttl_days": 30}'), (18, 'baseline', '{"cluster": "main", "database": "traces", "distributed": true, "fsync": true, "replicated": true, "storage_policy": "hot_cold", "ttl_days": 30}'), (19, 'baseline', '{"cluster": "main", "database": "traces", "distributed": true, "fsync": true, "replicated": true, "storage_policy": "hot_cold", "ttl_days": 30}'), (20, 'baseline', '{"cluster": "main", "database": "traces", "distributed": true, "fsync": true, "replicated": true, "storage_policy": "hot_cold", "ttl_days": 30}'), (21, 'baseline', '{"cluster": "main", "database": "traces", "distributed": true, "fsync": true, "replicated": true, "storage_policy": "hot_cold", "ttl_days": 30}'), (22, 'baseline', '{"cluster": "main", "database": "traces", "distributed": true, "fsync": true, "replicated": true, "storage_policy": "hot_cold", "ttl_days": 30}'), (23, 'baseline', '{"cluster": "main", "database": "traces", "distributed": true, "fsync": true, "replicated": true, "storage_policy": "hot_cold", "ttl_days": 30}'), (24, 'baseline', '{"cluster": "main", "database": "traces", "distributed": true, "fsync": true, "replicated": true, "storage_policy": "hot_cold", "ttl_days": 30}'), (25, 'baseline', '{"cluster": "main", "database": "traces", "distributed": true, "fsync": true, "replicated": true, "storage_policy": "hot_cold", "ttl_days": 30}'), (26, 'baseline', '{"cluster": "main", "database": "traces", "distributed": true, "fsync": true, "replicated": true, "storage_policy": "hot_cold", "ttl_days": 30}'), (27, 'baseline', '{"cluster": "main", "database": "traces", "distributed": true, "fsync": true, "replicated": true, "storage_policy": "hot_cold", "ttl_days": 30}'), (28, 'baseline', '{"cluster": "main", "database": "traces", "distributed": true, "fsync": true, "replicated": true, "storage_policy": "hot_cold", "ttl_days": 30}'), (29, 'baseline', '{"cluster": "main", "database": "traces", "distributed": true, "fsync": true, "replicated": true, "storage_policy": "hot_cold", "ttl_days": 30}'), (30, 'baseline', '{"cluster": "main", "database": "traces", "distributed": true, "fsync": true, "replicated": true, "storage_policy": "hot_cold", "ttl_days": 30}'), (31, 'baseline', '{"cluster": "main", "database": "traces", "distributed": true, "fsync": true, "replicated": true, "storage_policy": "hot_cold", "ttl_days": 30}'), (32, 'baseline', '{"cluster": "main", "database": "traces", "distributed": true, "fsync": true, "replicated": true, "storage_policy": "hot_cold", "ttl_days": 30}'), (33, 'baseline', '{"cluster": "main", "database": "traces", "distributed": true, "fsync": true, "replicated": true, "storage_policy": "hot_cold", "ttl_days": 30}'), (34, 'baseline', '{"cluster": "main", "database": "traces", "distributed": true, "fsync": true, "replicated": true, "storage_policy": "hot_cold", "ttl_days": 30}'), (35, 'baseline', '{"cluster": "main", "database": "traces", "distributed": true, "fsync": true, "replicated": true, "storage_policy": "hot_cold", "ttl_days": 30}'), (36, 'baseline', '{"cluster": "main", "database": "traces", "distributed": true, "fsync": true, "replicated": true, "storage_policy": "hot_cold", "ttl_days": 30}'), (37, 'baseline', '{"cluster": "main", "database": "traces", "distributed": true, "fsync": true, "replicated": true, "storage_policy": "hot_cold", "ttl_days": 30}'), (38, 'baseline', '{"cluster": "main", "database": "traces", "distributed": true, "fsync": true, "replicated": true, "storage_policy": "hot_cold", "ttl_days": 30}'), (39, 'baseline', '{"cluster": "main", "database": "traces", "distributed": true, "fsync": true, "replicated": true, "storage_policy": "hot_cold", "ttl_days": 30}'), (40, 'baseline', '{"cluster": "main", "database": "traces", "distributed": true, "fsync": true, "replicated": true, "storage_policy": "hot_cold", "ttl_days": 30}'), (41, 'baseline', '{"cluster": "main", "database": "traces", "distributed": true, "fsync": true, "replicated": true, "storage_policy": "hot_cold", "ttl_days": 30}'), (42, 'baseline', '{"cluster": "main", "database": "traces", "distributed": true, "fsync": true, "replicated": true, "storage_policy": "hot_cold", "ttl_days": 30}');

