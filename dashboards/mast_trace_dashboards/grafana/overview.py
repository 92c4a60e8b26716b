"""The overview dashboard: the present state, and the largest changes for the worse."""

from __future__ import annotations

from typing import Final

from mast_trace_dashboards.grafana.board import Dashboard
from mast_trace_dashboards.grafana.cost_rows import COST_ROWS
from mast_trace_dashboards.grafana.panels import (
    NOT_EXAMINED,
    Panel,
    Thresholds,
    counted,
    field_override,
    lines,
    share,
    sql,
    stat,
    table,
)

_FAILING = Thresholds(warn=0.2, bad=0.5)
_VIOLATING = Thresholds(warn=0.15, bad=0.3)

_ALERTS: Final = Panel(
    "alertlist",
    "Alerts",
    "Alert rules of mast-trace that fire or are about to.",
    width=8,
    height=8,
    options={
        "viewMode": "list",
        "groupMode": "default",
        "groupBy": [],
        "maxItems": 20,
        "sortOrder": 1,
        "alertName": "",
        "alertInstanceLabelFilter": '{app="mast-trace"}',
        "datasource": "",
        "dashboardAlerts": False,
        "stateFilter": {
            "firing": True,
            "pending": True,
            "recovering": True,
            "noData": True,
            "normal": False,
            "error": True,
        },
    },
)

OVERVIEW: Final = Dashboard(
    uid="mast-overview",
    title="mast-trace / Overview",
    description="Runs of multi-agent systems: how many fail, in which ways, and what got worse.",
    rows=(
        (
            stat("Runs", "Runs that started in the range.", sql("summary", "Runs")),
            stat(
                "Judged",
                "Share of the runs that have a verdict. Low: the judge is behind, see Judge health.",
                sql("summary", "JudgedShare"),
                unit="percentunit",
            ),
            stat(
                "Failure rate",
                "Failed runs of those whose outcome is known.",
                sql("summary", "FailureShare"),
                unit="percentunit",
                thresholds=_FAILING,
                empty="no outcome known",
            ),
            stat(
                "Failed runs",
                "Judged runs that failed.",
                sql("summary", "Failures"),
            ),
            stat(
                "Specification violations",
                "Share with a failure mode of category 1 (1.1 to 1.5), of the runs in which one was "
                "looked for. The shipped alert watches this share.",
                sql("summary", "ViolationShare"),
                unit="percentunit",
                thresholds=_VIOLATING,
                empty=NOT_EXAMINED,
            ),
            stat(
                "Runs with violations",
                "The same as a number.",
                sql("summary", "Violations"),
            ),
        ),
        (
            lines(
                "Runs by outcome",
                "Finished runs by outcome.",
                sql(
                    "outcomes_over_time",
                    "Time AS time, Successes AS success, Failures AS failure, "
                    "Runs - Successes - Failures AS unknown",
                ),
                stacked=True,
                width=16,
            ),
            _ALERTS,
        ),
        (
            lines(
                "Failures by category over time",
                "Share that shows a mode of each MAST category, of the runs in which one was looked for.",
                sql("categories_over_time", "Time AS time, Category, Share") + "\nORDER BY time",
                unit="percentunit",
                maximum=1.0,
            ),
            lines(
                "Specification violations over time",
                "Share with a mode 1.1 to 1.5; the bars are n, the runs in which one was looked for.",
                sql("specification_over_time", "Time AS time, Share AS share, Examined AS n"),
                unit="percentunit",
                maximum=1.0,
                overrides=(counted(),),
            ),
        ),
        (
            table(
                "What got worse",
                "Each failure mode in this range and in as long a time before it, largest rise "
                "first. n: runs in which it was looked for; a share of few means little.",
                sql(
                    "modes_compared",
                    "Code AS Mode, Share, Examined AS n, ShareBefore AS Before, "
                    "ExaminedBefore AS `n before`, Rise",
                ),
                width=12,
                overrides=(
                    share("Share", _VIOLATING, empty=NOT_EXAMINED),
                    share("Before", empty=NOT_EXAMINED),
                    share("Rise", Thresholds(0.02, 0.1)),
                ),
            ),
            table(
                "Failing services",
                "Modes by service, most frequent service first. n: runs in which it was looked for.",
                sql("modes_by_service", "Service, Code AS Mode, Share, Runs, Examined"),
                width=12,
                overrides=(
                    share("Share", _VIOLATING),
                    field_override("Examined", displayName="n"),
                ),
            ),
        ),
        *COST_ROWS,
    ),
)
