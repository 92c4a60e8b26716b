"""Databases as earlier versions of mast-trace left them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mast_trace_collector.storage import SchemaOptions
from mast_trace_collector.storage.migrations import migrations

if TYPE_CHECKING:
    from mast_trace_collector.storage import Store

BEFORE_WHOLE_IDS = 9
"""The last version that kept only a part of each id."""
BEFORE_COUNTING = 28
"""The last version that had one word for totals that are being counted and those of lost spans."""


def make_version(store: Store, version: int, options: SchemaOptions | None = None) -> None:
    """Make the tables of a version, as it was released; ``ON CLUSTER`` needs a Keeper and is left out."""
    options = options or SchemaOptions(database=store.database)
    foundation, *versions = migrations()
    statements = foundation.statements(options)
    for migration in versions:
        if migration.version > version:
            break
        statements += [*migration.statements(options), migration.record(options)]
    for statement in statements:
        text = (
            statement.replace(f"ON CLUSTER {options.cluster}", "") if options.cluster else statement
        )
        store.command(text, use_database=False)
