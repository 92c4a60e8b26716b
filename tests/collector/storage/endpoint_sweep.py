"""A world with two projects and secrets around it, and all that a reader might try in it."""

from __future__ import annotations

import json
import os
import socket
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from mast_trace_collector.clickhouse_http.errors import QueryError
from mast_trace_collector.clickhouse_http.runner import Rights
from mast_trace_collector.clickhouse_http.statement import Statement
from mast_trace_collector.storage.expressions import literal

if TYPE_CHECKING:
    from mast_trace_collector.clickhouse_http.runner import Runner
    from mast_trace_collector.storage import Store

OURS, THEIRS = "ours", "theirs-canary"
THEIR_ROWS = 61_843
DENIED = 497
secret_variable = [{"secret": "canary-of-a-variable"}]
"""What `python(...)` would find."""


@dataclass
class Answer:
    """What came back: a body, or an error."""

    body: str
    code: int = 0


@dataclass
class World:
    """The engine with the data of two projects.

    Attributes:
        store: the engine.
        runner: what answers readers.
        folder: of the engine's files.
        secret_file: a file in that folder.
        secrets: what no reader may get, besides what is another project's.
        theirs: what the reader of one project may not get.
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
        """What the answer holds that it must not."""
        forbidden = self.secrets if project is None else [*self.secrets, *self.theirs]
        return [text for text in forbidden if text in answer.body]


def make_world(store: Store, runner: Runner) -> World:
    """Store a few rows of ours and many of theirs in every table; put secrets around them."""
    canary = f"canary-{uuid.uuid4().hex}"
    folder = Path(store.embedded_path)
    file = folder.parent / "secret-canary.txt"
    file.write_text("canary-in-a-file\n")
    os.environ["MAST_TRACE_SECRET_CANARY"] = "canary-in-the-environment"
    for table in base_tables(store):
        _fill(store, table, OURS, 3, "mine")
        _fill(store, table, THEIRS, THEIR_ROWS if table == "otel_traces" else 7, canary)
    secrets = [
        "canary-in-a-file",
        "canary-in-the-environment",
        "canary-of-a-variable",
        "root:x:0:0:root",
    ]
    secrets += [str(folder)]
    if len(socket.gethostname()) > 4:
        secrets.append(socket.gethostname())
    theirs = [canary, THEIRS, str(THEIR_ROWS), str(THEIR_ROWS + 3)]
    return World(store, runner, folder, file, secrets, theirs)


def base_tables(store: Store) -> list[str]:
    """Tables of runs that hold rows of their own."""
    rows = store.query(
        "SELECT table FROM system.columns JOIN system.tables ON system.columns.table = system.tables.name "
        "AND system.columns.database = system.tables.database WHERE database = currentDatabase() "
        "AND system.columns.name = 'TraceId' AND engine LIKE '%MergeTree%' ORDER BY table"
    )
    return [row["table"] for row in rows]


def _fill(store: Store, table: str, project: str, rows: int, text: str) -> None:
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


def ways_to_call(name: str, world: World) -> list[str]:
    """A function in every place of a statement, called and handed over by name."""
    path = literal(str(world.secret_file))
    call = f"{name}({path})"
    return [
        f"SELECT {call}",
        f"SELECT {name}()",
        f"SELECT `{name}`({path})",
        f"SELECT {name}(ServiceName) FROM otel_traces",
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
        f"SELECT 1 FROM otel_traces PREWHERE toString({name}(ServiceName)) != 'x'",
        f"SELECT * FROM view(SELECT {call})",
        f"SELECT * APPLY {name} FROM (SELECT {path} AS p)",
        f"SELECT * APPLY(x -> {name}(x)) FROM (SELECT {path} AS p)",
        f"SELECT * REPLACE({name}(p) AS p) FROM (SELECT {path} AS p)",
        f"SELECT 1 FROM otel_traces ORDER BY {name}(ServiceName) LIMIT 1",
        f"SELECT sum(1) OVER (ORDER BY {call})",
        f"SELECT 1 LIMIT {call}",
        f"SELECT 1 SETTINGS additional_result_filter = {literal(call)}",
        "SELECT 1 FROM otel_traces SETTINGS additional_table_filters = {'t': {}}".replace(
            "{}", literal(call)
        ),
        f"SELECT {name}If({path}, 1)",
        f"SELECT {name}OrDefaultArray([{path}])",
        f"DESCRIBE TABLE (SELECT {call} AS v)",
        f"EXPLAIN AST SELECT {call}",
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
