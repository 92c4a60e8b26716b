-- As in mast_run_facts.sql.
CREATE OR REPLACE VIEW {database}.mast_span_facts {on_cluster} AS
{facts}
SETTINGS max_threads = 1;
