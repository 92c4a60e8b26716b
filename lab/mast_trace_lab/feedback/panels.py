"""The panels of experiments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mast_trace_dashboards.grafana.panels import field_override, sql, table
from mast_trace_lab.feedback.queries import EXPERIMENT_ARMS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mast_trace_dashboards.grafana.panels import Panel

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
