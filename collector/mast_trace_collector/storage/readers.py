"""The embedded engine's users, to which readers of the ClickHouse endpoint are confined.

The engine reads users from a file at its start and never again, so they are defined before the
projects are known: one that reads everything, and a number of seats, each for one project at a
time. A seat's row filters look the project up in a table of one row, which belongs to the seat. The
statements of a reader run as these users, through views with a definer
(`clickhouse_http.confinement`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum
from typing import Final
from xml.sax.saxutils import escape

from mast_trace_collector.storage.schema_templates import schema_files

_DECLARED = re.compile(
    r"^-- reader: (\w+)\n"
    r"CREATE (?:OR REPLACE )?(?:TABLE|VIEW|MATERIALIZED VIEW) (?:IF NOT EXISTS )?\{database\}\.(\w+)",
    re.MULTILINE,
)
LOCAL: Final = "_local"
"""End of the names of the tables under Distributed ones."""


class Rows(Enum):
    """The rows of a table or view that a reader of one project may read."""

    OF_PROJECT = "project"
    """Those with the project's name in the column Project."""
    OF_TRACES = "traces"
    """Those of the project's runs, by the column TraceId."""
    OF_VIEW = "view"
    """Those that the tables under the view give."""
    ALL = "all"
    """Every row: nothing in them was sent by anybody."""
    NONE = "none"
    """No row: the object is another name of a table's rows, or an inlet."""


def declared(files: Iterable[str]) -> dict[str, Rows]:
    """Return the declarations in the texts of the schema, by the name of the table or view.

    Raises:
        ValueError: a word is unknown, or a name is declared in two ways.
    """
    found: dict[str, Rows] = {}
    for text in files:
        for word, name in _DECLARED.findall(text):
            if found.setdefault(name, Rows(word)) is not Rows(word):
                raise ValueError(f"{name} is declared as {found[name].value} and as {word}")
    return found


DECLARED: Final = declared(schema_files().values())
"""The declaration of each table and view of this version, by its name on a single server."""

READABLE: Final = {name: rows for name, rows in sorted(DECLARED.items()) if rows is not Rows.NONE}
"""Our tables and views that readers may read, without materialised views and the inlet."""


SEATS: Final = 16
"""Number of projects that are read at the same time; others wait for a seat."""
DATABASE: Final = "mast_readers"
"""Database of the readers' objects beside the tables: seats, their catalogue, views."""
CATALOGUE: Final = "mast_catalogue"
"""Database of the views that replace the system tables."""

PLAIN: Final = "mast_plain"
"""Database of views of our tables without dictionaries, for readers of one project
(`clickhouse_http.plain_tables`).
"""

OF_ALL: Final = ("parts",)
"""Tables of the catalogue with rows about all projects: empty for readers of one project."""
PROOF: Final = "mast_proof"
"""A table in `DATABASE` that serves to prove that the engine keeps projects apart."""

_FILE = """<clickhouse>
<profiles><default/></profiles>
<quotas><default/></quotas>
<users>
<default>
    <no_password/>
    <networks><ip>::/0</ip></networks>
    <profile>default</profile>
    <quota>default</quota>
    <access_management>1</access_management>
    <named_collection_control>1</named_collection_control>
    <show_named_collections>1</show_named_collections>
    <show_named_collections_secrets>1</show_named_collections_secrets>
</default>
{users}
</users>
</clickhouse>
"""
# Nobody can log in as these users: no address is allowed.
_USER = """<{name}>
    <no_password/>
    <networks><ip>255.255.255.255</ip></networks>
    <profile>default</profile>
    <quota>default</quota>
    <grants>{grants}</grants>
    {filters}
</{name}>"""


def seat(number: int) -> str:
    """Return the name of a seat's user, which is also the name of its table."""
    return f"mast_seat_{number}"


def reader() -> str:
    """Return the name of the user that reads the rows of all projects."""
    return "mast_reader"


def users_file(database: str) -> str:
    """Return the engine's users file for a store whose tables are in ``database``."""
    users = [_user(reader(), database, project="")]
    users += [
        _user(seat(number), database, project=f"(SELECT Project FROM {DATABASE}.{seat(number)})")  # noqa: S608
        for number in range(SEATS)
    ]
    return _FILE.format(users="\n".join(users))


def _user(name: str, database: str, *, project: str) -> str:
    tables = [f"{database}.{table}" for table in READABLE]
    own = [f"{DATABASE}.{name}"] if project else []
    granted = (*tables, *own, f"{DATABASE}.{PROOF}", f"{CATALOGUE}.*", f"{PLAIN}.*")
    filters = ""
    if project:
        ours = "".join(
            _filter(table, condition)
            for table, rows in READABLE.items()
            if (condition := condition_of(rows, database, project))
        )
        proof = _filter(PROOF, f"Project = {project}")
        none = "".join(_filter(table, "0") for table in OF_ALL)
        filters = (
            f"<databases><{database}>{ours}</{database}><{DATABASE}>{proof}</{DATABASE}>"
            f"<{CATALOGUE}>{none}</{CATALOGUE}></databases>"
        )
    return _USER.format(
        name=name,
        grants="".join(f"<query>GRANT SELECT ON {table}</query>" for table in granted),
        filters=filters,
    )


def _filter(table: str, condition: str) -> str:
    return f"<{table}><filter>{escape(condition)}</filter></{table}>"


def condition_of(rows: Rows, database: str, project: str) -> str:
    """Return the condition on a table's rows that keeps a reader to its project; empty for none.

    Args:
        rows: the table's declaration.
        database: that of the tables.
        project: SQL of the project's name.
    """
    if rows is Rows.OF_PROJECT:
        return f"Project = {project}"
    if rows is Rows.OF_TRACES:
        return (
            f"TraceId IN (SELECT TraceId FROM {database}.mast_run_states "  # noqa: S608
            f"WHERE Project = {project})"
        )
    return ""
