-- Tokens of a call that another tool has recorded beside us count once. What is stored has not said whose
-- its calls are and counts as before.
ALTER TABLE {database}.mast_run_states_mv {on_cluster} MODIFY QUERY
{part:run_states.v1};

CREATE OR REPLACE VIEW {database}.mast_runs {on_cluster} AS
{runs};
