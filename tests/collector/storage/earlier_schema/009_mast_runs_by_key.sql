-- A condition on the runs' keys is met before anything is put together, and reads 8 bytes of a state.
CREATE OR REPLACE VIEW {database}.mast_runs {on_cluster} AS
{runs:RunKey};
