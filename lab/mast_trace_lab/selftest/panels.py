"""The panel of the self-tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mast_trace_dashboards.grafana.panels import sql, table
from mast_trace_lab.selftest.queries import SELFTESTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mast_trace_dashboards.grafana.panels import Panel

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
