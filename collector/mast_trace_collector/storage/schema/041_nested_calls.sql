-- A model's call right inside of another has its tokens, which count once: Around has the parents of calls with tokens.
-- Runs that are stored already keep what they have.
ALTER TABLE {database}.mast_run_states{local} {on_cluster}
    ADD COLUMN IF NOT EXISTS Around SimpleAggregateFunction(groupUniqArrayArray(1048576), Array(UInt64)) CODEC(ZSTD(1));

ALTER TABLE {database}.mast_run_states {on_cluster}
    ADD COLUMN IF NOT EXISTS Around SimpleAggregateFunction(groupUniqArrayArray(1048576), Array(UInt64));

-- See mast_runs.sql on what the view knows of before.
ALTER TABLE {database}.mast_run_states_mv {on_cluster} MODIFY QUERY
{run_states_v5};

CREATE OR REPLACE VIEW {database}.mast_runs {on_cluster} AS
{runs_v5};

CREATE OR REPLACE VIEW {database}.mast_span_facts {on_cluster} AS
{facts};
