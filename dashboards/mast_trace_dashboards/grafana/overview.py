"""The overview dashboard: the present state on one screen, the largest changes for the worse, and where to look."""

from __future__ import annotations

from typing import Final

from mast_trace_dashboards.grafana.board import Dashboard
from mast_trace_dashboards.grafana.panels import (
    NOT_EXAMINED,
    Panel,
    Thresholds,
    lines,
    share,
    sql,
    stat,
    table,
)
from mast_trace_dashboards.grafana.runs import newest_failures

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
    description="Runs of multi-agent systems: how many fail, where to look in them, and what got worse.",
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
                "Suspect runs",
                "Judged runs that did not fail, though their record contradicts a good end.",
                sql("found_by_day", "sumIf(Runs, Kind = 'suspect') AS Suspect"),
            ),
            stat(
                "Specification violations",
                "Share with a failure mode of category 1 (1.1 to 1.5), of the runs in which one was "
                "looked for. The shipped alert watches this share.",
                sql("summary", "ViolationShare"),
                unit="percentunit",
                thresholds=_VIOLATING,
                empty=NOT_EXAMINED,
                width=8,
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
            newest_failures(width=12),
        ),
    ),
)
