-- Prints the statements that copy `mast_trace_before`, one server's database or one shard's, into the Distributed tables
-- of `mast_trace`, so that each row goes to the shard of its run. What views would compute is copied, too, as the spans
-- behind it may be gone: so the views are detached meanwhile. ON CLUSTER names the cluster of config.d.
SELECT statement
FROM (
  SELECT 1 AS step, format('DETACH TABLE mast_trace.{} ON CLUSTER main;', name) AS statement
  FROM system.tables
  WHERE database = 'mast_trace' AND engine = 'MaterializedView'
  UNION ALL
  -- Columns by name: their order differs between a new table and one that was brought up to date.
  SELECT 2, format(
    'INSERT INTO mast_trace.{} ({}) SELECT {} FROM mast_trace_before.{} SETTINGS {};',
    replaceRegexpOne(table, '_local$', '') AS whole,
    arrayStringConcat(groupArray(concat('`', name, '`')), ', ') AS names,
    names,
    table,
    'distributed_foreground_insert = 1, max_partitions_per_insert_block = 0')
  FROM system.columns
  WHERE database = 'mast_trace_before' AND default_kind NOT IN ('MATERIALIZED', 'ALIAS', 'EPHEMERAL')
    AND table NOT LIKE 'mast_schema_migrations%' AND table IN (
      SELECT name FROM system.tables WHERE database = 'mast_trace_before' AND engine LIKE '%MergeTree'
    )
  GROUP BY table
  UNION ALL
  SELECT 3, format('ATTACH TABLE mast_trace.{} ON CLUSTER main;', name)
  FROM system.tables
  WHERE database = 'mast_trace' AND engine = 'MaterializedView'
)
ORDER BY step, statement
FORMAT TSVRaw;
