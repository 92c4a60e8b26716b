-- Takes whole OTLP requests, which ClickHouse parses itself (FORMAT Protobuf), and keeps nothing:
-- the view lays their spans out as rows of otel_traces, exactly as the collector's Python does.
-- Nested values cannot be rendered here; one of them stops the insert before anything is written.
-- reader: none
CREATE TABLE IF NOT EXISTS {database}.mast_otlp_inlet {on_cluster}
(
    resource_spans {part:otlp_resource_spans.v1},
    -- Appended to each request by the collector: the project that its sender's key stands for; a
    -- NUL leaves what the request says. A sender may have put one there, too: the last is ours.
    mast_project Array(String)
)
ENGINE = Null;

-- reader: none
CREATE MATERIALIZED VIEW IF NOT EXISTS {database}.mast_otlp_inlet_mv {on_cluster}
TO {database}.otel_traces AS
{part:otlp_rows.v1};
