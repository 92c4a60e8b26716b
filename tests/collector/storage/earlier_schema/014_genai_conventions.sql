-- Version 0.1.0 of the GenAI conventions: on a run `gen_ai.agent.name` names the workflow, which is no agent.
-- A request of the Model Context Protocol that names a tool is the call of it, whether it says so or not.
-- A hand-off's target stands under a name of our own, for the conventions have none.
ALTER TABLE {database}.otel_traces{local} {on_cluster}
    MODIFY COLUMN Operation LowCardinality(String) MATERIALIZED {operation},
    MODIFY COLUMN AgentName LowCardinality(String) MATERIALIZED if(Operation = 'invoke_workflow', '', {field:agent}),
    MODIFY COLUMN HandoffTarget LowCardinality(String) MATERIALIZED {field:handoff_target};

-- See 011 on what the view knows of before.
ALTER TABLE {database}.mast_run_states_mv {on_cluster} MODIFY QUERY
{run_states_v3};
