"""Versioned, forward-only changes of the schema.

Each file under ``schema/`` is one version. Its statements may be run again without harm, so any
number of processes may migrate one database at once. A version is recorded once all its statements
have run, together with the options (such as the cluster) that it was run with, so that a later
migration, such as that of an upgraded collector, creates its tables alike.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, fields
from functools import cache
from importlib import resources

from mast_trace.exceptions import ConfigurationError, SchemaMismatch, StorageError
from mast_trace_collector.storage.schema_templates import SchemaOptions, fill
from mast_trace_collector.storage.span_sql import literal
from mast_trace_collector.storage.store import Store, error_code

OLDEST_CLICKHOUSE = (25, 8)
"""The oldest version that mast-trace is tested with."""
_UNKNOWN_TABLE = 60
_UNKNOWN_DATABASE = 81
_UNKNOWN_COLUMN = 47
_RECORD = (
    "INSERT INTO {database}.mast_schema_migrations (Version, Name, Options) "
    "VALUES ({version}, {name}, {how})"
)
_EXACT = 12
"""The version at which every stored total was made exact; what stored runs before it is gone."""
_CARRIED_OVER = 28
_SHAPE = ("cluster", "replicated", "distributed")


@dataclass(frozen=True)
class Migration:
    """One version of the schema; version 0 is the table that records the versions."""

    version: int
    name: str
    template: str

    def statements(self, options: SchemaOptions) -> list[str]:
        """Return its SQL under ``options``."""
        text = "\n".join(
            line for line in self.template.splitlines() if not line.lstrip().startswith("--")
        )
        filled = [fill(part, options) for part in re.split(r";[ \t]*(?:\n|$)", text)]
        return [statement for statement in filled if statement]

    def record(self, options: SchemaOptions) -> str:
        """Return the SQL that records the version."""
        how = literal(json.dumps(asdict(options), sort_keys=True))
        return fill(_RECORD, options, version=str(self.version), name=literal(self.name), how=how)


@cache
def migrations() -> tuple[Migration, ...]:
    """Return all versions, the oldest first."""
    found = []
    for file in (resources.files("mast_trace_collector.storage") / "schema").iterdir():
        number, _, rest = file.name.partition("_")
        if file.name.endswith(".sql"):
            found.append(Migration(int(number), rest.removesuffix(".sql"), file.read_text("utf-8")))
    return tuple(sorted(found, key=lambda migration: migration.version))


def render(options: SchemaOptions) -> list[str]:
    """Return every statement that `migrate` runs on an empty database."""
    foundation, *versions = migrations()
    statements = foundation.statements(options)
    for migration in versions:
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
        SchemaMismatch: the database was made by a newer mast-trace, or its runs by one that is too old.
        StorageError: the database refused a statement.
    """
    if options is not None and options.database != store.database:
        raise ConfigurationError(
            f"the store is opened on database {store.database!r}, not {options.database!r}"
        )
    options = _settled(options, options_of(store)) or SchemaOptions(database=store.database)
    foundation, *versions = migrations()
    for statement in foundation.statements(options):
        store.command(statement, use_database=False)
    applied = _applied(store, options)
    _refuse_newer(applied)
    if _EXACT not in applied:
        _refuse_inexact(store)
    new = [migration for migration in versions if migration.version not in applied]
    try:
        for migration in new:
            for statement in migration.statements(options):
                store.command(statement)
            store.command(migration.record(options))
    except StorageError as error:
        if advice := _if_too_old(store):
            raise StorageError(f"{error}; {advice}") from error.__cause__
        raise
    return [migration.version for migration in new]


def _if_too_old(store: Store) -> str:
    """Return advice if this ClickHouse is older than the oldest tested version; else an empty text."""
    (row,) = store.query("SELECT version() AS version")
    if tuple(int(part) for part in row["version"].split(".")[:2]) >= OLDEST_CLICKHOUSE:
        return ""
    oldest = ".".join(map(str, OLDEST_CLICKHOUSE))
    return f"this is ClickHouse {row['version']}: mast-trace is made for {oldest} or newer"


def options_of(store: Store) -> SchemaOptions | None:
    """Return the options of the database's tables; None if there are none."""
    try:
        rows = store.query(
            "SELECT Options FROM mast_schema_migrations WHERE Options != '' "
            "ORDER BY AppliedAt DESC, Version DESC LIMIT 1"
        )
    except StorageError as error:
        if error_code(error) in {_UNKNOWN_TABLE, _UNKNOWN_DATABASE, _UNKNOWN_COLUMN}:
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
    applied = _applied(store, SchemaOptions(database=store.database))
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


def _refuse_inexact(store: Store) -> None:
    """Refuse runs whose totals miss spans: their column says so, or is not there yet."""
    try:
        rows = store.query("SELECT 1 FROM mast_run_states WHERE Old = 1 LIMIT 1")
    except StorageError as error:
        if error_code(error) == _UNKNOWN_TABLE:
            return
        if error_code(error) != _UNKNOWN_COLUMN:
            raise
        rows = store.query("SELECT 1 FROM mast_run_states LIMIT 1")
    if rows:
        raise SchemaMismatch(
            f"the database holds runs from before version {_EXACT} of the schema: run `mast-trace migrate` of a "
            f"mast-trace with version {_CARRIED_OVER} first, which counts them again"
        )


def _applied(store: Store, options: SchemaOptions) -> set[int]:
    sql = fill("SELECT DISTINCT Version FROM {database}.mast_schema_migrations", options)
    try:
        rows = store.query(sql)
    except StorageError as error:
        if error_code(error) in {_UNKNOWN_TABLE, _UNKNOWN_DATABASE}:
            return set()
        raise
    return {int(row["Version"]) for row in rows}
