"""Versioned, forward-only changes of the schema.

Files under ``schema/`` with a table's name are what an empty database gets: the tables of version
`BASELINE`. Each file with a number is one version, for databases that are older. Statements may be
run again without harm, so any number of processes may migrate one database at once. A version is
recorded once all its statements have run, together with the options (such as the cluster) that it
was run with, so that a later migration, such as that of an upgraded collector, creates its tables
alike.
"""

from __future__ import annotations

import json
import re
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass, fields
from functools import cache

from mast_trace.exceptions import ConfigurationError, SchemaMismatch, StorageError
from mast_trace_collector.storage.schema_templates import SchemaOptions, fill, schema_files
from mast_trace_collector.storage.span_sql import literal
from mast_trace_collector.storage.store import Store, error_code

OLDEST_CLICKHOUSE = (25, 8)
"""The oldest version that mast-trace is tested with."""
_UNKNOWN_TABLE = 60
_UNKNOWN_DATABASE = 81
_RECORD = "INSERT INTO {database}.mast_schema_migrations (Version, Name, Options) VALUES {rows}"
BASELINE = 42
"""The version of the tables that an empty database gets at once."""
_CARRIED_OVER = 28
"""The oldest version that databases are carried over from."""
_EARLIER = frozenset(range(1, _CARRIED_OVER + 1)) - {15}
"""The versions that are no longer here; no database ever had a version 15."""
_SHAPE = ("cluster", "replicated", "distributed")


@dataclass(frozen=True)
class Migration:
    """One version of the schema; a database with it has the versions that it replaces as well."""

    version: int
    name: str
    template: str
    replaces: tuple[int, ...] = ()

    def statements(self, options: SchemaOptions) -> list[str]:
        """Return its SQL under ``options``."""
        text = "\n".join(
            line for line in self.template.splitlines() if not line.lstrip().startswith("--")
        )
        filled = [fill(part, options) for part in re.split(r";[ \t]*(?:\n|$)", text)]
        return [statement for statement in filled if statement]

    def record(self, options: SchemaOptions) -> str:
        """Return the SQL that records the version, and those that it replaces."""
        how = f"{literal(self.name)}, {literal(json.dumps(asdict(options), sort_keys=True))}"
        rows = ", ".join(f"({version}, {how})" for version in (*self.replaces, self.version))
        return fill(_RECORD, options, rows=rows)


@cache
def migrations() -> tuple[Migration, ...]:
    """Return the versions that databases are carried over by, the oldest first."""
    numbered = (file for file in sorted(schema_files().items()) if file[0][0].isdigit())
    return tuple(Migration(int(name[:3]), name[4:], sql) for name, sql in numbered)


@cache
def baseline() -> Migration:
    """Return the version that an empty database gets."""
    tables = {name: sql for name, sql in schema_files().items() if not name[0].isdigit()}
    first = tables.pop("mast_schema_migrations")
    # Backwards by name, so that a view comes after all that it reads.
    sql = "\n".join([first, *(tables[name] for name in sorted(tables, reverse=True))])
    replaced = (*sorted(_EARLIER), *range(_CARRIED_OVER + 1, BASELINE))
    return Migration(BASELINE, "baseline", sql, replaced)


def _missing(applied: AbstractSet[int]) -> list[Migration]:
    """Return what a database with these versions lacks."""
    if not applied:
        return [baseline(), *(each for each in migrations() if each.version > BASELINE)]
    return [each for each in migrations() if each.version not in applied]


def render(options: SchemaOptions, applied: AbstractSet[int] = frozenset()) -> list[str]:
    """Return every statement that `migrate` runs on a database with these versions."""
    statements = []
    for migration in _missing(applied):
        statements += [*migration.statements(options), migration.record(options)]
    return statements


def migrate(store: Store, options: SchemaOptions | None = None) -> list[int]:
    """Bring the database to this version of mast-trace; return the versions that were new.

    Args:
        store: opened on the database.
        options: of the tables; by default those of the existing tables, else plain ones.

    Raises:
        ConfigurationError: ``options`` are for another database than the store's, or contradict
            those of its tables.
        SchemaMismatch: the database was made by a newer mast-trace, or by one that is too old.
        StorageError: the database refused a statement.
    """
    if options is not None and options.database != store.database:
        raise ConfigurationError(
            f"the store is opened on database {store.database!r}, not {options.database!r}"
        )
    applied = _applied(store)
    _refuse_newer(applied)
    _refuse_older(applied)
    options = _settled(options, options_of(store)) or SchemaOptions(database=store.database)
    try:
        for statement in render(options, applied):
            store.command(statement, use_database=False)
    except StorageError as error:
        if advice := _if_too_old(store):
            raise StorageError(f"{error}; {advice}") from error.__cause__
        raise
    return [version for each in _missing(applied) for version in (*each.replaces, each.version)]


def _if_too_old(store: Store) -> str:
    """Return advice if this ClickHouse is older than the oldest tested version; else an empty text."""
    version = store.command("SELECT version()", use_database=False)
    if tuple(int(part) for part in version.split(".")[:2]) >= OLDEST_CLICKHOUSE:
        return ""
    oldest = ".".join(map(str, OLDEST_CLICKHOUSE))
    return f"this is ClickHouse {version}: mast-trace is made for {oldest} or newer"


def options_of(store: Store) -> SchemaOptions | None:
    """Return the options of the database's tables; None if there are none."""
    try:
        rows = store.query(
            "SELECT Options FROM mast_schema_migrations WHERE Options != '' "
            "ORDER BY AppliedAt DESC, Version DESC LIMIT 1"
        )
    except StorageError as error:
        if error_code(error) in {_UNKNOWN_TABLE, _UNKNOWN_DATABASE}:
            return None
        raise
    if not rows:
        return None
    # A newer mast-trace may have recorded more options; another check reports its newer schema.
    known = {each.name for each in fields(SchemaOptions)}
    made = json.loads(rows[0]["Options"])
    return SchemaOptions(**{name: value for name, value in made.items() if name in known})


def _settled(asked: SchemaOptions | None, made: SchemaOptions | None) -> SchemaOptions | None:
    """Return the options to use: a table cannot be plain where the others are spread over a cluster."""
    if asked is None or made is None:
        return asked or made
    for name in _SHAPE:
        if getattr(asked, name) != getattr(made, name):
            raise ConfigurationError(
                f"the tables of {made.database} were made with {name} = {getattr(made, name)!r}, "
                f"not {getattr(asked, name)!r}; leave these options out to migrate as before"
            )
    return asked


def backfill_runs(store: Store) -> None:
    """Create the runs of spans that were stored before there was a table of runs.

    This is for a database that a stock collector filled; in a cluster, run it on a node of each
    shard. Existing runs stay as they are.
    """
    for view in store.query(
        "SELECT as_select FROM system.tables WHERE database = {database:String} "
        "AND name IN ('mast_run_states_mv', 'mast_run_starts_mv')",
        {"database": store.database},
    ):
        columns = ", ".join(name for name, _ in store.describe(view["as_select"]))
        store.command(f"INSERT INTO mast_run_states ({columns}) {view['as_select']}")


def check_schema(store: Store) -> None:
    """Check that the database has exactly the tables that this version of mast-trace expects.

    Raises:
        SchemaMismatch: it has older or newer ones, or none.
    """
    applied = _applied(store)
    _refuse_newer(applied)
    newest = migrations()[-1].version
    if max(applied, default=0) < newest:
        raise SchemaMismatch(
            f"{store.url}: the schema is at version {max(applied, default=0)}, this mast-trace "
            f"needs version {newest}: run `mast-trace migrate`"
        )


def _refuse_newer(applied: set[int]) -> None:
    newest = migrations()[-1].version
    if max(applied, default=0) > newest:
        raise SchemaMismatch(
            f"the database's schema is at version {max(applied)}, newer than the {newest} of this "
            "mast-trace: upgrade mast-trace (schemas are never taken back)"
        )


def _refuse_older(applied: set[int]) -> None:
    if applied and (lacking := _EARLIER - applied):
        raise SchemaMismatch(
            f"the database's schema is at version {max(applied)} and lacks version {min(lacking)}: run `mast-trace "
            f"migrate` of a mast-trace with version {_CARRIED_OVER} of the schema first, then this one's"
        )


def _applied(store: Store) -> set[int]:
    try:
        rows = store.query("SELECT DISTINCT Version FROM mast_schema_migrations")
    except StorageError as error:
        if error_code(error) in {_UNKNOWN_TABLE, _UNKNOWN_DATABASE}:
            return set()
        raise
    return {int(row["Version"]) for row in rows}
