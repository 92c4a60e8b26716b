"""SQL parts of the queries on patterns; those of `mast_trace_judge.patterns.places` as well."""

from __future__ import annotations

from typing import Final

from mast_trace_dashboards.queries.sql import CODES, MODES_EXAMINED

EXAMINED: Final = f"arrayConcat([toUInt64(1)], {MODES_EXAMINED})"
"""1 for a decisive error without a mode, which is always looked for; then as `MODES_EXAMINED`."""


def code_index(code: str) -> str:
    """Return the SQL of a failure mode's place in `EXAMINED`."""
    return f"(1 + indexOf({CODES}, {code}))"
