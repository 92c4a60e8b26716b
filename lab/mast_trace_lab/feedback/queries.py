"""Named queries on experiments: counts of their runs by arm, and the agents that act there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from mast_trace_dashboards.grafana.panels import Panel, field_override, sql, table
from mast_trace_dashboards.queries.query import Column, Query
from mast_trace_dashboards.queries.sql import OWNERS

_OF_PROJECTS: Final = (
    "(empty({projects:Array(String)}) OR has({projects:Array(String)}, toString(Project)))"
)
# A run is one row, that of its earliest span; an arm of the plan without runs is one row without a run.
_TRIALS: Final = f"""SELECT e.OwnProject AS OwnProject, e.OfExperiment AS OfExperiment, e.OfArm AS OfArm,
    e.OfTask AS OfTask, e.OfService AS OfService, e.Given AS Given, e.OfRun AS OfRun, e.Begun AS Begun,
    toString(m.Known) AS Known, m.Acting AS Acting, m.Used AS Used, toUInt32(0) AS Place
  FROM (
    SELECT toString(Project) AS OwnProject, toString(Experiment) AS OfExperiment, toString(Arm) AS OfArm,
      Task AS OfTask, toString(ServiceName) AS OfService, FeedbackId AS Given, TraceId AS OfRun, Start AS Begun
    FROM (SELECT * FROM mast_experiment_runs FINAL WHERE Experiment != '' AND {_OF_PROJECTS})
    ORDER BY Start, SpanId
    LIMIT 1 BY OwnProject, OfExperiment, OfRun
  ) AS e
  LEFT JOIN (
    SELECT toString(Project) AS RunProject, TraceId AS RunId, Outcome AS Known,
      arrayMap(agent -> toString(agent), Agents) AS Acting,
      toUInt64(InputTokens) + toUInt64(OutputTokens) AS Used, Kind AS OfKind
    FROM mast_runs
    WHERE TraceId GLOBAL IN (SELECT TraceId FROM mast_experiment_runs WHERE Experiment != '')
  ) AS m ON m.RunProject = e.OwnProject AND m.RunId = e.OfRun
  WHERE m.OfKind = ''
  UNION ALL
  SELECT toString(Project) AS OwnProject, Name AS OfExperiment, Arms.1 AS OfArm, '' AS OfTask, '' AS OfService,
    '' AS Given, '' AS OfRun, toDateTime64(0, 9) AS Begun, '' AS Known, CAST([], 'Array(String)') AS Acting,
    toUInt64(0) AS Used, toUInt32(Arms.2) AS Place
  FROM (
    SELECT Project, Name, arrayJoin(arrayZip(Planned, arrayEnumerate(Planned))) AS Arms
    FROM (SELECT Project, Name, JSONExtract(Plan, 'arms', 'Array(String)') AS Planned
      FROM mast_experiments FINAL WHERE {_OF_PROJECTS})
  )"""

EXPERIMENT_ARMS: Final = Query(
    name="experiment_arms",
    meaning="Runs of each arm of each experiment, by recorded outcome, the experiment with the latest run first, "
    "its arms in the order of the plan. Counts alone: `mast-trace experiment` says what they allow to say.",
    template=f"""
SELECT Project, Experiment, Arm, toUInt8(Placed > 0) AS Planned, Tasks, Runs, Succeeded, Failed,
    Runs - Succeeded - Failed AS Missing, Told, WithoutTask, Services, Newest,
    if(Counted = 0, NULL, ActingInAll / Counted) AS AgentsPerRun, Agents,
    if(Spending = 0, NULL, UsedInAll / Spending) AS TokensPerRun,
    toUInt8(uniqExactIf(cityHash64(Agents), Counted > 0) OVER (PARTITION BY Project, Experiment) > 1) AS Differ
FROM (
  SELECT OwnProject AS Project, OfExperiment AS Experiment, OfArm AS Arm, max(Place) AS Placed,
    uniqExactIf(OfTask, OfTask != '') AS Tasks, countIf(OfTask != '') AS Runs,
    countIf(OfTask != '' AND Known = 'success') AS Succeeded,
    countIf(OfTask != '' AND Known = 'failure') AS Failed,
    countIf(OfTask != '' AND Given != '') AS Told, countIf(OfRun != '' AND OfTask = '') AS WithoutTask,
    arraySort(groupUniqArrayIf(20)(OfService, OfService != '')) AS Services, max(Begun) AS Newest,
    countIf(OfTask != '' AND notEmpty(Acting)) AS Counted, sumIf(length(Acting), OfTask != '') AS ActingInAll,
    arraySort(groupUniqArrayArrayIf(100)(Acting, OfTask != '')) AS Agents,
    countIf(OfTask != '' AND Used > 0) AS Spending, sumIf(Used, OfTask != '') AS UsedInAll
  FROM ({_TRIALS})
  GROUP BY Project, Experiment, Arm
)
ORDER BY max(Newest) OVER (PARTITION BY Project, Experiment) DESC, Project, Experiment,
    Placed = 0, Placed, Arm""",
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
        "AgentsPerRun": Column(
            "Nullable(Float64)", "mean number of acting agents; NULL if none is known"
        ),
        "Agents": Column("Array(String)", "that act in any of these runs, 100 at most"),
        "TokensPerRun": Column(
            "Nullable(Float64)", "mean input and output tokens; NULL if none were counted"
        ),
        "Differ": Column("UInt8", "1 if other agents act in some arm of the experiment"),
    },
)

EXPERIMENTS: Final[Sequence[Sequence[Panel]]] = (
    (
        table(
            "Experiments",
            "Runs of each arm of each experiment, whenever they ran. Counts alone: `mast-trace experiment` and "
            "the page /experiments have the intervals, and say which arm is better.",
            sql(
                EXPERIMENT_ARMS,
                "Experiment, Arm, Tasks, Runs, Succeeded, Failed, Missing AS `No outcome`, "
                "Told AS `Given a text`",
            ),
        ),
    ),
    (
        table(
            "Teams against one agent",
            "Experiments whose arms differ in the agents that act: one agent, or the team without one. Counts alone: "
            "the page /profile has the intervals, and says which arm is better, or that it is not decided.",
            sql(
                EXPERIMENT_ARMS,
                "Experiment, Arm, AgentsPerRun AS `Agents a run`, "
                "arrayStringConcat(arraySlice(Agents, 1, 12), ', ') AS `Agents that act`, "
                "TokensPerRun AS `Tokens a run`, Runs, Succeeded, Failed, Missing AS `No outcome`",
            )
            + "\nWHERE Differ",
            overrides=(
                field_override("Agents a run", decimals=1, unit="none"),
                field_override("Tokens a run", decimals=0, unit="none"),
            ),
        ),
    ),
)
"""Rows of the dashboard of failure modes."""
