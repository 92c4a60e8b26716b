"""The statements that make a user of one project on a ClickHouse server.

They are written from the declarations of the tables (`declarations`). Everything is closed twice:
nothing is granted but what is declared, and row policies on whole databases leave no row of what has
no policy of its own.
"""

from __future__ import annotations

from typing import Final

from mast_trace_collector.storage.address import DEFAULT_DATABASE, identifier
from mast_trace_collector.storage.declarations import READABLE, Rows
from mast_trace_collector.storage.readers import condition_of
from mast_trace_collector.storage.span_sql import literal

OPEN_SYSTEM_TABLES: Final = (
    "aggregate_function_combinators",
    "collations",
    "columns",
    "current_roles",
    "data_type_families",
    "database_engines",
    "databases",
    "enabled_roles",
    "formats",
    "functions",
    "one",
    "settings",
    "table_engines",
    "table_functions",
    "tables",
    "time_zones",
)
"""Tables of the server that clients ask: they list what the user may see, and no statement or error."""

_HEAD: Final = """\
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
"""
_CLUSTER: Final = """\
SELECT throwIf(count() > 0, 'the tables are spread over a cluster: give readers keys of the web view')
FROM system.tables WHERE database = {database} AND engine = 'Distributed';
"""
_VERSION: Final = """\
SELECT throwIf(NOT ({hold}), 'row policies do not hold in this version: upgrade to {safe}');
"""
SAFE_VERSIONS: Final = "ClickHouse 26.9 or newer, or 26.3.33.101 or a later 26.3"
"""The versions in which no table function is known that reads past row policies."""


def policies_hold(version: str = "version()") -> str:
    """Return SQL that tells whether row policies hold in a version of ClickHouse.

    Source: pull requests 97682, 115304 and 119032 of ClickHouse, and the versions that have them.

    Args:
        version: SQL of the version's text.
    """
    numbers = f"arrayMap(x -> toUInt32OrZero(x), splitByChar('.', {version}))"
    return f"{numbers} >= [26, 9] OR ({numbers} >= [26, 3, 33, 101] AND {numbers} < [26, 4])"


def project_reader(
    user: str = "team_a", project: str = "team-a", database: str = DEFAULT_DATABASE
) -> str:
    """Return the SQL, with comments, for a user that reads the rows of ``project`` alone.

    Raises:
        ConfigurationError: ``user`` or ``database`` is no plain name.
    """
    user, database = identifier(user), identifier(database)
    tables: dict[str, list[str]] = {}
    for table, rows in READABLE.items():
        # A view has the column, too: its policy holds even where it runs with its definer's rights.
        own = Rows.OF_PROJECT if rows is Rows.OF_VIEW else rows
        condition = condition_of(own, database, literal(project)) or "1"
        tables.setdefault(condition, []).append(f"{database}.{table}")
    open_tables = [f"system.{table}" for table in OPEN_SYSTEM_TABLES]
    statements = [
        f"CREATE USER IF NOT EXISTS {user} IDENTIFIED BY 'change me' SETTINGS PROFILE 'reader';\n",
        "-- Nothing of what has no policy of its own, whatever is granted.",
        _policy(user, [f"{database}.*", "system.*"], "0"),
        *(_policy(user, names, condition) for condition, names in tables.items()),
        _policy(user, open_tables, "1"),
        f"\nREVOKE SELECT, SHOW ON {database}.* FROM {user};",
        *(f"GRANT SELECT ON {database}.{table} TO {user};" for table in READABLE),
    ]
    guard = _CLUSTER.format(database=literal(database))
    guard += _VERSION.format(hold=policies_hold(), safe=SAFE_VERSIONS)
    return f"{_HEAD}{guard}\n" + "\n".join(statements) + "\n"


def _policy(user: str, names: list[str], condition: str) -> str:
    on = ",\n    ".join(names)
    return f"CREATE ROW POLICY OR REPLACE of_{user} ON\n    {on}\n    USING {condition} TO {user};"
