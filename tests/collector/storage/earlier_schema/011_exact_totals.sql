-- The view may know no tokens of before, see 007: an insert that is done again then adds the same numbers to
-- the same sets.
ALTER TABLE {database}.mast_run_states_mv {on_cluster} MODIFY QUERY
{run_states_v2};

CREATE OR REPLACE VIEW {database}.mast_runs {on_cluster} AS
{part:runs.v2};
