"""Named queries on self-tests: what the judge finds of faults that were planted in one's own system."""

from __future__ import annotations

from typing import Final

from mast_trace_dashboards.queries.query import Column, Query
from mast_trace_dashboards.queries.sql import OWNERS


def _of(measure: str, stage: str) -> str:
    return f"Measure = '{measure}' AND Stage = '{stage}'"


def _share(name: str, measure: str, stage: str) -> str:
    """Return the columns of one measure: runs, share, and the ends of the interval."""
    here = _of(measure, stage)
    return f"""
    sumIf(Runs, {here}) AS {name}Runs,
    if({name}Runs = 0, NULL, sumIf(Hits, {here}) / {name}Runs) AS {name},
    minIf(Low, {here}) AS {name}Low,
    maxIf(High, {here}) AS {name}High"""


_MEASURES: Final = {
    "Found": ("found", "before"),
    "Step": ("step", "before"),
    "StepFitted": ("step", "after"),
    "Accused": ("accused", "before"),
    "AccusedFitted": ("accused", "after"),
}
_COLUMNS: Final = ",".join(_share(name, *key) for name, key in _MEASURES.items())

SELFTESTS: Final = Query(
    name="selftests",
    meaning="The newest self-test of each service: shares of planted faults that the judge finds, by failure mode.",
    template=f"""
SELECT ServiceName, Mode, max(MeasuredAt) AS Measured,{_COLUMNS}
FROM mast_selftests FINAL
WHERE (empty({{projects:Array(String)}}) OR has({{projects:Array(String)}}, Project))
  AND (Project, ServiceName, MeasuredAt) IN (
    SELECT Project, ServiceName, max(MeasuredAt) FROM mast_selftests
    WHERE (empty({{projects:Array(String)}}) OR has({{projects:Array(String)}}, Project))
    GROUP BY Project, ServiceName)
GROUP BY Project, ServiceName, Mode
ORDER BY ServiceName, Mode = 'all', Mode""",
    params={"projects": OWNERS["projects"]},
    columns={
        "ServiceName": Column("String"),
        "Mode": Column("String", "code of the failure mode; `environment`, or `all` together"),
        "Measured": Column("DateTime64(6)"),
        **{
            column: Column(kind, meaning)
            for name, what in (
                ("Found", "planted faults whose mode is named"),
                ("Step", "decisive steps that are right"),
                ("StepFitted", "decisive steps that are right after fitting to other operators"),
                ("Accused", "untouched healthy runs that are accused"),
                ("AccusedFitted", "untouched healthy runs that are accused after fitting"),
            )
            for column, kind, meaning in (
                (f"{name}Runs", "UInt64", f"runs that were examined for {name}"),
                (name, "Nullable(Float64)", f"share of {what}; NULL if it was not measured"),
                (f"{name}Low", "Nullable(Float64)", "lower end of its interval (95 %)"),
                (f"{name}High", "Nullable(Float64)", "upper end"),
            )
        },
    },
)
