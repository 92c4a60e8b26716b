"""A reader tries all that the engine knows, and gets nothing that is not its own."""

from dataclasses import replace
from itertools import product

import pytest
from endpoint_sweep import (
    DENIED,
    ENDLESS,
    OURS,
    THEIR_ROWS,
    arguments_of_ours,
    as_json,
    base_tables,
    columns,
    functions,
    make_world,
    ways_to_call,
    ways_to_read,
)

from mast_trace_collector.clickhouse_http.errors import QueryError
from mast_trace_collector.clickhouse_http.gate import Functions, lists
from mast_trace_collector.clickhouse_http.runner import Rights, Runner
from mast_trace_collector.clickhouse_http.statement import Statement
from mast_trace_collector.storage import Store
from mast_trace_collector.storage.readers import READABLE
from mast_trace_collector.storage.span_sql import literal

pytestmark = pytest.mark.timeout(600)
READERS = [OURS, None]
TOLD = {f"SELECT {name}()" for name in ("currentUser", "displayName", "revision", "user")}
"""Questions of clients about themselves, which are answered with constants."""
MOST = 4 * 1024 * 1024
"""Bytes of an answer: enough for all of ours, and soon reached by what counts without an end."""
SHARES = 4
"""Parts of the long tests, for processes beside each other."""


@pytest.fixture(scope="module")
def world(engine):
    engine.renew()
    with Store.open(engine.url) as store:
        runner = Runner(store, timeout=20, max_result=MOST)
        yield make_world(store, runner)
        runner.close()


@pytest.fixture(scope="module")
def listed(world):
    """Tells which functions a reader may call."""
    with world.runner._writers.borrow() as handle:
        return Functions(handle)


def sweep(world, listed, ways_of, share=slice(None)):
    """Try functions; return what leaked, and what was answered though it is not listed."""
    leaked, answered, tried = [], [], 0
    for number, row in enumerate(functions(world.store)[share]):
        ways = list(product(ways_to_call(row["name"], world), READERS))
        for (sql, options), project in ways_of(number, ways):
            answer = world.ask(sql, project=project, **options)
            tried += 1
            if found := world.leaks(answer, project):
                leaked.append((project, sql, found))
            if answer.code == 0 and not listed.may_call(row["name"]) and sql not in TOLD:
                answered.append((project, sql, options, answer.body[:100]))
    assert tried > 1000
    return leaked, answered


def test_no_function_gives_what_is_not_the_readers(world, listed):
    """Every function, in places and by readers that go round: each place sees dozens of functions."""
    places = lambda number, ways: [ways[number % len(ways)]]  # noqa: E731
    assert sweep(world, listed, places) == ([], [])


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("first", range(SHARES))
def test_no_function_in_any_place_gives_what_is_not_the_readers(world, listed, first):
    share = slice(first, None, SHARES)
    assert sweep(world, listed, lambda _, ways: ways, share) == ([], [])


@pytest.mark.parametrize("name", ["file", "aiGenerate", "getServerSetting", "hostName", "joinGet"])
def test_what_is_not_listed_is_refused_in_words_in_every_place(world, listed, name):
    """By the gate, with the name in the words, wherever it stands; none of it was run."""
    assert not listed.may_call(name)
    for sql, options in ways_to_call(name, world):
        answer = world.ask(sql, **options)
        assert answer.code == DENIED, (sql, answer)
        assert "this endpoint only reads" in answer.body, (sql, answer)


def test_listed_functions_of_our_columns_give_our_rows_alone(world, listed):
    """Each function that may be called, on whole columns: nothing of the other project comes through."""
    leaked = []
    names = [row["name"] for row in functions(world.store) if listed.may_call(row["name"])]
    assert len(names) > 500
    for number, name in enumerate(names):
        choices = arguments_of_ours()
        given = choices[number % len(choices)]
        sql = f"SELECT {name}({given}) FROM otel_traces LIMIT 50"
        if found := world.leaks(world.ask(sql)):
            leaked.append((sql, found))
    assert leaked == []


@pytest.mark.parametrize("step", [2, pytest.param(1, marks=pytest.mark.long)])
def test_no_table_gives_what_is_not_the_readers(world, step):
    """Every table and view: rows, counts, columns, samples, virtual columns; of the engine's own every other way."""
    tables = world.store.query(
        "SELECT database, name FROM system.tables "
        "WHERE database NOT IN ('information_schema') AND name NOT IN {endless:Array(String)} "
        "ORDER BY database, name",
        {"endless": sorted(ENDLESS)},
    )
    assert len(tables) > 100
    leaked, answered = [], []
    for number, table in enumerate(tables):
        name = f"`{table['database']}`.`{table['name']}`"
        ours = table["database"] == world.store.database
        statements = (
            f"SELECT * FROM {name} LIMIT 200",
            f"SELECT count() FROM {name}",
            f"SELECT _part, _part_offset FROM {name} LIMIT 5",
            f"SELECT * FROM merge('{table['database']}', '^{table['name']}$') LIMIT 5",
            f"SELECT * FROM otel_traces LEFT JOIN {name} AS j ON 1 LIMIT 5",
            f"SELECT 1 FROM otel_traces WHERE 'x' IN (SELECT toString(*) FROM {name})",
            f"DESCRIBE TABLE {name}",
            f"SHOW CREATE TABLE {name}",
            f"EXPLAIN ESTIMATE SELECT * FROM {name}",
            f"EXISTS TABLE {name}",
        )
        every = slice(None) if ours else slice(number % step, None, step)
        for project, sql in list(product(READERS, statements))[every]:
            answer = world.ask(sql, project=project)
            if found := world.leaks(answer, project):
                leaked.append((project, sql, found))
            if answer.body and not answer.code and ours and table["name"] not in READABLE:
                answered.append((project, sql, answer.body[:80]))
    assert leaked == []
    assert [each for each in answered if not each[1].startswith("EXISTS")] == []
    # An empty answer tells nothing: it is that of a table which does not exist.
    hidden, missing = (
        world.ask(f"SHOW CREATE TABLE {name}") for name in ("mast_findings_mv", "nothing_here")
    )
    assert (hidden.code, hidden.body) == (missing.code, missing.body)
    # Likewise whether it exists.
    hidden, missing = (world.ask(f"EXISTS TABLE {n}") for n in ("mast_findings_mv", "nothing_here"))
    assert (hidden.code, hidden.body) == (missing.code, missing.body)


def sweep_columns(world, ways_of, share=slice(None)):
    """Read columns; return what leaked, and what a table that is not readable answered."""
    leaked, answered, tried = [], [], 0
    ours = world.store.database
    for number, row in enumerate(columns(world.store)[share]):
        readable = row["table"] in READABLE if row["database"] == ours else True
        for sql, project in ways_of(number, list(product(ways_to_read(**row), READERS))):
            answer = world.ask(sql, project=project)
            tried += 1
            if found := world.leaks(answer, project):
                leaked.append((project, sql, found))
            if not answer.code and not readable:
                answered.append((project, sql, answer.body[:100]))
    assert tried > 200
    return leaked, answered


def test_no_column_gives_what_is_not_the_readers(world):
    """A seventh of the columns of every table is tried, in positions and by readers that rotate."""
    places = lambda number, ways: [] if number % 7 else [ways[number // 7 % len(ways)]]  # noqa: E731
    assert sweep_columns(world, places) == ([], [])


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("first", range(SHARES))
def test_no_column_in_any_place_gives_what_is_not_the_readers(world, first):
    share = slice(first, None, SHARES)
    assert sweep_columns(world, lambda _, ways: ways, share) == ([], [])


def test_no_condition_on_a_column_tells_of_others(world):
    """No condition reveals the number of others' rows with a text, at any place of the statement."""
    (canary, *_), told = world.theirs, 0
    ours = [
        row
        for row in columns(world.store)
        if row["database"] == world.store.database and row["table"] in READABLE
    ]
    for number, row in enumerate(ours):
        name, table = f"`{row['column']}`", row["table"]
        condition = f"toString({name}) LIKE '%{canary}%'"
        ways = (
            f"SELECT count() FROM {table} PREWHERE {condition}",
            f"SELECT count() FROM {table} WHERE {condition}",
            f"SELECT countIf({condition}) FROM {table}",
            f"SELECT count() FROM (SELECT 1 FROM {table} GROUP BY {name} HAVING {condition})",
        )
        sql = ways[number % len(ways)]
        whole, answer = world.ask(sql, project=None), world.ask(sql)
        told += whole.code == 0 and whole.body != "0\n"
        # A view takes no PREWHERE; for a project it becomes a WHERE.
        assert answer.code in (0, whole.code), (sql, answer)
        assert answer.code or answer.body == "0\n", (sql, answer)
    assert told > 25


def test_a_project_counts_its_own_rows(world):
    """Permitted reads are right: ours alone with a key, everything with the operator's password."""
    for table in base_tables(world.store):
        if table in READABLE:
            # A verdict makes a finding of its own beside those that were written.
            (truth,) = world.store.query(
                "SELECT countIf(startsWith(TraceId, 'mine-')) AS ours, count() AS n, "
                f"uniqExactIf(TraceId, startsWith(TraceId, 'mine-')) AS traces FROM {table}"
            )
            if table == "otel_traces_trace_id_ts":
                # For a project it is computed, a row for each trace.
                truth["ours"] = truth["traces"]
            assert 0 < truth["ours"] < truth["n"]
            asked = f"SELECT count() FROM {table}"
            assert world.ask(asked).body == f"{truth['ours']}\n", table
            assert world.ask(asked, project=None).body == f"{truth['n']}\n", table
    whole = world.ask("SELECT count() FROM otel_traces", project=None).body
    assert whole == f"{THEIR_ROWS + 3}\n"
    sizes = world.ask(
        "SELECT name, total_rows, total_bytes FROM system.tables", default_format="JSONEachRow"
    )
    for row in as_json(sizes):
        assert not row.get("total_rows"), row
        assert not row.get("total_bytes"), row


def test_no_table_function_engine_setting_or_format_opens_anything(world):
    """The engine's lists of each kind, tried with a file and an address."""
    asked = world.store.query
    path = f"'{world.secret_file}'"
    statements = [
        sql
        for row in asked("SELECT name FROM system.table_functions")
        for sql in (
            f"SELECT * FROM {row['name']}({path})",
            f"SELECT * FROM {row['name']}({path}, 'LineAsString', 'line String')",
            f"SELECT * FROM {row['name']}('127.0.0.1:9', 'system', 'one')",
            f"DESCRIBE TABLE {row['name']}({path})",
        )
    ]
    for row in asked("SELECT name FROM system.table_engines"):
        statements.append(f"CREATE TABLE t (a String) ENGINE = {row['name']}({path})")
        statements.append(f"CREATE TEMPORARY TABLE t (a String) ENGINE = {row['name']}({path})")
    for row in asked("SELECT name FROM system.formats"):
        name = row["name"]
        statements += [
            f"SELECT 1 INTO OUTFILE {path} FORMAT {name}",
            f"SELECT * FROM format({name}, {path})",
        ]
    assert len(statements) > 400
    before = world.secret_file.read_bytes()
    leaked = [
        (project, sql)
        for sql in statements
        for project in READERS
        if world.leaks(world.ask(sql, project=project), project)
    ]
    assert leaked == []
    assert world.secret_file.read_bytes() == before


def test_no_setting_opens_anything(world):
    """Every setting, with a file or a call as its value, in the statement and in the address."""
    path = str(world.secret_file)
    names = [row["name"] for row in world.store.query("SELECT name FROM system.settings")]
    assert len(names) > 1000
    values = ("1", path, f"file('{path}')", f"{{'otel_traces': 'file(''{path}'')'}}")
    sql = "SELECT 1 AS a, ServiceName FROM otel_traces LIMIT 1"
    for number, name in enumerate(names):
        is_listed = name in lists().settings
        tried = list(product(values, READERS))
        for value, project in tried if is_listed else [tried[number % len(tried)]]:
            for answer in (
                world.ask(f"{sql} SETTINGS {name} = {literal(value)}", project=project),
                world.ask(sql, project=project, settings={name: value}),
            ):
                assert not world.leaks(answer, project), (name, value)
                if not is_listed:
                    assert answer.code == DENIED, (name, value)
                    assert f"the setting {name} is not allowed" in answer.body


def test_every_format_that_is_not_listed_is_refused(world):
    names = [row["name"] for row in world.store.query("SELECT name FROM system.formats")]
    refused = set(names) - lists().formats
    assert {"Template", "Protobuf", "MySQLWire"} <= refused
    for name in names:
        for answer in (
            world.ask(f"SELECT 1 AS a FORMAT {name}"),
            world.ask("SELECT 1 AS a", default_format=name),
        ):
            if name in refused:
                assert answer.code == DENIED, name
                assert f"the format {name} is not allowed" in answer.body
            else:
                assert answer.code != DENIED, (name, answer)


def test_what_a_system_table_does_not_show_is_empty(world):
    """Columns that are not listed hold their type's default value in each row."""
    hidden = 0
    for database, tables in lists().catalogue.items():
        for table, shown in tables.items():
            for row in columns(world.store):
                if (row["database"], row["table"]) != (database, table):
                    continue
                if row["column"] in shown["columns"].split():
                    continue
                hidden += 1
                sql = f"SELECT count(DISTINCT `{row['column']}`) FROM {database}.{table}"
                answer = world.ask(sql, project=None)
                # Not there at all, where it is another column's alias.
                assert answer.code == 47 or answer.body in {"0\n", "1\n"}, (sql, answer)
    assert hidden > 50


def test_a_function_that_a_later_engine_brings_is_refused_until_it_is_listed(world):
    """An unlisted function is refused in every place and for both readers."""
    world.store.command("CREATE FUNCTION newlyMade AS x -> concat('made of ', x)")
    runner = Runner(world.store, timeout=20, max_result=MOST)
    try:
        later = replace(world, runner=runner)
        for sql, options in ways_to_call("newlyMade", world):
            for project in READERS:
                answer = later.ask(sql, project=project, **options)
                assert answer.code == DENIED, (sql, answer)
                assert "this endpoint only reads" in answer.body
    finally:
        runner.close()
        world.store.command("DROP FUNCTION newlyMade")


def test_what_never_ends_is_ended(world):
    """By the time that a reader has."""
    runner = Runner(world.store, timeout=1, max_result=MOST)
    try:
        for project in READERS:
            for table in sorted(ENDLESS - {"primes"}):
                statement = Statement(sql=f"SELECT count() FROM system.{table}")
                with pytest.raises(QueryError, match="TIMEOUT_EXCEEDED"):
                    runner.run(statement, Rights(project=project))
    finally:
        runner.close()
