-- A run whose threads called a model outside of it says so on its root: its tokens are at least those that it has.
ALTER TABLE {database}.mast_run_states{local} {on_cluster}
    ADD COLUMN IF NOT EXISTS CallsMissing SimpleAggregateFunction(max, UInt8);

ALTER TABLE {database}.mast_run_states {on_cluster}
    ADD COLUMN IF NOT EXISTS CallsMissing SimpleAggregateFunction(max, UInt8);

-- See mast_runs.sql on what the view knows of before.
ALTER TABLE {database}.mast_run_states_mv {on_cluster} MODIFY QUERY
{run_states_v4};

CREATE OR REPLACE VIEW {database}.mast_runs {on_cluster} AS
{runs_v4};
