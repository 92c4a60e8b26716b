"""Users that a row policy confines and that read beyond it: found, named, and the way out printed."""

import pytest
from endpoint_sweep import fill
from server_users import read_as, store_with_users

from mast_trace.exceptions import StorageError
from mast_trace_collector.storage import grants
from mast_trace_collector.storage.grants import (
    SAFE_VERSIONS,
    DatabaseAccess,
    _quoted,
    policies_hold,
    project_reader,
    warnings_of,
    wide_users,
)
from mast_trace_collector.storage.readers import DECLARED, LOCAL, READABLE, Rows

FORMER = """\
CREATE USER IF NOT EXISTS team_a IDENTIFIED BY 'change me' SETTINGS PROFILE 'reader';
GRANT SELECT, SHOW ON mast_trace.* TO team_a;

CREATE ROW POLICY IF NOT EXISTS of_team_a ON
    mast_trace.otel_traces, mast_trace.otel_logs, mast_trace.mast_run_states, mast_trace.mast_verdicts,
    mast_trace.mast_findings, mast_trace.mast_human_labels, mast_trace.mast_judge_calls,
    mast_trace.mast_replay_plans, mast_trace.mast_replays, mast_trace.mast_confirmations,
    mast_trace.mast_injections, mast_trace.mast_prices, mast_trace.mast_pattern_runs,
    mast_trace.mast_pattern_states, mast_trace.mast_pattern_names, mast_trace.mast_experiments,
    mast_trace.mast_experiment_runs, mast_trace.mast_experiment_looks, mast_trace.mast_lessons,
    mast_trace.mast_selftests, mast_trace.mast_left_out, mast_trace.mast_run_facts
    USING Project = 'team-a' TO team_a;
CREATE ROW POLICY IF NOT EXISTS of_team_a ON mast_trace.otel_traces_trace_id_ts
    USING TraceId IN (SELECT TraceId FROM mast_trace.mast_run_states WHERE Project = 'team-a') TO team_a;
"""
"""`project-reader.sql` as it was: it grants every table and filters some."""
OF_A_TABLE = "mast_trace.mast_lessons,\n"
GRANT_OF_ALL = "GRANT SELECT, SHOW ON mast_trace.* TO team_a;\n"
UNFILTERED = {name for name, rows in DECLARED.items() if rows is Rows.NONE}
NOT_CONFINED = (
    "CREATE USER IF NOT EXISTS reader IDENTIFIED BY 'x';\nGRANT SELECT, SHOW ON *.* TO reader;\n"
)


def with_grant(sql):
    """The former file with another grant."""
    return FORMER.replace(GRANT_OF_ALL, sql)


def two_projects(store):
    for project in ("team-a", "team-b"):
        fill(store, "otel_traces", project, 2, f"said-by-{project}")


def wide(folder, *files, **options):
    with store_with_users(folder, *files, **options) as store:
        return wide_users(store)


def test_the_user_of_the_former_file_is_named_with_the_way_out(folder):
    """Also beside a user without a policy, who is nobody's concern."""
    with store_with_users(folder, FORMER, NOT_CONFINED) as store:
        (found,) = wide_users(store)
        (text,) = warnings_of(store)
    assert (found.name, set(found.objects)) == ("team_a", UNFILTERED)
    assert found.statements == (
        "REVOKE SELECT, SHOW ON mast_trace.* FROM team_a",
        *(f"GRANT SELECT ON mast_trace.{table} TO team_a" for table in sorted(READABLE)),
    )
    assert all(f"{statement};\n" in f"{text}\n" for statement in found.statements)
    assert "in users_xml" in text


def test_what_is_printed_closes_the_leak(folder):
    looked_at = [f"SELECT * FROM mast_trace.{table}" for table in sorted(UNFILTERED)]
    with store_with_users(folder, FORMER) as store:
        two_projects(store)
        before = [str(read_as(store, "team_a", sql)) for sql in looked_at]
        (found,) = wide_users(store)
    grants = "".join(f"{each};\n" for each in found.statements if each.startswith("GRANT"))
    with store_with_users(folder, with_grant(grants)) as store:
        assert wide_users(store) == []
        assert {read_as(store, "team_a", sql) for sql in looked_at} == {497}
        shown = read_as(store, "team_a", "SELECT Project, TraceId FROM mast_trace.mast_runs")
    assert any("team-b" in answer for answer in before)
    assert "team-b" not in shown
    assert "said-by-team-a" in shown


@pytest.mark.parametrize(
    ("sql", "objects"),
    [
        (project_reader(), None),
        (project_reader() + GRANT_OF_ALL, None),
        (with_grant(GRANT_OF_ALL.replace("mast_trace.*", "*.*")), UNFILTERED),
        (with_grant(GRANT_OF_ALL.replace("mast_trace.*", "mast_*.*")), UNFILTERED),
        (FORMER.replace(OF_A_TABLE, ""), {*UNFILTERED, "mast_lessons"}),
        (
            with_grant("GRANT SELECT(TraceId) ON mast_trace.mast_run_states_mv TO team_a;\n"),
            {"mast_run_states_mv"},
        ),
        (with_grant("GRANT SELECT ON mast_trace.otel_traces TO team_a;\n"), None),
    ],
    ids=("present", "beside the former grant", "all", "prefix", "earlier", "column", "filtered"),
)
def test_a_confined_user_is_named_if_something_unfiltered_can_be_read(folder, sql, objects):
    found = wide(folder, sql)
    assert [set(each.objects) for each in found] == ([objects] if objects else [])
    for each in found:
        granted = {s.split()[3].partition(".")[2] for s in each.statements if s.startswith("GRANT")}
        assert granted == READABLE.keys() - set(each.objects)


def test_a_view_with_the_rights_of_its_definer_is_open(folder):
    """Such a view reads its tables as another user, whom no policy confines."""
    with store_with_users(folder, FORMER) as store:
        two_projects(store)
        body = "SELECT Project, TraceId FROM mast_trace.otel_traces"
        named = "mast_trace.mast_evaluations DEFINER = default SQL SECURITY DEFINER"
        store.command(f"CREATE OR REPLACE VIEW {named} AS {body}")
        (found,) = wide_users(store)
        assert "team-b" in read_as(store, "team_a", "SELECT * FROM mast_trace.mast_evaluations")
    assert set(found.objects) == {*UNFILTERED, "mast_evaluations"}
    assert "GRANT SELECT ON mast_trace.mast_evaluations TO team_a" not in found.statements


def test_an_object_of_a_later_version_is_open(folder):
    with store_with_users(folder, FORMER) as store:
        store.command("CREATE TABLE later (Project String) ENGINE = MergeTree ORDER BY Project")
        (found,) = wide_users(store)
    assert set(found.objects) == {*UNFILTERED, "later"}


@pytest.mark.parametrize("sql", [FORMER, project_reader()], ids=["former", "present"])
def test_in_a_cluster_every_confined_user_loses_everything(folder, sql):
    with store_with_users(folder, sql, shards=1) as store:
        (found,) = wide_users(store)
        known = {row["name"] for row in store.query("SHOW TABLES")}
    assert "cluster" in str(found)
    assert found.statements == ("REVOKE SELECT, SHOW ON mast_trace.* FROM team_a",)
    versions = {"mast_schema_migrations", f"mast_schema_migrations{LOCAL}"}
    assert set(found.objects) == (known - versions if sql == FORMER else READABLE.keys() - versions)


def test_where_policies_do_not_hold_every_confined_user_loses_everything(folder, monkeypatch):
    """The version of the server has table functions that read past a policy."""
    monkeypatch.setattr(grants, "policies_hold", lambda: policies_hold("'25.8.29.31'"))
    (found,) = wide(folder, project_reader())
    assert found.statements == ("REVOKE SELECT, SHOW ON mast_trace.* FROM team_a",)
    assert set(found.objects) == READABLE.keys() - {"mast_schema_migrations"}
    assert SAFE_VERSIONS in str(found)


def test_an_account_that_may_not_see_users_says_so(folder):
    with store_with_users(folder, FORMER, manages=False) as store:
        with pytest.raises(StorageError):
            wide_users(store)
        (warning,) = warnings_of(store)
    assert "GRANT SHOW ACCESS ON *.*" in warning


def test_the_embedded_engines_own_users_are_in_order(embedded):
    assert list(warnings_of(embedded)) == []


def grant(
    name, database=None, table=None, *, column=None, revoked=False, wildcard=False, role=False
):
    return {
        "user_name": None if role else name,
        "role_name": name if role else None,
        "database": database,
        "table": table,
        "column": column,
        "is_partial_revoke": int(revoked),
        "is_wildcard": int(wildcard),
    }


def policy(*names, table="t", condition="Project = 'a'", restrictive=False, but=None):
    return {
        "table": table,
        "select_filter": condition,
        "is_restrictive": int(restrictive),
        "apply_to_all": int(but is not None),
        "apply_to_list": list(names),
        "apply_to_except": list(but or ()),
    }


@pytest.mark.parametrize(
    ("grants", "reads"),
    [
        ([], False),
        ([grant("u")], True),
        ([grant("u", "d")], True),
        ([grant("u", "other")], False),
        ([grant("u", "d", "t")], True),
        ([grant("u", "d", "other")], False),
        ([grant("v", "d")], False),
        ([grant("u", "d", "t", column="c")], True),
        ([grant("u", "d"), grant("u", "d", "t", revoked=True)], False),
        ([grant("u"), grant("u", "d", revoked=True)], False),
        ([grant("u"), grant("u", "d", revoked=True), grant("u", "d", "t")], True),
        ([grant("u", "d"), grant("u", "d", "t", column="c", revoked=True)], True),
        ([grant("u", "d", "", wildcard=True)], True),
        ([grant("u", "", wildcard=True)], True),
        ([grant("u", "d", "te", wildcard=True)], False),
        ([grant("r", "d", role=True)], True),
        ([grant("r", "d", role=True), grant("u", "d", "t", revoked=True)], True),
        ([grant("deep", "d", role=True)], True),
        ([grant("another", "d", role=True)], False),
    ],
)
def test_rights_add_up_as_on_the_server(grants, reads):
    roles = {"u": ["r"], "r": ["deep"], "deep": ["r"]}
    access = DatabaseAccess("d", {"u": ""}, tuple(grants), roles, ())
    assert bool(access.holders("u", ["t"])) is reads


@pytest.mark.parametrize(
    ("policies", "confined", "filtered"),
    [
        ([], False, False),
        ([policy("u")], True, True),
        ([policy("v")], False, False),
        ([policy("r")], True, True),
        ([policy("u", table="")], True, True),
        ([policy("u", table="x")], True, False),
        ([policy("u", condition="1")], False, False),
        ([policy("u"), policy("u", table="", condition="1")], True, False),
        ([policy("u", restrictive=True), policy("u", condition="1")], True, True),
        ([policy(but=[])], True, True),
        ([policy(but=["u"])], False, False),
        ([policy(but=["r"])], False, False),
    ],
)
def test_policies_add_up_as_on_the_server(policies, confined, filtered):
    access = DatabaseAccess("d", {"u": ""}, (), {"u": ["r"]}, tuple(policies))
    assert access.is_confined("u") is confined
    assert access.is_filtered("u", "t") is filtered


def test_a_right_from_a_role_is_taken_with_the_role(folder):
    """The role may serve others: it is taken from the user, who gets what is filtered."""
    (found,) = wide(folder, with_grant("GRANT staff TO team_a;\n"))
    assert set(found.objects) == UNFILTERED
    revoked, *granted = found.statements
    assert revoked == "REVOKE staff FROM team_a"
    assert len(granted) == len(READABLE)


def test_names_that_are_not_plain_are_quoted():
    """The name of a user may be anything, and the SQL is there to be run."""
    names = {name: _quoted(name) for name in ("team_a", "team-a", "a`b", "1st")}
    assert names == {"team_a": "team_a", "team-a": "`team-a`", "a`b": r"`a\`b`", "1st": "`1st`"}
