"""Databases that the engine has for readers: the catalogue and the seats, as they are made."""

import threading
from types import SimpleNamespace

import pytest
from endpoint_sweep import ENDLESS

from mast_trace.exceptions import ConfigurationError
from mast_trace_collector.clickhouse_http.confinement import Confinement, Seats
from mast_trace_collector.clickhouse_http.engine import Handle, Handles
from mast_trace_collector.clickhouse_http.errors import QueryError
from mast_trace_collector.clickhouse_http.gate import Functions, Gate, catalogue_tables, lists
from mast_trace_collector.clickhouse_http.plain_tables import make_catalogue
from mast_trace_collector.clickhouse_http.rendering import read_tree
from mast_trace_collector.storage import Store
from mast_trace_collector.storage.readers import READABLE, seat


@pytest.fixture(scope="module")
def store(engine):
    engine.renew()
    with Store.open(engine.url) as store:
        yield store


@pytest.fixture(scope="module")
def handles(store):
    handles = Handles(store.embedded_path, {})
    yield handles
    handles.close()


@pytest.fixture
def handle(handles):
    with handles.borrow() as handle:
        yield handle


@pytest.fixture
def rows(handle):
    """Rows of a SELECT, as the engine writes them."""
    return lambda sql: handle.run(sql, "TabSeparatedRaw").body.decode().splitlines()


class TestCatalogue:
    """The views that stand for the system tables."""

    @pytest.fixture
    def made(self, handle, rows, store):
        make_catalogue(handle, store.database)
        return {
            (schema, table): (name, shown)
            for schema, tables in lists().catalogue.items()
            for table, shown in tables.items()
            for name in [table if schema == "system" else f"{schema}_{table}"]
        }

    def test_it_has_a_view_for_each_table_on_the_list_and_no_other(self, made, rows):
        names = rows("SELECT name FROM system.tables WHERE database = 'mast_catalogue'")
        assert sorted(names) == sorted(catalogue_tables()) == sorted(n for n, _ in made.values())
        definers = rows(
            "SELECT DISTINCT extract(create_table_query, 'DEFINER = .* SECURITY \\\\w+') "
            "FROM system.tables WHERE database = 'mast_catalogue'"
        )
        assert definers == ["DEFINER = default SQL SECURITY DEFINER"]

    def test_it_has_all_columns_and_shows_those_on_the_list(self, made, rows):
        of = "SELECT name, type FROM system.columns WHERE database = '{}' AND table = '{}'"
        for (schema, table), (name, shown) in made.items():
            nullable = set(shown.get("nullable", "").split())
            real = [
                (column, f"Nullable({kind})" if column in nullable else kind)
                for row in rows(of.format(schema, table) + " AND default_kind != 'ALIAS'")
                for column, _, kind in [row.partition("\t")]
            ]
            assert real
            found = [tuple(row.split("\t")) for row in rows(of.format("mast_catalogue", name))]
            assert found == real, name
            listed = {*shown["columns"].split(), *nullable} & dict(real).keys()
            condition = shown.get("rows", "1").format(
                database="'mast_trace'", tables=tuple(READABLE), settings=tuple(lists().settings)
            )
            hidden = " OR ".join(
                f"`{column}` IS DISTINCT FROM defaultValueOfTypeName($${kind}$$)"
                for column, kind in real
                if column not in listed
            )
            end = "LIMIT 3" if table in ENDLESS else "ORDER BY ALL LIMIT 5000"
            # Not what belongs to a connection, which is not the same for both.
            same = sorted(listed - {"value", "changed"} if name == "settings" else listed)
            columns = ", ".join(f"`{column}`" for column in same)
            told = rows(f"SELECT {columns} FROM mast_catalogue.{name} {end}")
            assert told == rows(f"SELECT {columns} FROM {schema}.{table} WHERE {condition} {end}")
            assert told or table == "parts", name
            if hidden:
                assert not rows(f"SELECT 1 FROM mast_catalogue.{name} WHERE {hidden} LIMIT 1"), name

    def test_it_shows_our_tables_alone(self, made, rows):
        for name, column in (("tables", "name"), ("columns", "table")):
            told = rows(f"SELECT DISTINCT {column} FROM mast_catalogue.{name} ORDER BY 1")
            assert told == sorted(READABLE)
        assert rows("SELECT name FROM mast_catalogue.databases") == ["mast_trace"]
        settings = rows("SELECT name FROM mast_catalogue.settings")
        assert set(settings) <= lists().settings
        assert len(settings) > 50

    def test_it_is_made_anew(self, made, handle, rows, store):
        handle.do("CREATE TABLE mast_catalogue.left_over (a UInt8) ENGINE = Memory")
        make_catalogue(handle, store.database)
        assert rows("EXISTS TABLE mast_catalogue.left_over") == ["0"]


class TestFunctions:
    """Names of functions, as an engine looks them up."""

    CASES = (
        # name, may be called, may be a column's name
        ("upper", True, True),
        ("UPPER", True, True),
        ("ucase", True, True),
        ("UCASE", True, True),
        ("sum", True, True),
        ("Sum", True, True),
        ("sumIf", True, True),
        ("sumOrNullIf", True, True),
        ("sumMergeState", True, True),
        ("upperIf", False, True),
        ("caseWithExpression", True, True),
        ("hostName", False, False),
        ("hostname", False, False),
        ("fqdn", False, False),
        ("FQDN", False, False),
        ("fileIf", False, False),
        ("fileOrNullIf", False, False),
        ("file", False, False),
        ("s3", False, False),
        ("remote", False, False),
        ("Remote", False, False),
        ("numbers", False, True),
        ("TraceId", False, True),
    )

    def test_each_is_called_or_named_or_neither(self, handle):
        functions = Functions(handle)
        found = [
            (name, functions.may_call(name), functions.may_name(name)) for name, *_ in self.CASES
        ]
        assert found == [*self.CASES]

    def test_each_one_of_the_engine_is_allowed_or_refused(self, handle, rows):
        """By the list alone: a name that is called may be a column's, one that is refused may not."""
        functions, known = Functions(handle), lists()
        listed = known.functions | known.aggregates
        allowed = 0
        for row in rows("SELECT name, alias_to FROM system.functions"):
            name, alias_to = row.split("\t")
            expected = (alias_to or name) in listed
            for written in (name, name.upper(), name.lower()):
                found = (functions.may_call(written), functions.may_name(written))
                assert found == (expected, expected), written
            allowed += expected
        assert allowed > 800


class TestGate:
    """Names of tables, which may come and go."""

    SELECT = (
        "SelectWithUnionQuery (children 1)\n ExpressionList (children 1)\n"
        "  SelectQuery (children 1)\n   ExpressionList (children 1)\n    Identifier {}"
    )

    @pytest.fixture
    def refuses(self, handle):
        def refuses(gate, name):
            try:
                gate.check(handle, read_tree(self.SELECT.format(name)))
            except QueryError as error:
                table = ".".join(name.split(".")[:2])
                assert f"the table {table} is not allowed" in error.text  # noqa: PT017
                return True
            return False

        return refuses

    def test_tables_and_databases_are_looked_up_again(self, handle, refuses, monkeypatch):
        gate = Gate(handle, "mast_trace")
        assert not refuses(gate, "later")
        assert not refuses(gate, "further.x")
        assert refuses(gate, "mast_otlp_inlet")
        handle.do("CREATE TABLE mast_trace.later (a UInt8) ENGINE = Memory")
        handle.do("CREATE DATABASE further ENGINE = Memory")
        try:
            assert not refuses(gate, "later")
            assert refuses(Gate(handle, "mast_trace"), "later")
            assert refuses(Gate(handle, "mast_trace"), "further.x")
            monkeypatch.setattr("mast_trace_collector.clickhouse_http.gate._KNOWN_FOR", 0.0)
            assert refuses(gate, "later")
            assert refuses(gate, "further.x")
        finally:
            handle.do("DROP TABLE mast_trace.later")
            handle.do("DROP DATABASE further")

    def test_names_with_spaces_are_known(self, handle, refuses):
        handle.do("CREATE TABLE mast_trace.`two words` (a UInt8) ENGINE = Memory")
        handle.do("CREATE DATABASE `three more words` ENGINE = Memory")
        try:
            gate = Gate(handle, "mast_trace")
            assert refuses(gate, "two words")
            assert refuses(gate, "three more words.x")
            assert not refuses(gate, "two")
            assert not refuses(gate, "three.x")
        finally:
            handle.do("DROP TABLE mast_trace.`two words`")
            handle.do("DROP DATABASE `three more words`")

    def test_names_are_known_on_a_machine_that_has_just_started(self, handle, refuses, monkeypatch):
        clock = SimpleNamespace(monotonic=lambda: 0.0)
        monkeypatch.setattr("mast_trace_collector.clickhouse_http.gate.time", clock)
        assert refuses(Gate(handle, "mast_trace"), "mast_otlp_inlet")

    def test_a_part_of_a_statement_that_is_not_known_is_refused_by_its_kind(self, handle):
        tree = read_tree("SelectWithUnionQuery (children 1)\n Strange")
        with pytest.raises(QueryError, match=r"only reads: Strange is not allowed in a SELECT \("):
            Gate(handle, "mast_trace").check(handle, tree)

    def test_columns_are_no_tables(self, handle, refuses):
        gate = Gate(handle, "mast_trace")
        for name in (
            "TraceId",
            "mast_runs",
            "mast_runs.TraceId",
            "t.mast_otlp_inlet",
            "system.x.y",
        ):
            assert refuses(gate, name) == (name == "system.x.y"), name
        assert gate.check_table("mast_runs") == ("mast_trace", "mast_runs")
        assert gate.check_table("mast_trace.mast_runs") == ("mast_trace", "mast_runs")
        assert gate.check_table("mast_catalogue.tables") == ("mast_catalogue", "tables")
        name = "mast_catalogue.information_schema_tables"
        assert gate.check_table(name) == ("mast_catalogue", "information_schema_tables")


class TestSeats:
    """Users that are lent to projects."""

    @pytest.fixture
    def seats(self, handles, handle):
        for number in range(2):
            handle.do(f"DROP TABLE IF EXISTS mast_readers.{seat(number)}")
        return Seats(handles, 2)

    @pytest.fixture
    def project_of(self, rows):
        return lambda name: rows(f"SELECT Project FROM mast_readers.{name}")

    def test_a_project_keeps_its_seat_until_another_needs_it(self, seats, project_of):
        with seats.take("a") as first, seats.take("o'urs") as second:
            assert (first, second) == (seat(0), seat(1))
            assert (project_of(first), project_of(second)) == (["a"], ["o'urs"])
            with seats.take("a") as again:
                assert again == first
        with seats.take("a") as again:
            assert again == first
        with seats.take("c") as third:
            assert third == second
            assert project_of(third) == ["c"]
        with seats.take("a") as again:
            assert (again, project_of(again)) == (first, ["a"])

    def test_one_that_comes_back_has_its_own_row_alone(self, seats, project_of):
        for project in ("a", "b", "", "c", "a"):
            with seats.take(project) as name:
                assert project_of(name) == [project]

    def test_a_project_waits_while_all_seats_are_taken_by_others(self, seats, project_of):
        lent = []

        def wait():
            with seats.take("c") as name:
                lent.append((name, project_of_later(name)))

        def project_of_later(name):
            with seats._handles.borrow() as handle:
                sql = f"SELECT Project FROM mast_readers.{name}"
                return handle.run(sql, "TabSeparated").body.decode()

        waiting = threading.Thread(target=wait, daemon=True)
        with seats.take("a"), seats.take("a"):
            with seats.take("b"):
                waiting.start()
                waiting.join(0.2)
                assert lent == []
            waiting.join(10)
        assert lent == [(seat(1), "c\n")]

    def test_a_seat_that_was_not_made_ready_is_nobodys(self, seats, handle, project_of):
        with seats.take("a") as name:
            pass
        handle.do(f"DROP TABLE mast_readers.{name}")
        handle.do(f"CREATE VIEW mast_readers.{name} AS SELECT 'a' AS Project")
        with seats.take("b"):
            pass
        for project in ("c", ""):
            with pytest.raises(QueryError), seats.take(project):
                pass
        handle.do(f"DROP TABLE mast_readers.{name}")
        for project in ("a", "", "a"):
            with seats.take("b"), seats.take(project) as again:
                assert (again, project_of(again)) == (name, [project])


class TestConfinement:
    """The proof at the start that an engine keeps projects apart."""

    @pytest.mark.parametrize(
        "broken",
        [
            # It gives a reader what it must not, or a project the rows of another.
            {"_DENIED": ("SELECT 1", "SELECT * FROM file('/dev/null', 'LineAsString')")},
            {"_PROOF": ("CREATE TABLE mast_readers.mast_proof (Project String) ENGINE = Memory",)},
        ],
        ids=["denials", "rows"],
    )
    def test_an_engine_that_fails_its_proof_serves_no_readers(self, store, broken, monkeypatch):
        for name, value in broken.items():
            monkeypatch.setattr(f"mast_trace_collector.clickhouse_http.confinement.{name}", value)
        with pytest.raises(
            ConfigurationError, match=r"readers .* apart \(.*MAST_TRACE_DATABASE_URL"
        ):
            Confinement(store.embedded_path, store.database, {})

    def test_names_without_a_database_are_those_of_the_store_or_the_named_one(self, store, rows):
        with Confinement.of(store.embedded_path, store.database, {}) as confinement:
            for current, found in (("", "mast_trace"), ("mast_catalogue", "mast_catalogue")):
                table = "mast_runs" if not current else "one"
                with confinement.view(f"SELECT count() FROM {table}", None, current) as view:
                    name = view.partition("(")[0].partition(".")[2]
                    (text,) = rows(f"SELECT as_select FROM system.tables WHERE name = '{name}'")
                    assert f"FROM {found}.{table}" in text

    @pytest.mark.parametrize("error", [ZeroDivisionError(), QueryError(1, "a", "B")])
    def test_a_view_is_gone_whatever_went_wrong_with_it(self, store, rows, monkeypatch, error):
        """Dropped on the connection that made it, before another thread may have that."""
        drops, do = [], Handle.do

        def watched(handle, sql):
            if sql.startswith("DROP VIEW"):
                drops.append(handle in confinement._handles._idle)
            do(handle, sql)

        def fail(view):
            names.append(view.partition("(")[0])
            assert rows(f"EXISTS {names[0]}") == ["1"]
            raise error

        names = []
        with Confinement.of(store.embedded_path, store.database, {}) as confinement:
            monkeypatch.setattr(Handle, "do", watched)
            with pytest.raises(type(error)), confinement.view("SELECT 1", None) as view:
                fail(view)
            assert rows(f"EXISTS {names[0]}") == ["0"]
        assert drops == [False]
