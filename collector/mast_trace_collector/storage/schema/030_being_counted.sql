-- A run that an earlier version stored is "being counted" until the repair of version 12 has looked for its spans;
-- only then is it known that they are gone, and that its totals are "about".
--   Old   1 of what was stored before; 3 once its spans were looked for and some are gone; one more (2, 4) once all
--         of the run has been stored again
-- Of a repair that has ended before this version, what is still 1 was looked for in vain.
INSERT INTO {database}.mast_run_states (Project, TraceId, Day, LastSeen, Old)
SELECT Project, TraceId, max(Day), toDateTime64(0, 3), 3
FROM {database}.mast_run_states
WHERE (SELECT count() FROM {database}.mast_schema_migrations WHERE Version = 12) > 0
GROUP BY Project, TraceId
HAVING max(Old) = 1;

CREATE OR REPLACE VIEW {database}.mast_runs {on_cluster} AS
{runs_v3};
