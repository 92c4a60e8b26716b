"""A world with two projects and secrets around it, and all that a reader might try in it."""

from __future__ import annotations

import json
import os
import re
import socket
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from mast_trace_collector.clickhouse_http.errors import QueryError
from mast_trace_collector.clickhouse_http.runner import Rights
from mast_trace_collector.clickhouse_http.statement import Statement
from mast_trace_collector.storage.readers import CATALOGUE
from mast_trace_collector.storage.span_sql import literal

if TYPE_CHECKING:
    from mast_trace_collector.clickhouse_http.runner import Runner
    from mast_trace_collector.storage import Store

OURS, THEIRS = "ours", "theirs-canary"
THEIR_ROWS = 12_347
DENIED = 497
ENDLESS = {"numbers", "numbers_mt", "primes", "zeros", "zeros_mt"}
"""Tables that count for ever; nothing in them was sent by anybody."""
secret_variable = [{"secret": "canary-of-a-variable"}]
"""The interpreter that `python(...)` would find."""


@dataclass
class Answer:
    """The answer: a body, or an error."""

    body: str
    code: int = 0


@dataclass
class World:
    """The engine with the data of two projects.

    Attributes:
        store: the engine.
        runner: runs statements of readers.
        folder: of the engine's files.
        secret_file: a file in that folder.
        secrets: texts that no reader may get, besides those of another project.
        theirs: texts that the reader of one project may not get.
    """

    store: Store
    runner: Runner
    folder: Path
    secret_file: Path
    secrets: list[str] = field(default_factory=list)
    theirs: list[str] = field(default_factory=list)

    def ask(self, sql: str, *, project: str | None = OURS, **options: object) -> Answer:
        """Ask as the endpoint does once it knows who asks."""
        statement = Statement(sql=sql, **{"default_format": "TSV", **options})
        try:
            result = self.runner.run(statement, Rights(project=project))
        except QueryError as error:
            return Answer(error.text, error.code)
        return Answer(result.body.decode("utf-8", "replace"))

    def leaks(self, answer: Answer, project: str | None = OURS) -> list[str]:
        """List the forbidden texts that the answer holds; a number counts alone, not within another."""
        forbidden = self.secrets if project is None else [*self.secrets, *self.theirs]
        return [text for text in forbidden if _stands(text, answer.body)]


def _stands(text: str, body: str) -> bool:
    """Tell whether a body holds a text; five digits within the twenty of rand64() are no number of rows."""
    if not text.isdigit():
        return text in body
    return bool(re.search(rf"(?<![\d.]){text}(?!\d)", body))


def make_world(store: Store, runner: Runner, their_rows: int = THEIR_ROWS) -> World:
    """Store a few rows of ours and many of theirs in every table; put secrets around them."""
    canary = f"canary-{uuid.uuid4().hex}"
    folder = Path(store.embedded_path)
    file = folder.parent / "secret-canary.txt"
    file.write_text("canary-in-a-file\n")
    os.environ["SECRET_CANARY"] = "canary-in-the-environment"
    for table in base_tables(store):
        fill(store, table, OURS, 3, "mine")
        fill(store, table, THEIRS, their_rows if table == "otel_traces" else 7, canary)
    secrets = ["canary-in-a-file", "canary-in-the-environment", "canary-of-a-variable"]
    secrets += ["root:x:0:0:root", str(folder)]
    if len(socket.gethostname()) > 4:
        secrets.append(socket.gethostname())
    theirs = [canary, THEIRS, str(their_rows), str(their_rows + 3)]
    return World(store, runner, folder, file, secrets, theirs)


def base_tables(store: Store) -> list[str]:
    """Tables of runs that hold rows of their own."""
    rows = store.query(
        "SELECT table FROM system.columns JOIN system.tables ON system.columns.table = system.tables.name "
        "AND system.columns.database = system.tables.database WHERE database = currentDatabase() "
        "AND system.columns.name = 'TraceId' AND engine LIKE '%MergeTree%' ORDER BY table"
    )
    return [row["table"] for row in rows]


def fill(store: Store, table: str, project: str, rows: int, text: str) -> None:
    columns = store.query(
        "SELECT name, type FROM system.columns WHERE database = currentDatabase() AND table = {t:String} "
        "AND default_kind IN ('', 'DEFAULT')",
        {"t": table},
    )
    values = {}
    for column in columns:
        name, kind = column["name"], column["type"]
        if name == "Project":
            values[name] = literal(project)
        elif name == "TraceId":
            values[name] = f"concat({literal(text)}, '-', toString(number))"
        elif name == "ResourceAttributes":
            values[name] = f"map('mast.project', {literal(project)})"
        elif kind in {"String", "LowCardinality(String)"}:
            values[name] = f"concat({literal(text)}, '-', toString(number % 5))"
    sql = f"INSERT INTO {table} ({', '.join(values)}) SELECT {', '.join(values.values())}"
    # All in one part, so that they share granules and dictionaries.
    store.command(f"SYSTEM STOP MERGES {store.database}.{table}")
    store.command(f"{sql} FROM numbers({rows})")
    store.command(f"SYSTEM START MERGES {store.database}.{table}")
    store.command(f"OPTIMIZE TABLE {table} FINAL")


def functions(store: Store) -> list[dict[str, object]]:
    """All that the engine knows."""
    return store.query("SELECT name, is_aggregate, alias_to FROM system.functions ORDER BY name")


def ways_to_call(name: str, world: World) -> list[tuple[str, dict[str, object]]]:
    """A function in every place of a statement, called and handed over by name; with options."""
    path = literal(str(world.secret_file))
    call = f"{name}({path})"
    from_traces = "FROM otel_traces"
    plain = [
        f"SELECT {call}",
        f"SELECT {name}()",
        f"SELECT `{name}`({path})",
        f"SELECT {name}(ServiceName) {from_traces}",
        f"SELECT arrayMap({name}, [{path}])",
        f"SELECT arrayMap(`{name}`, [{path}])",
        f"SELECT arrayFilter({name}, [{path}])",
        f"SELECT arrayExists({name}, [{path}])",
        f"SELECT arrayFold({name}, [{path}], '')",
        f"SELECT mapApply({name}, map('a', {path}))",
        f"SELECT arrayMap(x -> {name}(x), [{path}])",
        f"WITH {name} AS g SELECT arrayMap(g, [{path}])",
        f"WITH (x -> {name}(x)) AS g SELECT g({path})",
        f"WITH c AS (SELECT {call} AS v) SELECT v FROM c",
        f"SELECT v FROM (SELECT {call} AS v)",
        f"SELECT 1 WHERE '' = (SELECT toString({call}))",
        f"SELECT 1 {from_traces} PREWHERE toString({name}(ServiceName)) != 'x'",
        f"SELECT 1 {from_traces} PREWHERE arrayExists({name}, [{path}])",
        f"SELECT 1 {from_traces} WHERE ServiceName IN ({call})",
        f"SELECT count() {from_traces} GROUP BY {name}(ServiceName)",
        f"SELECT ServiceName {from_traces} GROUP BY ServiceName HAVING toString({name}(ServiceName)) != 'x'",
        f"SELECT sum(1) OVER () AS n {from_traces} QUALIFY toString({name}(ServiceName)) != 'x'",
        f"SELECT a {from_traces} ARRAY JOIN [{call}] AS a",
        f"SELECT 1 {from_traces} AS l JOIN otel_traces AS r ON l.SpanId = {name}(r.SpanId)",
        f"SELECT 1 {from_traces} LIMIT 1 BY {name}(ServiceName)",
        f"SELECT 1 AS a, {path} AS b ORDER BY a WITH FILL FROM 1 TO 3 INTERPOLATE (b AS {name}(b))",
        f"SELECT * FROM view(SELECT {call})",
        f"SELECT * FROM view(SELECT arrayMap({name}, [{path}]))",
        # Fewer than there are rows of theirs: their number would be among those counted.
        f"SELECT * FROM numbers(toUInt64({call}) % 1000)",
        f"SELECT * FROM values('a String', {call})",
        f"SELECT * APPLY {name} FROM (SELECT {path} AS p)",
        f"SELECT * APPLY(x -> {name}(x)) FROM (SELECT {path} AS p)",
        f"SELECT * REPLACE({name}(p) AS p) FROM (SELECT {path} AS p)",
        f"SELECT 1 {from_traces} ORDER BY {name}(ServiceName) LIMIT 1",
        f"SELECT sum(1) OVER (ORDER BY {call})",
        f"SELECT 1 LIMIT {call}",
        f"SELECT 1 SETTINGS additional_result_filter = {literal(call)}",
        f"SELECT 1 {from_traces} SETTINGS additional_table_filters = {{'t': {literal(call)}}}",
        f"SELECT * FROM mast_runs(p = {call})",
        f"SELECT * FROM mast_readers.q(on = {call})",
        f"CREATE VIEW v AS SELECT {call} AS a WHERE 1 = {{p:UInt8}}",
        f"SELECT {name}If({path}, 1)",
        f"SELECT {name}OrDefaultArray([{path}])",
        f"DESCRIBE TABLE (SELECT {call} AS v)",
        f"EXPLAIN AST SELECT {call}",
    ]
    return [
        *((sql, {}) for sql in plain),
        ("SELECT 1", {"settings": {"additional_result_filter": call}}),
        (f"SELECT arrayMap({{p:Identifier}}, [{path}])", {"params": {"p": name}}),
        (f"SELECT {name}({{p:String}})", {"params": {"p": str(world.secret_file)}}),
        (f"SELECT arrayMap({name}, {{p:Array(String)}})", {"params": {"p": f"[{path}]"}}),
    ]


def columns(store: Store) -> list[dict[str, str]]:
    """Every column of every table that the engine has and that comes to an end."""
    return store.query(
        "SELECT database, table, name AS column FROM system.columns "
        "WHERE NOT (database IN {own:Array(String)} AND table IN {endless:Array(String)}) ORDER BY ALL",
        {"own": ["system", CATALOGUE], "endless": sorted(ENDLESS)},
    )


def ways_to_read(database: str, table: str, column: str) -> list[str]:
    """A column in every place where one may stand."""
    of, name = f"`{database}`.`{table}`", f"`{column}`"
    return [
        f"SELECT DISTINCT {name} FROM {of} LIMIT 300",
        f"SELECT any({name}), max({name}), topK(9)({name}) FROM {of}",
        f"SELECT arrayMap(x -> x, groupUniqArray(300)({name})) FROM {of}",
        f"WITH c AS (SELECT {name} AS v FROM {of}) SELECT DISTINCT v FROM c LIMIT 300",
        f"SELECT DISTINCT j.{name} FROM (SELECT 1) AS a CROSS JOIN {of} AS j LIMIT 300",
        f"SELECT * FROM view(SELECT DISTINCT {name} FROM {of} LIMIT 300)",
        f"SELECT * FROM {of} PREWHERE isNotNull({name}) LIMIT 300",
        f"SELECT toString({name}) AS v, count() FROM {of} GROUP BY v WITH TOTALS LIMIT 300",
        f"SELECT COLUMNS('^{column}$') FROM {of} LIMIT 300",
        f"SELECT min({name}) FROM merge('{database}', '^{table}$')",
    ]


def arguments_of_ours() -> list[str]:
    """Arguments that hold nothing but what is ours, for functions that may be called."""
    return [
        "ServiceName",
        "Project",
        "TraceId, Project",
        "ResourceAttributes",
        "SpanName, 1",
        "Timestamp",
    ]


def as_json(answer: Answer) -> list[dict[str, object]]:
    """The rows of an answer in JSONEachRow."""
    return [json.loads(line) for line in answer.body.splitlines()]
