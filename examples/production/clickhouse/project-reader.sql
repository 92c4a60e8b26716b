-- A user that sees one project. Run by an administrator with access management, with the project's
-- name and a password put in; run `mast-trace migrate` before. Users without a policy, such as the
-- collector's, go on to see everything.
--
-- ClickHouse runs functions of LowCardinality columns on the dictionary of a whole part, whatever a policy
-- says: a function that fails for some values tells a determined reader of other projects' names of
-- services, agents and attributes. Give such a user to colleagues; to strangers, the web view with a key.
CREATE USER IF NOT EXISTS team_a IDENTIFIED BY 'change me' SETTINGS PROFILE 'reader';
GRANT SELECT, SHOW ON mast_trace.* TO team_a;

CREATE ROW POLICY IF NOT EXISTS of_team_a ON
    mast_trace.otel_traces, mast_trace.otel_logs, mast_trace.mast_run_states, mast_trace.mast_verdicts,
    mast_trace.mast_findings, mast_trace.mast_human_labels, mast_trace.mast_judge_calls,
    mast_trace.mast_replay_plans, mast_trace.mast_replays, mast_trace.mast_confirmations,
    mast_trace.mast_injections, mast_trace.mast_prices, mast_trace.mast_pattern_runs,
    mast_trace.mast_pattern_states, mast_trace.mast_pattern_names, mast_trace.mast_experiments,
    mast_trace.mast_experiment_runs, mast_trace.mast_experiment_looks, mast_trace.mast_lessons,
    mast_trace.mast_selftests, mast_trace.mast_left_out
    USING Project = 'team-a' TO team_a;
CREATE ROW POLICY IF NOT EXISTS of_team_a ON mast_trace.otel_traces_trace_id_ts
    USING TraceId IN (SELECT TraceId FROM mast_trace.mast_run_states WHERE Project = 'team-a') TO team_a;
