-- Takes whole OTLP requests, which ClickHouse parses itself (FORMAT Protobuf), and keeps nothing:
-- the view lays their spans out as rows of otel_traces, exactly as the collector's Python does.
-- Nested values cannot be rendered here; one of them stops the insert before anything is written.
CREATE TABLE IF NOT EXISTS {database}.mast_otlp_inlet {on_cluster}
(
    resource_spans Array(Tuple(
        resource Tuple(attributes {key_values}),
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
                attributes {key_values},
                events Array(Tuple(time_unix_nano UInt64, name String, attributes {key_values})),
                links Array(Tuple(trace_id String, span_id String, trace_state String,
                    attributes {key_values})),
                status Tuple(message String, code Int32)
            ))
        ))
    )),
    -- Appended to each request by the collector: the project that its sender's key stands for; a
    -- NUL leaves what the request says. A sender may have put one there, too: the last is ours.
    mast_project Array(String)
)
ENGINE = Null;

CREATE MATERIALIZED VIEW IF NOT EXISTS {database}.mast_otlp_inlet_mv {on_cluster}
TO {database}.otel_traces AS
WITH
    {attributes_map:resource_span.resource.attributes} AS sent,
    {time:span.start_time_unix_nano} AS started,
    {time:span.end_time_unix_nano} AS ended
SELECT
    fromUnixTimestamp64Nano(started) AS Timestamp,
    {hex_id:span.trace_id} AS TraceId,
    {hex_id:span.span_id} AS SpanId,
    {hex_id:span.parent_span_id} AS ParentSpanId,
    span.trace_state AS TraceState,
    span.name AS SpanName,
    if(span.kind BETWEEN 0 AND 5, ['Unspecified', 'Internal', 'Server', 'Client', 'Producer',
        'Consumer'][span.kind + 1], '') AS SpanKind,
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
    {attributes_map:span.attributes} AS SpanAttributes,
    toUInt64(greatest(ended - started, 0)) AS Duration,
    if(span.status.code BETWEEN 0 AND 2, ['Unset', 'Ok', 'Error'][span.status.code + 1], '')
        AS StatusCode,
    span.status.message AS StatusMessage,
    arrayMap(time -> fromUnixTimestamp64Nano({time:time}), span.events.time_unix_nano)
        AS `Events.Timestamp`,
    span.events.name AS `Events.Name`,
    arrayMap(attributes -> {attributes_map:attributes}, span.events.attributes)
        AS `Events.Attributes`,
    arrayMap(id -> {hex_id:id}, span.links.trace_id) AS `Links.TraceId`,
    arrayMap(id -> {hex_id:id}, span.links.span_id) AS `Links.SpanId`,
    span.links.trace_state AS `Links.TraceState`,
    arrayMap(attributes -> {attributes_map:attributes}, span.links.attributes)
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
            FROM {database}.mast_otlp_inlet
        )
    )
)
WHERE throwIf(
    {is_nested:resource_span.resource.attributes}
    OR {is_nested:span.attributes}
    OR arrayExists(attributes -> {is_nested:attributes}, span.events.attributes)
    OR arrayExists(attributes -> {is_nested:attributes}, span.links.attributes)) = 0;
