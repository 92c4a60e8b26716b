"""Named queries on experiments: counts of their runs by arm."""

from __future__ import annotations

from typing import Final

from mast_trace_dashboards.queries.query import Column, Query
from mast_trace_dashboards.queries.sql import OWNERS

_OF_PROJECTS: Final = (
    "(empty({projects:Array(String)}) OR has({projects:Array(String)}, toString(Project)))"
)
# A run is one row, that of its earliest span; an arm of the plan without runs is one row without a run.
_TRIALS: Final = f"""SELECT e.OwnProject AS OwnProject, e.OfExperiment AS OfExperiment, e.OfArm AS OfArm,
    e.OfTask AS OfTask, e.OfService AS OfService, e.Given AS Given, e.OfRun AS OfRun, e.Begun AS Begun,
    toString(m.Known) AS Known, toUInt8(0) AS OfPlan
  FROM (
    SELECT toString(Project) AS OwnProject, toString(Experiment) AS OfExperiment, toString(Arm) AS OfArm,
      Task AS OfTask, toString(ServiceName) AS OfService, FeedbackId AS Given, TraceId AS OfRun, Start AS Begun
    FROM (SELECT * FROM mast_experiment_runs FINAL WHERE Experiment != '' AND {_OF_PROJECTS})
    ORDER BY Start, SpanId
    LIMIT 1 BY OwnProject, OfExperiment, OfRun
  ) AS e
  LEFT JOIN (
    SELECT toString(Project) AS RunProject, TraceId AS RunId, Outcome AS Known FROM mast_runs
    WHERE TraceId GLOBAL IN (SELECT TraceId FROM mast_experiment_runs WHERE Experiment != '')
  ) AS m ON m.RunProject = e.OwnProject AND m.RunId = e.OfRun
  UNION ALL
  SELECT toString(Project) AS OwnProject, Name AS OfExperiment,
    arrayJoin(JSONExtract(Plan, 'arms', 'Array(String)')) AS OfArm, '' AS OfTask, '' AS OfService,
    '' AS Given, '' AS OfRun, toDateTime64(0, 9) AS Begun, '' AS Known, toUInt8(1) AS OfPlan
  FROM (SELECT * FROM mast_experiments FINAL WHERE {_OF_PROJECTS})"""

EXPERIMENT_ARMS: Final = Query(
    name="experiment_arms",
    meaning="Runs of each arm of each experiment, by recorded outcome, the experiment with the latest run first. "
    "Counts alone: `mast-trace experiment` says what they allow to say.",
    template=f"""
SELECT Project, Experiment, Arm, Planned, Tasks, Runs, Succeeded, Failed, Runs - Succeeded - Failed AS Missing,
    Told, WithoutTask, Services, Newest
FROM (
  SELECT OwnProject AS Project, OfExperiment AS Experiment, OfArm AS Arm, max(OfPlan) AS Planned,
    uniqExactIf(OfTask, OfTask != '') AS Tasks, countIf(OfTask != '') AS Runs,
    countIf(OfTask != '' AND Known = 'success') AS Succeeded,
    countIf(OfTask != '' AND Known = 'failure') AS Failed,
    countIf(OfTask != '' AND Given != '') AS Told, countIf(OfRun != '' AND OfTask = '') AS WithoutTask,
    arraySort(groupUniqArrayIf(20)(OfService, OfService != '')) AS Services, max(Begun) AS Newest
  FROM ({_TRIALS})
  GROUP BY Project, Experiment, Arm
)
ORDER BY max(Newest) OVER (PARTITION BY Project, Experiment) DESC, Project, Experiment, Planned DESC, Arm""",
    params={"projects": OWNERS["projects"]},
    columns={
        "Project": Column("String"),
        "Experiment": Column("String"),
        "Arm": Column("String"),
        "Planned": Column("UInt8", "1 if the plan has this arm"),
        "Tasks": Column("UInt64", "tasks with a run in the arm"),
        "Runs": Column("UInt64", "of these tasks"),
        "Succeeded": Column("UInt64", "recorded, by the program or by a person"),
        "Failed": Column("UInt64", "likewise"),
        "Missing": Column("Int64", "runs without an outcome"),
        "Told": Column("UInt64", "runs that were given a text"),
        "WithoutTask": Column("UInt64", "further runs without a usable key, which do not count"),
        "Services": Column("Array(String)", "in which the runs were recorded, 20 at most"),
        "Newest": Column("DateTime64(9)", "start of the latest run; 1970 if there is none"),
    },
)
