"""A statement's plan for a reader, and the form in which rows go back, asked of the parts themselves."""

from dataclasses import replace

import pytest
from endpoint_sweep import OURS, World

from mast_trace_collector.clickhouse_http.errors import QueryError
from mast_trace_collector.clickhouse_http.planning import StatementPlan
from mast_trace_collector.clickhouse_http.rendering import BLOCK_INFO, HELLO, quoted
from mast_trace_collector.clickhouse_http.runner import Rights, Runner
from mast_trace_collector.clickhouse_http.statement import Statement
from mast_trace_collector.storage.readers import READABLE

DESCRIBED = "DESCRIBE TABLE "
BEFORE, WITH_INFO = 54453, 54454
"""Protocols of clickhouse-go without and with something before each block."""
READER, WRITER = Rights(project=OURS), Rights(writes=True)
BOTH = pytest.mark.parametrize("rights", [READER, WRITER], ids=["reader", "writer"])
PLAIN = StatementPlan("SELECT 1", "TSV", {}, "mast_trace")
CATALOGUE = {"database": "mast_catalogue"}
TABLES = f"{', '.join(sorted(READABLE))} and what clients ask of system"


@pytest.fixture(scope="module")
def world(both, tmp_path_factory):
    folder = tmp_path_factory.mktemp("world")
    runner = Runner(both, timeout=20, max_result=10_000_000)
    yield World(both, runner, folder, folder)
    runner.close()


@pytest.fixture
def plan(world):
    """Plan a reader's statement."""

    def plan(sql, **options):
        statement = Statement(sql=sql, **{"default_format": "TSV", **options})
        with world.runner._planning.borrow() as handle:
            return world.runner._planner.plan(handle, statement)

    return plan


@pytest.fixture
def native(world):
    """Answer in blocks."""

    def native(sql, protocol, rights, **options):
        statement = Statement(sql=sql, default_format="Native", protocol=protocol, **options)
        return world.runner.run(statement, rights).body

    return native


@pytest.mark.parametrize(
    ("sql", "options", "changed"),
    [
        ("SELECT 1", {}, {}),
        ("SELECT 1", {"database": "default"}, {}),
        ("SELECT 1", {"database": "mast_trace"}, {}),
        ("SELECT 1", {"database": "system"}, {"database": "mast_catalogue"}),
        ("SELECT  {n:String}", {"params": {"n": "x"}}, {"select": "SELECT 'x'"}),
        ("SELECT {n:String}", {"params": {"n": r"x\ty"}}, {"select": r"SELECT 'x\x09y'"}),
        *(
            (
                "EXPLAIN AST SELECT {n:String}",
                {"params": {"n": given}},
                {"select": f"SELECT '{read}'", "before": "EXPLAIN AST ", "confined": False},
            )
            for given, read in (("x", "x"), (r"x\ty", r"x\x09y"))
        ),
        ("SELECT (SELECT 1)", {}, {"select": "SELECT (SELECT 1) AS `(SELECT 1)`"}),
        ("(SELECT 1 UNION ALL SELECT 2) EXCEPT SELECT 3", {}, {"select": "(SELECT 1 UNION ALL SELECT 2) EXCEPT (SELECT 3)"}),
        (
            "SELECT 1 FORMAT CSV SETTINGS max_threads = 3",
            {"settings": {"max_threads": "7", "max_block_size": "9"}},
            {"format": "CSV", "settings": {"max_threads": "3", "max_block_size": "9"}},
        ),
        (
            HELLO,
            {},
            {
                "is_hello": True,
                "select": (
                    "SELECT 'mast-trace' AS `displayName()`, version(), "
                    "toUInt32(54453) AS `revision()`, timezone()"
                ),
            },
        ),
        (
            "SHOW TABLES",
            {},
            {"select": "SELECT name FROM mast_catalogue.tables WHERE database = 'mast_trace' ORDER BY name"},
        ),
        (
            "SHOW TABLES",
            {"database": "system"},
            {
                "database": "mast_catalogue",
                "select": "SELECT name FROM mast_catalogue.tables WHERE database = 'system' ORDER BY name",
            },
        ),
        *(
            (sql, options, {"select": table, "before": DESCRIBED, "confined": False, **changed})
            for sql, options, table, changed in (
                ("DESC mast_runs", {}, "mast_trace.mast_runs", {}),
                ("DESC system.tables FORMAT CSV", {}, "mast_catalogue.tables", {"format": "CSV"}),
                ("DESC tables", {"database": "system"}, "mast_catalogue.tables", CATALOGUE),
                ("DESC mast_trace.mast_runs", {"database": "system"}, "mast_trace.mast_runs", CATALOGUE),
            )
        ),
        (
            "DESC numbers({n:UInt8})",
            {"params": {"n": "3"}},
            {
                "select": "SELECT * FROM numbers(_CAST('3', 'UInt8'))",
                "before": f"{DESCRIBED}(",
                "after": ")",
            },
        ),
        (
            r"DESC (SELECT {n:String} AS a)",
            {"params": {"n": r"x\ty"}},
            {"select": r"(SELECT 'x\x09y' AS a)", "before": f"{DESCRIBED}(", "after": ")"},
        ),
    ],
)  # fmt: skip
def test_what_is_run_for_a_statement(plan, sql, options, changed):
    assert plan(sql, **options) == replace(PLAIN, **changed)


@pytest.mark.parametrize(
    ("sql", "options", "words"),
    [
        ("SELECT 1", {"database": "other"}, "the database other is not allowed; mast_trace and system are"),
        ("SELECT 1", {"settings": {"readonly": "0"}}, "the setting readonly is not allowed; .*max_threads"),
        ("SELECT 1; SELECT 2", {}, "one statement at a time"),
        ("SELECT 1 FORMAT Template", {}, "the format Template is not allowed; JSON, CSV, .*Native"),
        ("SELECT * FROM mast_trace.nothing", {}, f"the table mast_trace.nothing is not allowed; {TABLES}"),
        ("DESC mast_runs", {"database": "system"}, f"the table mast_catalogue.mast_runs is not allowed; {TABLES}"),
        ("SELECT * FROM s3('x')", {}, "the table function s3 is not allowed; generate_series, .*numbers"),
        ("SELECT _part FROM otel_traces", {}, "the name _part is not allowed: a leading underscore"),
        ("SELECT t._part FROM otel_traces AS t", {}, "the name _part is not allowed: a leading underscore"),
        ("CREATE TABLE t (a UInt8) ENGINE = Memory", {}, "CREATE TABLE is not allowed; SELECT, SHOW TABLES"),
    ],
)  # fmt: skip
def test_a_refusal_says_what_is_allowed(plan, sql, options, words):
    begin = r"^Code: 497. DB::Exception: this endpoint only reads: "
    with pytest.raises(QueryError, match=rf"{begin}{words}.* \(ACCESS_DENIED\)$"):
        plan(sql, **options)


def test_a_statement_may_have_so_many_characters(plan):
    size = 256 * 1024
    text = f"SELECT '{'x' * (size - 9)}'"
    assert plan(text).select == text
    with pytest.raises(QueryError, match=r"Code: 62\..* 262144 .*\(SYNTAX_ERROR\)"):
        plan(text + " ")


def test_names_that_a_lambda_has_may_be_called_unless_they_are_refused_functions(plan):
    sql = "WITH (x -> x + 1) AS {} SELECT {}(1)"
    assert plan(sql.format("f", "f")).confined
    for name in ("hostName", "HOSTNAME", "hostname"):
        with pytest.raises(QueryError, match=f"the function {name} is not allowed"):
            plan(sql.format(name, name))
    for sql in ("WITH 1 AS f SELECT f(1)", "WITH (x -> x + 1) AS f SELECT g(1)"):
        with pytest.raises(QueryError, match=r"the function \w is not allowed"):
            plan(sql)


@pytest.mark.parametrize(
    ("sql", "body"),
    [
        ("SELECT {on:UInt8}", "0\n"),
        ("SELECT 1 AS a FORMAT JSONEachRow", '{"a":1}\n'),
        ("DESC numbers(1)", "number\tUInt64\t\t\t\t\t\n"),
        ("EXISTS TABLE mast_runs", "1\n"),
        ("EXPLAIN AST SELECT {on:UInt8} FORMAT Raw", "SelectWithUnionQuery (children 1)\n"),
        ("DESC mast_schema_migrations", "Version\tUInt32\t"),
    ],
)
def test_what_is_planned_is_run(world, sql, body):
    answer = world.ask(sql, params={"on": "0"})
    assert answer.body.startswith(body), answer.body


@pytest.mark.parametrize("database", ["", "system"])
def test_the_current_database_is_the_one_of_the_statement(world, database):
    """On a connection that another statement has used before."""
    for project in (OURS, None):
        world.ask("SELECT 1", project=project, database="" if database else "system")
        answer = world.ask("SELECT currentDatabase()", project=project, database=database)
        assert answer.body == f"{database or 'mast_trace'}\n"
    if database:
        assert world.ask("SELECT count() FROM one", database=database).body == "1\n"


@BOTH
@pytest.mark.parametrize(
    ("sql", "block"),
    [
        ("SELECT toUInt8(7) AS a", b"\x01\x01\x01a\x05UInt8\x07"),
        ("SELECT {n:UInt8} AS a", b"\x01\x01\x01a\x05UInt8\x03"),
        ("SELECT {n:UInt8} AS a WHERE 0", b"\x01\x00\x01a\x05UInt8"),
        ("(SELECT 1 AS a WHERE 0)", b"\x01\x00\x01a\x05UInt8"),
        ("( select 1 as a where 0 )", b"\x01\x00\x01a\x05UInt8"),
        ("WITH 1 AS a SELECT a WHERE 0", b"\x01\x00\x01a\x05UInt8"),
        ("with 1 as a select a where 0", b"\x01\x00\x01a\x05UInt8"),
        ("/* a */ -- b\n/**/SELECT 1 AS a WHERE 0 -- c", b"\x01\x00\x01a\x05UInt8"),
        ("SELECT 1 AS a, [1] AS `b c` WHERE 0 FORMAT Native", b"\x02\x00\x01a\x05UInt8\x03b c\x0cArray(UInt8)"),
        ("SELECT 1 AS `a\u2028b\x0b` WHERE 0", b"\x01\x00\x06a\xe2\x80\xa8b\x0b\x05UInt8"),
        ("EXISTS TABLE mast_trace.mast_runs", b"\x01\x01\x06result\x05UInt8\x01"),
    ],
)  # fmt: skip
def test_a_block_for_each_protocol(native, rights, sql, block):
    params = {"n": "3"}
    for protocol in (0, BEFORE):
        assert native(sql, protocol, rights, params=params) == block
    assert native(sql, WITH_INFO, rights, params=params) == BLOCK_INFO + block


def test_the_columns_of_an_empty_answer_may_have_any_name(native):
    """Tabs and line ends among them; a reader's statement with such a name is refused in words."""
    sql = "SELECT 1 AS `a\\tb\\nc` WHERE 0"
    assert native(sql, BEFORE, WRITER) == b"\x01\x00\x05a\tb\nc\x05UInt8"
    with pytest.raises(QueryError, match="names of columns and tables without spaces and signs"):
        native(sql, BEFORE, READER)


@BOTH
def test_bytes_that_are_no_text_stay_what_they_are(world, native, rights):
    """In values, in names of columns, with rows and without, and in what the engine complains of."""
    sql = r"SELECT '\xff\xc3\\', hex('\xff'), '\xc3\xbc' AS `\xfe` FORMAT TSV"
    assert native(sql, 0, rights) == b"\xff\xc3\\\\\tFF\t\xc3\xbc\n"
    sql = r"SELECT '\xff' AS `a\xfe`"
    assert native(sql, BEFORE, rights) == b"\x01\x01\x02a\xfe\x06String\x01\xff"
    assert native(f"{sql} WHERE 0", BEFORE, rights) == b"\x01\x00\x02a\xfe\x06String"
    with pytest.raises(QueryError, match=r"^Code: 47\..* `?a\\xfe`?") as error:
        native(r"SELECT `a\xfe`", BEFORE, rights)
    assert error.value.code == 47


def test_a_database_with_a_name_that_is_no_text_stands_in_nobodys_way(world, monkeypatch):
    monkeypatch.setattr("mast_trace_collector.clickhouse_http.gate._KNOWN_FOR", 0.0)
    world.store.command(r"CREATE DATABASE `\xff` ENGINE = Memory")
    try:
        assert world.ask("SELECT 7").body == "7\n"
        words = r"the table \xff.t is not allowed"
        assert words in world.ask(r"SELECT * FROM `\xff`.t").body
    finally:
        world.store.command(r"DROP DATABASE `\xff`")


@BOTH
def test_the_greeting_of_clickhouse_go_is_ours(world, native, rights):
    version = world.store.query("SELECT version() AS v")[0]["v"]
    answer = native(HELLO, WITH_INFO, rights)
    assert answer.startswith(BLOCK_INFO + b"\x04\x01\x0ddisplayName()\x06String\x00\x0amast-trace")
    assert f"version()\x06String\0{chr(len(version))}{version}".encode() in answer
    assert BLOCK_INFO not in native(HELLO, BEFORE, rights)
    assert BLOCK_INFO not in native("SELECT 1", BEFORE, rights)
    assert native("SELECT 2", WITH_INFO, rights).endswith(b"\x02")


@BOTH
def test_every_block_of_a_large_result_has_its_prefix(native, rights):
    """Each block has 65,536 rows, a name and a type of its own."""
    sql = "SELECT number AS a FROM numbers(150000) SETTINGS max_block_size = 65536"
    with_info, plain = native(sql, WITH_INFO, rights), native(sql, BEFORE, rights)
    assert with_info.count(BLOCK_INFO + b"\x01") == plain.count(b"\x01a\x06UInt64") > 1
    assert with_info.replace(BLOCK_INFO, b"") == plain


def test_a_statement_of_any_kind_has_parameters(native):
    sql, params = "EXISTS TABLE mast_trace.{t:Identifier}", {"t": "mast_runs"}
    block = b"\x01\x01\x06result\x05UInt8\x01"
    assert native(sql, WITH_INFO, WRITER, params=params) == BLOCK_INFO + block
    assert native(sql, BEFORE, WRITER, params=params) == block


def test_a_list_without_rows_has_no_block(native):
    """The engine tells its columns to nobody; a prefix alone would be half a block."""
    for protocol in (0, BEFORE, WITH_INFO):
        assert native("SHOW TABLES LIKE 'none'", protocol, WRITER) == b""
        sql = "SHOW TABLES FROM mast_trace LIKE 'mast_runs'"
        assert native(sql, protocol, WRITER).endswith(b"\x01\x01\x04name\x06String\x09mast_runs")


class TestWriting:
    """Statements of who may do anything."""

    @pytest.fixture
    def do(self, world):
        def do(sql, **options):
            return world.runner.run(Statement(sql=sql, **options), WRITER).body.decode()

        yield do
        do("TRUNCATE TABLE mast_trace.mast_human_labels")
        do("DROP DATABASE IF EXISTS made SYNC")

    def test_rows_of_the_body_are_inserted(self, do):
        sql = "INSERT INTO mast_human_labels (TraceId, Note) FORMAT CSV"
        do(sql, database="mast_trace", data=b'"a","b,c"\n"d","e"\n')
        told = do(
            "SELECT TraceId, Note FROM mast_human_labels WHERE Note != '' ORDER BY 1",
            database="mast_trace",
        )
        assert told == "a\tb,c\nd\te\n"

    def test_rows_of_the_text_are_inserted_and_what_is_asked_comes_in_the_form_asked_for(self, do):
        into = "INSERT INTO mast_trace.mast_human_labels (TraceId) VALUES"
        assert do(f"{into} ('x'), ('y')") == ""
        assert do(f"{into} ({{id:String}})", params={"id": "z"}, default_format="Native") == ""
        sql = "SELECT TraceId AS id FROM mast_trace.mast_human_labels WHERE id > {from:String} ORDER BY id"
        assert do(sql, params={"from": "x"}, default_format="CSV") == '"y"\n"z"\n'

    def test_a_database_is_made_before_it_is_used(self, do):
        """A client names the database that it is about to make as `default`."""
        do("CREATE DATABASE made ENGINE = Memory", database="default")
        assert do("SELECT currentDatabase()", database="made") == "made\n"
        for none in ("", "default"):
            assert do("SELECT currentDatabase()", database=none) == "default\n"

    @pytest.mark.parametrize("name", ["it`s", r"a\nb", "a\\", "a\\`; SELECT 1 --"])
    def test_a_database_may_have_any_name(self, do, name):
        do(f"CREATE DATABASE {quoted(name)} ENGINE = Memory")
        try:
            sql = "SELECT currentDatabase()"
            assert do(sql, database=name, default_format="RawBLOB") == name
        finally:
            do(f"DROP DATABASE {quoted(name)}")

    def test_a_setting_has_a_name_of_plain_letters(self, do):
        with pytest.raises(QueryError, match=r"Code: 36\..*'max_threads = 1, readonly' is no name"):
            do("SELECT 1", settings={"max_threads = 1, readonly": "0"})

    def test_settings_are_of_one_statement(self, do):
        sql = "SELECT getSetting('max_block_size')"
        before = do(sql)
        assert do(sql, settings={"max_block_size": "7"}) == "7\n"
        assert do(sql) == before
