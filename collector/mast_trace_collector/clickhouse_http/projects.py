"""Confines a connection to the rows of one project, by the engine itself.

The engine adds a condition to every read of a table, wherever in a statement it stands: in a view,
a join or a sub-query. ``readonly = 1`` comes last: from then on no statement can take the condition
off again, nor change any other setting. Row policies, which a server offers for this, need grants
that the embedded engine does not give.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mast_trace_collector.storage.expressions import literal

if TYPE_CHECKING:
    from mast_trace_collector.clickhouse_http.engine import Handle

_OPEN_SYSTEM_TABLES = frozenset(
    {
        "aggregate_function_combinators",
        "build_options",
        "collations",
        "columns",
        "contributors",
        "data_type_families",
        "databases",
        "formats",
        "functions",
        "keywords",
        "licenses",
        "merge_tree_settings",
        "numbers",
        "numbers_mt",
        "one",
        "settings",
        "table_functions",
        "tables",
        "time_zones",
        "zeros",
        "zeros_mt",
    }
)
"""What clients ask before they begin; nothing in these was sent by anybody."""
_TABLES = """
    SELECT database, name, has(columns, 'Project'), has(columns, 'TraceId')
    FROM system.tables
    LEFT JOIN
    (
        SELECT database, table AS name, groupArray(column) AS columns
        FROM (SELECT database, table, name AS column FROM system.columns)
        GROUP BY database, name
    ) AS known USING (database, name)
    WHERE engine NOT LIKE '%View'
"""


def confine(handle: Handle, project: str, database: str) -> None:
    """Let a connection read the rows of ``project`` alone, from now on."""
    rows = handle.run(_TABLES, "TabSeparated").body.decode().splitlines()
    conditions = []
    for schema, table, has_project, has_trace in (row.split("\t") for row in rows):
        condition = _condition(
            (schema, table), project, database, has_project == "1", has_trace == "1"
        )
        if condition:
            conditions.append(f"{literal(f'{schema}.{table}')}: {literal(condition)}")
    handle.run(f"SET additional_table_filters = {{{', '.join(conditions)}}}", "TabSeparated")
    handle.run("SET readonly = 1", "TabSeparated")


def _condition(
    table: tuple[str, str], project: str, database: str, has_project: bool, has_trace: bool
) -> str:
    """The rows of a table that the project may see; empty for all."""
    schema, name = table
    if schema == "system":
        return "" if name in _OPEN_SYSTEM_TABLES else "0"
    if schema != database:
        return "0"
    if has_project:
        return f"Project = {literal(project)}"
    if has_trace:
        return (
            f"TraceId IN (SELECT TraceId FROM {database}.mast_run_states "  # noqa: S608
            f"WHERE Project = {literal(project)})"
        )
    return "0"
