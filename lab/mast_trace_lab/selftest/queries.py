"""Named queries on self-tests: what the judge finds of faults that were planted in one's own system."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from mast_trace_dashboards.grafana.panels import Panel, sql, table
from mast_trace_dashboards.queries.query import Column, Query
from mast_trace_dashboards.queries.sql import OWNERS
from mast_trace_lab.selftest.store import ALL, ENVIRONMENT, FEW

_MEASURES: Final = {
    "Found": ("found", "before", "planted faults whose mode is named"),
    "Step": ("step", "before", "decisive steps that are right"),
    "StepFitted": ("step", "after", "decisive steps that are right after fitting to other operators"),
    "Named": ("named", "before", "decisive steps in whose place another one is named"),
    "NamedFitted": ("named", "after", "the same after fitting to other operators"),
    "Accused": ("accused", "before", "untouched healthy runs that are accused"),
    "AccusedFitted": ("accused", "after", "untouched healthy runs that are accused after fitting"),
    "Survived": ("survived", "before", "faulty runs that succeeded and are said to have failed"),
    "SurvivedFitted": ("survived", "after", "the same runs after fitting"),
}  # fmt: skip


# No percentage of fewer runs than `FEW`, as in the terminal and in the web view.
_TOLD: Final = f"""concat(toString(Hits), ' of ', toString(Runs),
      if(Runs < {FEW}, ' (too few: ', concat(', ', toString(round(100 * Hits / Runs)), ' % (')),
      toString(round(100 * assumeNotNull(Low))), ' to ', toString(round(100 * assumeNotNull(High))), ' %)')"""
_ABSENT: Final = {
    "accused": f"Mode != '{ALL}', '', ",
    "survived": f"Mode != '{ALL}', '', ",
    "found": f"Mode = '{ENVIRONMENT}', '-', ",
}


def _shares(name: str) -> str:
    """Return the columns of one measure: runs, share, the ends of its interval, and all of them as a text."""
    measure, stage, _ = _MEASURES[name]
    here = f"Kept = '{measure} {stage}'"
    return f"""
    sumIf(Runs, {here}) AS {name}Runs, if({name}Runs = 0, NULL, sumIf(Hits, {here}) / {name}Runs) AS {name},
    minIf(Low, {here}) AS {name}Low, maxIf(High, {here}) AS {name}High,
    multiIf({_ABSENT.get(measure, "")}{name}Runs = 0, 'not measured', anyIf(Told, {here})) AS {name}Text"""


SELFTESTS: Final = Query(
    name="selftests",
    meaning="The newest self-test of each service: shares of planted faults that the judge finds, by failure mode.",
    template=f"""
SELECT Project, ServiceName, Mode, max(t.MeasuredAt) AS Measured, any(t.JudgeVersion) AS JudgeVersion,
    arrayStringConcat(any(t.Operators), ', ') AS Operators, any(Originals) AS PlantedRuns,{",".join(map(_shares, _MEASURES))}
FROM (
  SELECT *, concat(Measure, ' ', Stage) AS Kept, {_TOLD} AS Told
  FROM mast_selftests FINAL
  WHERE (empty({{projects:Array(String)}}) OR has({{projects:Array(String)}}, Project))
    AND (Project, ServiceName, MeasuredAt) GLOBAL IN (
      SELECT Project, ServiceName, max(MeasuredAt) FROM mast_selftests GROUP BY Project, ServiceName)
) AS t
GROUP BY Project, ServiceName, Mode
ORDER BY Project, ServiceName, Mode = '{ALL}', Mode""",
    params={"projects": OWNERS["projects"]},
    columns={
        "Project": Column("String"),
        "ServiceName": Column("String"),
        "Mode": Column("String", "code of the failure mode; `environment`, or `all` together"),
        "Measured": Column("DateTime64(6)"),
        "JudgeVersion": Column("String"),
        "Operators": Column("String", "operators of the planted faults"),
        "PlantedRuns": Column("UInt32", "different recorded runs into which faults were planted"),
        **{
            column: Column(kind, meaning)
            for name, (_, _, what) in _MEASURES.items()
            for column, kind, meaning in (
                (f"{name}Runs", "UInt64", f"runs that were examined for {name}"),
                (name, "Nullable(Float64)", f"share of {what}; NULL if it was not measured"),
                (f"{name}Low", "Nullable(Float64)", "lower end of its interval (95 %)"),
                (f"{name}High", "Nullable(Float64)", "upper end"),
                (f"{name}Text", "String", f"hits, runs and interval; no share below {FEW} runs"),
            )
        },
    },
)

SELF_TEST: Final[Sequence[Panel]] = (
    table(
        "Self-test",
        "Faults that `mast-trace selftest` planted in your system: of how many the judge names the mode, of how "
        "many decisive steps its likeliest is right, and where it names another; at the row `all` also the "
        "untouched healthy runs that it accuses, and the runs that succeeded with a fault and of which it says, "
        "outcome hidden, that they failed. Counts with 95 % intervals, and a percentage from 8 runs on. "
        "After fitting, each fault is judged by a fit that has seen neither its operator nor its original run.",
        sql(
            SELFTESTS,
            "ServiceName AS Service, Mode, FoundText AS `Mode found`, "
            "StepText AS `Step right, before fitting`, StepFittedText AS `step right, after`, "
            "NamedText AS `Wrong step named, before`, NamedFittedText AS `wrong step, after`, "
            "AccusedText AS `Healthy accused, before`, AccusedFittedText AS `accused, after`, "
            "SurvivedText AS `Survivors said to have failed, before`, SurvivedFittedText AS `survivors, after`, "
            "PlantedRuns AS Runs, Operators, JudgeVersion AS Judge, Measured",
        ),
    ),
)
"""A row of the judge's dashboard."""
