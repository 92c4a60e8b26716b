"""Plans the execution of a reader's statement, after it was checked; rewrites SHOW and EXISTS as a SELECT.

The gate relies on it that the tree of a statement shows every name in it, which is proved at the start.

Engines before 26.7 leave out the ORDER BY and PARTITION BY of a window. Others may leave out
something else. So at the start one statement is parsed that calls a function, and passes it by
name, in each place where a SELECT may have one; the tree has to show all of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from mast_trace.exceptions import ConfigurationError
from mast_trace_collector.clickhouse_http import reading
from mast_trace_collector.clickhouse_http import rendering as native
from mast_trace_collector.clickhouse_http.errors import QueryError, denied
from mast_trace_collector.clickhouse_http.gate import Gate
from mast_trace_collector.clickhouse_http.rendering import Node, Token, read_tree, tokens
from mast_trace_collector.storage.readers import CATALOGUE
from mast_trace_collector.storage.span_sql import literal

if TYPE_CHECKING:
    from mast_trace_collector.clickhouse_http.confinement import Confinement
    from mast_trace_collector.clickhouse_http.engine import Handle
    from mast_trace_collector.clickhouse_http.statement import Statement

_SHOWING_KINDS = frozenset({"SHOW", "EXISTS"})
_LIKE = re.compile(r"(NOT )?(I?LIKE) ('(?:[^'\\]|\\.)*')")
_LIMIT = re.compile(r"LIMIT (\d+)")
_NAME = re.compile(r"(?P<database>\w+)(?: \. (?P<table>\w+))?")
_SHOWN = "SHOW TABLES, SHOW DATABASES, SHOW CREATE TABLE, DESCRIBE TABLE, EXISTS TABLE and EXISTS DATABASE are"

_PLACES: Final = """
WITH ? AS a, c AS (SELECT ?), (x -> ?) AS f
SELECT ? AS b, arrayMap(hostName, [?]), arrayMap(x -> ?, [1]), [?], (?, 1),
    sum(?) FILTER (WHERE ?), quantile(?)(1), (SELECT ?), EXISTS (SELECT ?),
    sum(1) OVER (PARTITION BY ? ORDER BY ? ROWS BETWEEN ? PRECEDING AND ? FOLLOWING),
    CASE ? WHEN ? THEN ? ELSE ? END, CAST(?, 'String'), ?::String,
    b[?], INTERVAL ? DAY, * REPLACE (? AS r), COLUMNS('r') REPLACE (? AS r)
FROM view(SELECT ?) AS t LEFT JOIN numbers(?) AS j ON ? = ?
    INNER JOIN (SELECT ? AS k) AS s USING (k) ARRAY JOIN [?] AS e
PREWHERE ? WHERE ? IN (?) AND a IN (SELECT ?) GROUP BY ? HAVING ?
WINDOW w AS (PARTITION BY ? ORDER BY ?) QUALIFY ?
ORDER BY ? WITH FILL FROM ? TO ? STEP ? INTERPOLATE (b AS ?)
LIMIT ? OFFSET ? BY ? LIMIT ?, ?
UNION ALL SELECT DISTINCT ON (?) ? FROM numbers(1)
UNION ALL SELECT 1 GROUP BY GROUPING SETS ((?), (?))
EXCEPT SELECT ? ORDER BY ?
"""
"""A question mark marks a place where a call may stand."""
_MAX_TEXT = 256 * 1024
_KINDS = "SELECT, SHOW TABLES, DESCRIBE TABLE, EXISTS TABLE and EXPLAIN AST are"


def shows(text: str) -> bool:
    """Return whether a rendered statement lists objects of the database."""
    return text.split(None, 1)[0] in _SHOWING_KINDS


def as_select(text: str, database: str) -> str:
    """Return the SELECT with the rows of a ``SHOW`` or ``EXISTS``.

    Args:
        text: the statement as the engine renders it.
        database: used where none is named.

    Raises:
        QueryError: readers may not see it.
    """
    found = tokens(text)
    words = [token.word for token in found]
    match words[:3]:
        case ["SHOW", "DATABASES", *_]:
            rest, condition = found[2:], "1"
            table, column = "databases", "name"
        case ["SHOW", "TABLES", *_] | ["SHOW", "FULL", "TABLES"]:
            full = words[1] == "FULL"
            rest = found[3 if full else 2 :]
            if rest and rest[0].word in {"FROM", "IN"}:
                database, rest = rest[1].name, rest[2:]
            condition = f"database = {literal(database)}"
            kind = "if(engine = 'View', 'VIEW', 'BASE TABLE') AS table_type"
            table, column = "tables", f"name, {kind}" if full else "name"
        case ["SHOW", "CREATE", "TABLE" | "VIEW"]:
            condition, rest = _named(found[3:], database), []
            table, column = "tables", "create_table_query AS statement"
        case ["EXISTS", "TABLE" | "VIEW", *_]:
            condition, rest = _named(found[2:], database), []
            table, column = "tables", "toUInt8(count() > 0) AS result"
        case ["EXISTS", "DATABASE", _]:
            condition, rest = f"name = {literal(found[2].name)}", []
            table, column = "databases", "toUInt8(count() > 0) AS result"
        case _:
            raise denied(f"{' '.join(words[:2])} is not allowed; {_SHOWN}")
    order = "" if "count()" in column else " ORDER BY name"
    end = _filtered(rest)
    return f"SELECT {column} FROM {CATALOGUE}.{table} WHERE {condition}{end[0]}{order}{end[1]}"


def _named(found: Sequence[Token], database: str) -> str:
    """The condition that a table is the one of this name."""
    names = [token.name for token in found]
    match = _NAME.fullmatch(" ".join(name or "." for name in names))
    if match is None:
        raise denied(f"the name of the table cannot be read; {_SHOWN}")
    table = match["table"] or match["database"]
    schema = match["database"] if match["table"] else database
    return f"database = {literal(schema)} AND name = {literal(table)}"


def _filtered(rest: Sequence[Token]) -> tuple[str, str]:
    """The condition and the limit of ``[NOT] LIKE 'x' LIMIT n``."""
    condition = limit = ""
    text = " ".join(token.text for token in rest)
    if match := _LIKE.match(text):
        condition = f" AND name {match[1] or ''}{match[2]} {match[3]}"
        text = text[match.end() :].strip()
    if match := _LIMIT.match(re.sub(r"(?<=\d) (?=\d)", "", text)):
        limit, text = f" LIMIT {match[1]}", ""
    if text:
        raise denied(f"{text.split(None, 1)[0]} is not allowed here; {_SHOWN}")
    return condition, limit


_BEFORE, *_AFTER = _PLACES.split("?")
EVERYWHERE: Final = _BEFORE + "".join(
    f"hostName({number}){text}" for number, text in enumerate(_AFTER)
)
"""A SELECT that is only parsed; its calls are numbered."""


def prove(tree: Node) -> None:
    """Check that the tree of `EVERYWHERE` shows every call in it.

    Raises:
        ConfigurationError: a call is missing, so that names could pass unseen.
    """
    found = [node for node in tree.walk() if node.name == "hostName"]
    called = {node.children[0].children[0].label for node in found if node.kind == "Function"}
    missing = [n for n in range(len(_AFTER)) if f"Literal UInt64_{n}" not in called]
    if missing or not any(node.kind == "Identifier" for node in found):
        raise ConfigurationError(
            "this version of the embedded engine does not show the endpoint all that a statement holds "
            f"(calls {missing} are not seen): install chdb 4.4 or later, or use a ClickHouse server "
            "(MAST_TRACE_DATABASE_URL)"
        )


_DESCRIBE, _TREE = "DESCRIBE TABLE ", "EXPLAIN AST "


@dataclass(frozen=True)
class StatementPlan:
    """The plan of a statement.

    Attributes:
        select: the SELECT, or the other statement that follows ``before``.
        format: of the rows.
        settings: for this statement.
        database: of tables that are named without one.
        confined: whether the SELECT is read through a view, as the reader's own user.
        before: the text before it.
        after: the text after it.
        is_hello: whether it is the first query of clickhouse-go.
    """

    select: str
    format: str
    settings: Mapping[str, str]
    database: str
    confined: bool = True
    before: str = ""
    after: str = ""
    is_hello: bool = False


class Planner:
    """Reads, checks and rewrites statements of readers.

    Args:
        handle: a connection to the engine.
        confinement: runs them.
        database: the one with our tables.

    Raises:
        ConfigurationError: the engine's trees do not show every name of a statement.
    """

    def __init__(self, handle: Handle, confinement: Confinement, database: str) -> None:
        prove(confinement.tree(handle, EVERYWHERE))
        self._gate = Gate(handle, database)
        self._confinement = confinement
        self._database = database

    def plan(self, handle: Handle, statement: Statement) -> StatementPlan:
        """Return the plan of a statement.

        Raises:
            QueryError: it cannot be parsed, or a reader must not run it.
        """
        current = self._current(statement.database)
        handle.use(current)
        if len(statement.sql) > _MAX_TEXT:
            raise QueryError(62, f"the query is longer than {_MAX_TEXT} characters", "SYNTAX_ERROR")
        rendered = handle.canonical(statement.sql)
        taken = reading.take_apart(rendered)
        settings = {**statement.settings, **taken.settings}
        for name in settings:
            self._gate.check_setting(name)
        wanted = taken.format or statement.default_format
        self._gate.check_format(wanted)
        plan = StatementPlan(
            taken.select, wanted, settings, current, is_hello=rendered == native.HELLO
        )
        return self._checked(handle, plan, statement)

    def _checked(self, handle: Handle, plan: StatementPlan, statement: Statement) -> StatementPlan:
        text = plan.select
        if shows(text):
            current = plan.database if plan.database != CATALOGUE else "system"
            return self._select(handle, plan, as_select(text, current))
        if text.startswith(_DESCRIBE):
            return self._describe(handle, plan, self._filled(handle, text, statement))
        if text.startswith(_TREE):
            inner = self._filled(handle, text.removeprefix(_TREE), statement)
            return replace(self._select(handle, plan, inner), before=_TREE, confined=False)
        first = tokens(text)[0]
        if first.word not in {"SELECT", "WITH"} and first.text != "(":
            raise denied(f"{' '.join(text.split()[:2])} is not allowed; {_KINDS}")
        return self._select(handle, plan, self._filled(handle, text, statement))

    def _filled(self, handle: Handle, text: str, statement: Statement) -> str:
        return reading.filled(handle, tokens(text), text, statement.params)

    def _select(self, handle: Handle, plan: StatementPlan, text: str) -> StatementPlan:
        """Check a SELECT in exactly the form in which it will be run."""
        tree = self._confinement.tree(handle, text)
        named = reading.with_names(text, tree)
        if named != text:
            tree = self._confinement.tree(handle, named)
        self._gate.check(handle, tree)
        return replace(plan, select=named)

    def _describe(self, handle: Handle, plan: StatementPlan, text: str) -> StatementPlan:
        tree = read_tree(handle.text(_TREE + text))
        what = text.removeprefix(_DESCRIBE)
        source = tree.first("TableExpression").children[0]
        if source.kind == "TableIdentifier":
            of = f"{CATALOGUE}." if plan.database == CATALOGUE and "." not in source.name else ""
            database, table = self._gate.check_table(of + source.name)
            return replace(plan, select=f"{database}.{table}", before=_DESCRIBE, confined=False)
        select = f"SELECT * FROM {what}" if source.kind == "Function" else what
        return replace(self._select(handle, plan, select), before=f"{_DESCRIBE}(", after=")")

    def _current(self, database: str) -> str:
        if database in {"", "default", self._database}:
            return self._database
        if database == "system":
            return CATALOGUE
        raise denied(
            f"the database {database} is not allowed; {self._database} and system are, and tables of "
            "information_schema by their whole name"
        )
