"""Reference of the tables, from tables that the migrations have just made."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tomllib

from mast_trace_collector.storage import Store, migrate
from mast_trace_collector.storage.readers import DECLARED, Rows
from site_extension.markdown import cell, table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

COLUMNS = Path(__file__).with_name("columns.toml")
_READERS = {
    Rows.OF_PROJECT: "rows of the project, by `Project`",
    Rows.OF_TRACES: "rows of the project's runs, by `TraceId`",
    Rows.OF_VIEW: "rows of the project, as in the tables under the view",
    Rows.ALL: "every row",
    Rows.NONE: "nothing",
}
# Tables of which most columns are copies of another's.
_COPIES = {"mast_findings": "mast_verdicts"}

_ALL = """
    SELECT table, name, type FROM system.columns
    WHERE database = currentDatabase() ORDER BY table, position"""


def tables() -> str:
    """Return Markdown: each table with its columns.

    Raises:
        ValueError: a column has no meaning, or a meaning no column.
    """
    meanings = tomllib.loads(COLUMNS.read_text("utf-8"))
    internal = meanings.pop("internal")
    types = made()
    known = {*meanings, *internal}
    if known != {*types}:
        raise ValueError(f"{COLUMNS.name}: tables differ: {sorted(known ^ {*types})}")
    parts = [part for name in meanings for part in _table(name, meanings[name], types)]
    rows = [(f"`{name}`", cell(text), readers(name)) for name, text in internal.items()]
    head = ("table", "purpose", "a reader of one project sees")
    return "\n".join([*parts, "## Internal tables\n", table(head, rows)])


def readers(name: str) -> str:
    """Return what a reader of one project sees of a table, from the table's declaration."""
    return _READERS[DECLARED.get(name, Rows.NONE)]


def made() -> dict[str, dict[str, str]]:
    """Return the columns and their types of each table in a new database."""
    found: dict[str, dict[str, str]] = {}
    with tempfile.TemporaryDirectory() as folder, Store.open(f"chdb://{folder}/db") as store:
        migrate(store)
        for row in store.query(_ALL):
            found.setdefault(row["table"], {})[row["name"]] = row["type"]
    return found


def _table(
    name: str, meanings: Mapping[str, Any], types: Mapping[str, Mapping[str, str]]
) -> Iterator[str]:
    described = {column: text for column, text in meanings.items() if column != "about"}
    own = set(types[name]) - set(types.get(_COPIES.get(name, ""), ()))
    if own != set(described):
        raise ValueError(f"{COLUMNS.name}: {name} differs: {sorted(own ^ set(described))}")
    about = meanings["about"].strip()
    yield f"## {name}\n\n{about}\n\nA reader of one project sees {readers(name)}.\n"
    rows = [
        (f"`{column}`", f"`{types[name][column]}`", cell(text))
        for column, text in described.items()
    ]
    yield table(("column", "type", "meaning"), rows)
