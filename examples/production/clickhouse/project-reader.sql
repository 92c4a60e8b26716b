-- A user that sees one project, on one ClickHouse server. Run by an administrator with access management, with the
-- project's name and a password put in; run `mast-trace migrate` before. It may be run again: a user that an earlier
-- version made loses what was granted too widely. Written from what the tables declare.
--
-- The first two statements fail, and no user is made, where row policies do not hold. In a cluster they cannot filter a
-- Distributed table, and those on the tables under it do not hold on other shards, which are asked as another user.
-- Earlier versions of ClickHouse have table functions (loop, mergeTreeIndex, mergeTreeTextIndex) that read past
-- them. There, give readers a key: the web view, its MCP endpoint and its downloads show a project alone.
--
-- Users without a policy, such as the collector's, go on to see everything, unless the server was told otherwise
-- (users_without_row_policies_can_read_rows). ClickHouse tells the user the sizes of the tables that it may read, and
-- whether a key that it guesses is there (EXPLAIN ESTIMATE). It runs functions of LowCardinality columns on the dictionary
-- of a whole part, whatever a policy says: a function that fails for some values tells a determined reader of other
-- projects' names of services, agents and attributes. Give such a user to colleagues; to strangers, the
-- web view with a key.
SELECT throwIf(count() > 0, 'the tables are spread over a cluster: give readers keys of the web view')
FROM system.tables WHERE database = 'mast_trace' AND engine = 'Distributed';
SELECT throwIf(NOT (arrayMap(x -> toUInt32OrZero(x), splitByChar('.', version())) >= [26, 9] OR (arrayMap(x -> toUInt32OrZero(x), splitByChar('.', version())) >= [26, 3, 33, 101] AND arrayMap(x -> toUInt32OrZero(x), splitByChar('.', version())) < [26, 4])), 'row policies do not hold in this version: upgrade to ClickHouse 26.9 or newer, or 26.3.33.101 or a later 26.3');

CREATE USER IF NOT EXISTS team_a IDENTIFIED BY 'change me' SETTINGS PROFILE 'reader';

-- Nothing of what has no policy of its own, whatever is granted.
CREATE ROW POLICY OR REPLACE of_team_a ON
    mast_trace.*,
    system.*
    USING 0 TO team_a;
CREATE ROW POLICY OR REPLACE of_team_a ON
    mast_trace.mast_confirmations,
    mast_trace.mast_evaluations,
    mast_trace.mast_experiment_looks,
    mast_trace.mast_experiment_runs,
    mast_trace.mast_experiments,
    mast_trace.mast_findings,
    mast_trace.mast_human_labels,
    mast_trace.mast_injections,
    mast_trace.mast_judge_calls,
    mast_trace.mast_latest_verdicts,
    mast_trace.mast_left_out,
    mast_trace.mast_lessons,
    mast_trace.mast_pattern_names,
    mast_trace.mast_pattern_runs,
    mast_trace.mast_pattern_states,
    mast_trace.mast_prices,
    mast_trace.mast_replay_plans,
    mast_trace.mast_replays,
    mast_trace.mast_run_facts,
    mast_trace.mast_run_states,
    mast_trace.mast_runs,
    mast_trace.mast_selftests,
    mast_trace.mast_span_facts,
    mast_trace.mast_verdicts,
    mast_trace.otel_logs,
    mast_trace.otel_traces
    USING Project = 'team-a' TO team_a;
CREATE ROW POLICY OR REPLACE of_team_a ON
    mast_trace.mast_schema_migrations
    USING 1 TO team_a;
CREATE ROW POLICY OR REPLACE of_team_a ON
    mast_trace.otel_traces_trace_id_ts
    USING TraceId IN (SELECT TraceId FROM mast_trace.mast_run_states WHERE Project = 'team-a') TO team_a;
CREATE ROW POLICY OR REPLACE of_team_a ON
    system.aggregate_function_combinators,
    system.collations,
    system.columns,
    system.current_roles,
    system.data_type_families,
    system.database_engines,
    system.databases,
    system.enabled_roles,
    system.formats,
    system.functions,
    system.one,
    system.settings,
    system.table_engines,
    system.table_functions,
    system.tables,
    system.time_zones
    USING 1 TO team_a;

REVOKE SELECT, SHOW ON mast_trace.* FROM team_a;
GRANT SELECT ON mast_trace.mast_confirmations TO team_a;
GRANT SELECT ON mast_trace.mast_evaluations TO team_a;
GRANT SELECT ON mast_trace.mast_experiment_looks TO team_a;
GRANT SELECT ON mast_trace.mast_experiment_runs TO team_a;
GRANT SELECT ON mast_trace.mast_experiments TO team_a;
GRANT SELECT ON mast_trace.mast_findings TO team_a;
GRANT SELECT ON mast_trace.mast_human_labels TO team_a;
GRANT SELECT ON mast_trace.mast_injections TO team_a;
GRANT SELECT ON mast_trace.mast_judge_calls TO team_a;
GRANT SELECT ON mast_trace.mast_latest_verdicts TO team_a;
GRANT SELECT ON mast_trace.mast_left_out TO team_a;
GRANT SELECT ON mast_trace.mast_lessons TO team_a;
GRANT SELECT ON mast_trace.mast_pattern_names TO team_a;
GRANT SELECT ON mast_trace.mast_pattern_runs TO team_a;
GRANT SELECT ON mast_trace.mast_pattern_states TO team_a;
GRANT SELECT ON mast_trace.mast_prices TO team_a;
GRANT SELECT ON mast_trace.mast_replay_plans TO team_a;
GRANT SELECT ON mast_trace.mast_replays TO team_a;
GRANT SELECT ON mast_trace.mast_run_facts TO team_a;
GRANT SELECT ON mast_trace.mast_run_states TO team_a;
GRANT SELECT ON mast_trace.mast_runs TO team_a;
GRANT SELECT ON mast_trace.mast_schema_migrations TO team_a;
GRANT SELECT ON mast_trace.mast_selftests TO team_a;
GRANT SELECT ON mast_trace.mast_span_facts TO team_a;
GRANT SELECT ON mast_trace.mast_verdicts TO team_a;
GRANT SELECT ON mast_trace.otel_logs TO team_a;
GRANT SELECT ON mast_trace.otel_traces TO team_a;
GRANT SELECT ON mast_trace.otel_traces_trace_id_ts TO team_a;
