"""Declarations of the rows that a reader of one project may read, made where a table is defined.

A comment directly before the CREATE of a table or view says it: ``-- reader: project``. A later
definition of the same name inherits it. Users, grants and row filters are written from these
declarations, and an object without one is granted to nobody.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum
from importlib import resources
from typing import Final

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
    """Return the declarations in the texts of migrations, by the name of the table or view.

    Raises:
        ValueError: a word is unknown, or a name is declared in two ways.
    """
    found: dict[str, Rows] = {}
    for text in files:
        for word, name in _DECLARED.findall(text):
            if found.setdefault(name, Rows(word)) is not Rows(word):
                raise ValueError(f"{name} is declared as {found[name].value} and as {word}")
    return found


def _migrations() -> Iterable[str]:
    schema = resources.files("mast_trace_collector.storage") / "schema"
    return (file.read_text("utf-8") for file in schema.iterdir() if file.name.endswith(".sql"))


DECLARED: Final = declared(_migrations())
"""The declaration of each table and view of this version, by its name on a single server."""

READABLE: Final = {name: rows for name, rows in sorted(DECLARED.items()) if rows is not Rows.NONE}
"""Our tables and views that readers may read, without materialised views and the inlet."""
