"""A reader's statement is taken apart, on texts as the engine renders them; no engine is asked."""

from contextlib import contextmanager

import pytest

from mast_trace_collector.clickhouse_http import planning, reading, rendering
from mast_trace_collector.clickhouse_http.errors import QueryError
from mast_trace_collector.clickhouse_http.rendering import read_tree

SHOWN = "SHOW TABLES, SHOW DATABASES, SHOW CREATE TABLE, DESCRIBE TABLE, EXISTS TABLE and EXISTS DATABASE are"
AT_THE_END = "SETTINGS may stand at the end of the statement only, with plain values: SELECT ... SETTINGS max_threads = 2"
OF_T = "FROM C.tables WHERE database = '%s' AND name = 't'"
UNREADABLE = "the statement could not be checked; names of columns and tables without spaces and signs may help"


@contextmanager
def denied(words):
    """Check that a block is refused in just these words."""
    with pytest.raises(QueryError) as error:
        yield
    assert error.value.text == (
        f"Code: 497. DB::Exception: this endpoint only reads: {words} (ACCESS_DENIED)"
    )


@pytest.mark.parametrize(
    ("text", "select"),
    [
        ("SHOW TABLES", "name FROM C.tables WHERE database = 'd' ORDER BY name"),
        (
            "SHOW TABLES FROM system NOT ILIKE '%a' LIMIT 3",
            "name FROM C.tables WHERE database = 'system' AND name NOT ILIKE '%a' ORDER BY name LIMIT 3",
        ),
        ("SHOW TABLES IN e", "name FROM C.tables WHERE database = 'e' ORDER BY name"),
        ("SHOW TABLES FROM `a b`", "name FROM C.tables WHERE database = 'a b' ORDER BY name"),
        (
            "SHOW FULL TABLES FROM e LIKE 'x%' LIMIT 1 2",
            (
                "name, if(engine = 'View', 'VIEW', 'BASE TABLE') AS table_type FROM C.tables "
                "WHERE database = 'e' AND name LIKE 'x%' ORDER BY name LIMIT 12"
            ),
        ),
        ("SHOW DATABASES", "name FROM C.databases WHERE 1 ORDER BY name"),
        (
            r"SHOW DATABASES LIKE 'a\'b' LIMIT 7",
            r"name FROM C.databases WHERE 1 AND name LIKE 'a\'b' ORDER BY name LIMIT 7",
        ),
        ("SHOW CREATE TABLE e.t", f"create_table_query AS statement {OF_T % 'e'} ORDER BY name"),
        ("SHOW CREATE VIEW `t`", f"create_table_query AS statement {OF_T % 'd'} ORDER BY name"),
        ("EXISTS TABLE e.t", f"toUInt8(count() > 0) AS result {OF_T % 'e'}"),
        ("EXISTS VIEW t", f"toUInt8(count() > 0) AS result {OF_T % 'd'}"),
        ("EXISTS DATABASE e", "toUInt8(count() > 0) AS result FROM C.databases WHERE name = 'e'"),
    ],
)
def test_what_shows_is_a_select_of_the_catalogue(text, select):
    assert planning.shows(text)
    expected = "SELECT " + select.replace("C.", "mast_catalogue.")
    assert planning.as_select(text, "d") == expected


def test_only_show_and_exists_show():
    for text in ("SELECT 1", "SHOWN TABLES", "DESCRIBE TABLE t", "WITH 1 AS SHOW SELECT SHOW"):
        assert not planning.shows(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("SHOW PROCESSLIST", "SHOW PROCESSLIST is not allowed; "),
        ("SHOW CREATE DATABASE x", "SHOW CREATE is not allowed; "),
        ("SHOW FULL COLUMNS FROM t", "SHOW FULL is not allowed; "),
        ("EXISTS DICTIONARY t", "EXISTS DICTIONARY is not allowed; "),
        ("SHOW TABLES WHERE name = 'x'", "WHERE is not allowed here; "),
        ("SHOW TABLES LIKE 'x' OR 1", "OR is not allowed here; "),
        ("SHOW TABLES LIMIT x", "LIMIT is not allowed here; "),
        ("SHOW DATABASES UNION SELECT 1", "UNION is not allowed here; "),
        ("EXISTS TABLE `a b`", "the name of the table cannot be read; "),
        ("EXISTS TABLE a.b.c", "the name of the table cannot be read; "),
        ("SHOW CREATE TABLE 'x'", "the name of the table cannot be read; "),
        ("SHOW CREATE TABLE `a`` OR 1`", "the name of the table cannot be read; "),
    ],
)
def test_what_may_not_be_shown_is_refused_in_words(text, words):
    with denied(words + SHOWN):
        planning.as_select(text, "d")


@pytest.mark.parametrize(
    ("text", "select", "fmt", "settings"),
    [
        ("SELECT 1", "SELECT 1", "", {}),
        ("SELECT 1 FORMAT CSV", "SELECT 1", "CSV", {}),
        ("SELECT 1 FORMAT `Null`", "SELECT 1", "Null", {}),
        ("SELECT 1 FORMAT `Null` SETTINGS a = 1", "SELECT 1", "Null", {"a": "1"}),
        ("SELECT 1 AS FORMAT", "SELECT 1 AS FORMAT", "", {}),
        ("SELECT FORMAT AS CSV", "SELECT FORMAT AS CSV", "", {}),
        ("SELECT (1 FORMAT CSV)", "SELECT (1 FORMAT CSV)", "", {}),
        ("SELECT 1 FORMAT 'CSV'", "SELECT 1 FORMAT 'CSV'", "", {}),
        ("SELECT 1 FORMAT CSV UNION", "SELECT 1 FORMAT CSV UNION", "", {}),
        ("SELECT 1 FORMAT A FORMAT B", "SELECT 1 FORMAT A", "B", {}),
        ("SELECT 1 SETTINGS a = 1", "SELECT 1", "", {"a": "1"}),
        ("SELECT 1 FORMAT CSV SETTINGS a = 1", "SELECT 1", "CSV", {"a": "1"}),
        ("SELECT 1 SETTINGS a = 1 FORMAT CSV SETTINGS b = 2", "SELECT 1", "CSV", {"a": "1", "b": "2"}),
        (
            r"SELECT 1 SETTINGS a = 'x\'y', b = 'it\\s', c = -2, d = 1.5, e = '', f = 'k = 1 , l = 2'",
            "SELECT 1",
            "",
            {"a": "x'y", "b": "it\\s", "c": "-2", "d": "1.5", "e": "", "f": "k = 1 , l = 2"},
        ),
        ("SELECT 1 FORMAT CSV SETTINGS a = -1", "SELECT 1", "CSV", {"a": "-1"}),
        ("SELECT (1 SETTINGS a = 1)", "SELECT (1 SETTINGS a = 1)", "", {}),
        ("SETTINGS", "SETTINGS", "", {}),
    ],
)  # fmt: skip
def test_format_and_settings_come_off_the_end(text, select, fmt, settings):
    taken = reading.take_apart(text)
    assert (taken.select, taken.format, taken.settings) == (select, fmt, settings)
    assert taken.text == text
    assert [token.text for token in taken.found] == [t.text for t in rendering.tokens(select)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("SELECT 1 SETTINGS a = 1 UNION ALL SELECT 2", AT_THE_END),
        ("SELECT 1 SETTINGS a = map('b', 1)", AT_THE_END),
        ("SELECT 1 SETTINGS a = {'b': 1}", AT_THE_END),
        ("SELECT 1 SETTINGS a = 1,", AT_THE_END),
        ("SELECT 1 SETTINGS a = 1, b = 2,", AT_THE_END),
        ("SELECT 1 SETTINGS a = 1, b = 'x,',", AT_THE_END),
        ("SELECT 1 SETTINGS a", AT_THE_END),
        ("SELECT 1 SETTINGS a = 'x\\n'", AT_THE_END),
        ("SELECT 1 INTO OUTFILE 'x'", "INTO OUTFILE is not allowed: the rows are the answer"),
        ("SELECT (1 INTO OUTFILE 'x')", "INTO OUTFILE is not allowed: the rows are the answer"),
    ],
)
def test_what_cannot_come_off_is_refused_in_words(text, words):
    with denied(words):
        reading.take_apart(text)


@pytest.mark.parametrize(
    "text", ["SELECT OUTFILE AS INTO", "SELECT INTO, OUTFILE", "SELECT 'INTO OUTFILE'"]
)
def test_words_apart_write_no_file(text):
    assert reading.take_apart(text).select == text


@pytest.mark.parametrize(
    ("select", "expected"),
    [
        ("SELECT name FROM system.tables", "SELECT name FROM mast_catalogue.tables"),
        ("SELECT name FROM `system`.`tables`", "SELECT name FROM mast_catalogue.tables"),
        ('SELECT name FROM "SYSTEM".Tables', "SELECT name FROM mast_catalogue.tables"),
        ("SELECT 1 FROM information_schema.columns", "SELECT 1 FROM mast_catalogue.information_schema_columns"),
        ("SELECT 1 FROM INFORMATION_SCHEMA.TABLES", "SELECT 1 FROM mast_catalogue.information_schema_tables"),
        ("SELECT 1 FROM system.users", "SELECT 1 FROM system.users"),
        ("SELECT 'system.tables'", "SELECT 'system.tables'"),
        ("SELECT system", "SELECT system"),
        ("SELECT system, tables", "SELECT system, tables"),
        ("SELECT currentUser()", "SELECT 'default' AS `currentUser()`"),
        ("SELECT user(), 1", "SELECT 'default' AS `user()`, 1"),
        ("SELECT user() FROM t", "SELECT 'default' AS `user()` FROM t"),
        ("SELECT user() AS u, displayName()", "SELECT 'default' AS u, 'mast-trace' AS `displayName()`"),
        ("SELECT upper(user())", "SELECT upper('default')"),
        ("SELECT revision()", "SELECT toUInt32(54453) AS `revision()`"),
        ("SELECT 1, user() FROM t", "SELECT 1, 'default' AS `user()` FROM t"),
        ("SELECT user() u", "SELECT 'default' u"),
        (
            "SELECT 1 FROM system.one, system.numbers",
            "SELECT 1 FROM mast_catalogue.one, mast_catalogue.numbers",
        ),
        ("SELECT user(1)", "SELECT user(1)"),
        ("SELECT `user`()", "SELECT `user`()"),
        ("SELECT user", "SELECT user"),
    ],
)  # fmt: skip
def test_what_stands_for_system_tables_and_questions_of_clients(select, expected):
    assert reading.filled(None, rendering.tokens(select), select, {}) == expected


def places(text):
    return [token for token in rendering.tokens(text) if token.kind == "parameter"]


def test_plain_values_stand_in_the_place_of_parameters():
    """Values with escapes in them are read by the engine (test_endpoint_gate.py)."""
    text = "SELECT {n:UInt8}, {a:String}, {l:Array(String)}, {n:UInt8}"
    found = reading.literals(None, places(text), {"a": "x y", "n": "7", "l": "[1]", "more": ""})
    assert rendering.replaced(text, found) == (
        "SELECT _CAST('7', 'UInt8'), 'x y', _CAST('[1]', 'Array(String)'), _CAST('7', 'UInt8')"
    )


def test_a_type_may_hold_a_colon():
    found = reading.literals(None, places("SELECT {a:Enum8('x:y' = 1)}"), {"a": "x:y"})
    assert [text for _, text in found] == [r"_CAST('x:y', 'Enum8(\'x:y\' = 1)')"]


def test_a_parameter_that_is_missing_or_stands_for_a_name_is_refused():
    with pytest.raises(
        QueryError, match=r"^Code: 456\. DB::Exception: Substitution `a` is not set"
    ):
        reading.literals(None, places("SELECT {a:String}"), {"b": "1"})
    for kind in ("Identifier", "identifier"):
        with pytest.raises(QueryError, match=r"may not stand for the name .*\{a:Identifier\}"):
            reading.literals(None, places(f"SELECT {{a:{kind}}}"), {"a": "1"})


class TestTokens:
    """Parts of a rendered text."""

    def test_kinds_and_depths(self):
        text = "SELECT a.`b c`, f('x\\'(y', [1.5]) = {p:Array(UInt8)} -- \"q\""
        found = rendering.tokens(text)
        assert [(t.kind, t.text, t.depth) for t in found] == [
            ("word", "SELECT", 0),
            ("word", "a", 0),
            ("number", ".", 0),
            ("name", "`b c`", 0),
            ("sign", ",", 0),
            ("word", "f", 0),
            ("open", "(", 0),
            ("string", "'x\\'(y'", 1),
            ("sign", ",", 1),
            ("open", "[", 1),
            ("number", "1.5", 2),
            ("close", "]", 1),
            ("close", ")", 0),
            ("sign", "=", 0),
            ("parameter", "{p:Array(UInt8)}", 0),
            ("sign", "-", 0),
            ("sign", "-", 0),
            ("name", '"q"', 0),
        ]
        assert all(text[t.start : t.end] == t.text for t in found)

    @pytest.mark.parametrize(
        ("text", "name", "word"),
        [
            ("a", "a", "a"),
            ("`a b`", "a b", ""),
            ('"a"', "a", ""),
            ("`a``b`", "a`b", ""),
            ("`a\\`b`", "a`b", ""),
            ("'a'", "", ""),
            ("7", "", ""),
        ],
    )
    def test_names(self, text, name, word):
        (token,) = rendering.tokens(text)
        assert (token.name, token.word) == (name, word)

    def test_quotes_come_out_as_they_went_in(self):
        for name in ("a", "a b", "a`b", "a\\b", "`", "\\`"):
            (token,) = rendering.tokens(rendering.quoted(name))
            assert token.name == name

    def test_bytes_are_quoted_one_by_one(self):
        assert rendering.literal_of_bytes(b" az~") == "' az~'"
        assert rendering.literal_of_bytes(b"'\\\x1f\x7f\xff") == r"'\x27\x5C\x1F\x7F\xFF'"

    def test_what_is_replaced_keeps_what_is_between(self):
        text = "a + b + c"
        first, _, second, *_ = rendering.tokens(text)
        assert rendering.replaced(text, [(first, "x"), (second, "")]) == "x +  + c"
        assert rendering.replaced(text, []) == text


TREE = """SelectWithUnionQuery (children 1)
 ExpressionList (children 2)
  Function f (alias g h) (children 1)
   ExpressionList (children 1)
    Identifier a.b c (alias d)
  Literal UInt64_1 (alias e)

"""


class TestTree:
    """Trees as ``EXPLAIN AST`` prints them."""

    def test_names_and_aliases(self):
        root = read_tree(TREE)
        assert [(n.kind, n.name, n.alias) for n in root.walk()] == [
            ("SelectWithUnionQuery", "", ""),
            ("ExpressionList", "", ""),
            ("Function", "f", "g h"),
            ("ExpressionList", "", ""),
            ("Identifier", "a.b c", "d"),
            ("Literal", "", "e"),
        ]
        assert root.first("ExpressionList", "Literal").label == "Literal UInt64_1 (alias e)"
        assert root.first("ExpressionList", "Function").label == "Function f (alias g h)"
        assert root.first() is root
        assert read_tree(TREE.replace("\n  Literal", "\n\n  Literal")) == root

    @pytest.mark.parametrize(
        "text",
        [
            "",
            " A",
            "A\nB",
            "A (children 1)",
            "A (children 2)\n B",
            "A\n B",
            "A (children 1)\n B\n C",
            "A (children 1)\n  B",
            "A (children 1)\n B (children 1)\n C",
            "Function",
            "Function f g",
            "Identifier",
            "TableIdentifier",
            "7",
            "'x'",
        ],
    )
    def test_what_does_not_add_up_is_refused(self, text):
        with denied(UNREADABLE):
            read_tree(text)

    def test_a_way_that_is_not_there_is_refused(self):
        with denied(UNREADABLE):
            read_tree(TREE).first("ExpressionList", "Subquery")


def tree_of(*lists):
    """The tree of a SELECT with these lists of expressions."""
    lines = ["SelectWithUnionQuery (children 1)", " ExpressionList (children 1)"]
    lines.append(f"  SelectQuery (children {len(lists)})")
    for each in lists:
        lines += [f"   ExpressionList (children {len(each)})", *(f"    {line}" for line in each)]
    return read_tree("\n".join(lines))


@pytest.mark.parametrize(
    ("select", "columns", "expected"),
    [
        ("SELECT (SELECT 1), a", [True, False], "SELECT (SELECT 1) AS `(SELECT 1)`, a"),
        ("SELECT a, (SELECT 1) FROM t", [False, True], "SELECT a, (SELECT 1) AS `(SELECT 1)` FROM t"),
        ("SELECT DISTINCT (SELECT 1)", [True], "SELECT DISTINCT (SELECT 1) AS `(SELECT 1)`"),
        ("SELECT a IN (SELECT 1) FROM t", [True], "SELECT a IN (SELECT 1) AS `a IN (SELECT 1)` FROM t"),
        ("SELECT a, b", [False, False], "SELECT a, b"),
        ("SELECT (SELECT 1), a, b", [True, False], "SELECT (SELECT 1), a, b"),
        ("(SELECT (SELECT 1))", [True], "(SELECT (SELECT 1))"),
    ],
)  # fmt: skip
def test_columns_that_a_subquery_gives_are_named(select, columns, expected):
    listed = ["Subquery" if of_query else "Identifier a" for of_query in columns]
    assert reading.with_names(select, tree_of(listed)) == expected


def test_columns_are_those_of_the_first_list():
    select = "SELECT (SELECT 3) FROM t GROUP BY a"
    expected = "SELECT (SELECT 3) AS `(SELECT 3)` FROM t GROUP BY a"
    assert reading.with_names(select, tree_of(["Subquery"], ["Identifier a"])) == expected


def test_columns_behind_a_with_are_named():
    tree = tree_of(["Literal 1 (alias a)", "Literal 2 (alias b)"], ["Subquery", "Identifier a"])
    select = "WITH 1 AS a, 2 AS b SELECT (SELECT 3), a FROM t"
    expected = "WITH 1 AS a, 2 AS b SELECT (SELECT 3) AS `(SELECT 3)`, a FROM t"
    assert reading.with_names(select, tree) == expected
