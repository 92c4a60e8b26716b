"""The embedded engine's users, by which it confines those who read through the ClickHouse endpoint.

The engine takes users from a file at its start and never again, so they are made before the projects
are known: one who reads everything, and a number of seats, each for one project at a time. A seat's
row filters look the project up in a table of one row, which is the seat's own. The statements of a
reader run as these users, by views with a definer (`clickhouse_http.confinement`).
"""

from __future__ import annotations

from enum import Enum
from typing import Final
from xml.sax.saxutils import escape

SEATS: Final = 16
"""Projects that are read at the same time; more wait for a seat."""
DATABASE: Final = "mast_readers"
"""Holds what readers need beside the tables: seats, a catalogue of what they may read, views."""
CATALOGUE: Final = "mast_catalogue"
"""Holds what stands for the system tables."""

PLAIN: Final = "mast_plain"
"""Holds views of our tables without dictionaries, for who reads one project (`clickhouse_http.plain_tables`)."""

OF_ALL: Final = ("parts",)
"""Of the catalogue, what tells of all projects' rows: empty for who reads one project."""
PROOF: Final = "mast_proof"
"""A table in `DATABASE` by which it is proved that the engine keeps projects apart."""


class Rows(Enum):
    """The rows of a table that a project may read."""

    OF_PROJECT = "by the column Project"
    OF_TRACES = "by the runs of the project"
    OF_VIEW = "those that the tables under the view give"
    ALL = "nothing that anybody sent"


READABLE: Final = {
    "mast_evaluations": Rows.OF_VIEW,
    "mast_findings": Rows.OF_PROJECT,
    "mast_human_labels": Rows.OF_PROJECT,
    "mast_judge_calls": Rows.OF_PROJECT,
    "mast_latest_verdicts": Rows.OF_VIEW,
    "mast_run_states": Rows.OF_PROJECT,
    "mast_runs": Rows.OF_VIEW,
    "mast_schema_migrations": Rows.ALL,
    "mast_verdicts": Rows.OF_PROJECT,
    "otel_logs": Rows.OF_PROJECT,
    "otel_traces": Rows.OF_PROJECT,
    "otel_traces_trace_id_ts": Rows.OF_TRACES,
}
"""Our tables and views that are read. Materialised views and the inlet are none."""

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
# Nobody logs in as one: there is no address from which it would be let in.
_USER = """<{name}>
    <no_password/>
    <networks><ip>255.255.255.255</ip></networks>
    <profile>default</profile>
    <quota>default</quota>
    <grants>{grants}</grants>
    {filters}
</{name}>"""


def seat(number: int) -> str:
    """Return the name of a seat's user, which is the name of its table, too."""
    return f"mast_seat_{number}"


def reader() -> str:
    """Return the name of the user who reads the rows of all projects."""
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
            if (condition := _condition(rows, database, project))
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


def _condition(rows: Rows, database: str, project: str) -> str:
    if rows is Rows.OF_PROJECT:
        return f"Project = {project}"
    if rows is Rows.OF_TRACES:
        return (
            f"TraceId IN (SELECT TraceId FROM {database}.mast_run_states "  # noqa: S608
            f"WHERE Project = {project})"
        )
    return ""
