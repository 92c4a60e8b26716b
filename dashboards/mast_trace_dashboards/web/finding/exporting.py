"""The selected runs as a file."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any, Final

from mast_trace_dashboards.printable import json_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mast_trace_dashboards.web.finding.run_list import Listed

MOST_EXPORTED: Final = 10_000
"""Most runs of a file."""
KINDS: Final = {"csv": "text/csv; charset=utf-8", "jsonl": "application/x-ndjson"}
"""Kinds of files, with their media types."""
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


def csv_of(listed: Listed) -> Iterator[str]:
    """Yield runs as CSV, one row each, with a head.

    A text that a spreadsheet would run as a formula is written behind an apostrophe.
    """
    names = [*(listed.rows[0] if listed.rows else ()), "Cost"]
    yield _line(names)
    for row in listed.rows:
        yield _line([*map(_cell, row.values()), listed.costs.get(row["TraceId"], "")])


def jsonl_of(listed: Listed) -> Iterator[str]:
    """Yield runs as JSON Lines: the columns of the list, and the cost in words."""
    for row in listed.rows:
        yield json_text({**row, "Cost": listed.costs.get(row["TraceId"])}) + "\n"


def _line(cells: list[Any]) -> str:
    made = io.StringIO()
    csv.writer(made, lineterminator="\n").writerow(cells)
    return made.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, list | tuple):
        value = " ".join(map(str, value))
    if isinstance(value, str) and value.startswith(_FORMULA):
        return f"'{value}"
    return value
