"""Named queries behind the judge's Prometheus metrics: totals, which only grow."""

from __future__ import annotations

from typing import Final

from mast_trace.taxonomy import FAILURE_MODES, Category
from mast_trace_dashboards.queries.query import Column, Query
from mast_trace_dashboards.queries.sql import SHOWN, SHOWN_BITS, mode_mask, newest

_CATEGORIES = {
    category.name.lower(): mode_mask(c for c in FAILURE_MODES if c.startswith(f"{category.value}."))
    for category in Category
}

JUDGED_TOTALS: Final = Query(
    name="judged_totals",
    meaning="Judged runs by service and framework, how many show a mode of each category, and in how "
    "many one was looked for.",
    template=f"""
SELECT toString(ServiceName) AS Service, toString(Framework) AS Framework, count() AS Judged,
  {", ".join(f"countIf(bitAnd(ShownBits, {c}) != 0) AS {n}" for n, c in _CATEGORIES.items())},
  {", ".join(f"countIf(bitAnd(ExaminedBits, {c}) != 0) AS {n}_examined" for n, c in _CATEGORIES.items())}
FROM ({newest("1", "ServiceName", "Framework", "ExaminedBits", f"{SHOWN_BITS} AS ShownBits", "Status")})
WHERE Status = 'ok'
GROUP BY ServiceName, Framework
ORDER BY Service, Framework""",
    params=SHOWN,
    columns={
        "Service": Column("String"),
        "Framework": Column("String"),
        "Judged": Column("UInt64"),
        **{name: Column("UInt64", "runs with a mode of it") for name in _CATEGORIES},
        **{
            f"{name}_examined": Column("UInt64", "runs in which one was looked for")
            for name in _CATEGORIES
        },
    },
)
