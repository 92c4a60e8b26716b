-- On one thread, as facts.v1.part says.
CREATE OR REPLACE VIEW {database}.mast_span_facts {on_cluster} AS
{facts};
