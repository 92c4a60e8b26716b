"""The overview dashboard: the present state, what runs cost, and the largest changes for the worse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from mast_trace_dashboards.grafana.board import Dashboard
from mast_trace_dashboards.grafana.panels import (
    NOT_EXAMINED,
    Panel,
    Thresholds,
    counted,
    field_override,
    lines,
    run_link,
    share,
    sql,
    stat,
    table,
)

_COLUMNS: Final = "Key AS {}, Cost, CostAfter AS After, UnpricedCalls AS Unpriced"
_DOLLARS: Final = (
    field_override("Cost", unit="currencyUSD", decimals=4, noValue="unknown"),
    field_override("After", unit="currencyUSD", decimals=4),
)
_TOKENS: Final = field_override("Tokens", unit="short", decimals=0)
_TOTALS: Final[Mapping[str, Mapping[str, Any]]] = {
    "Cost": {"unit": "currencyUSD", "noValue": "no price known"},
    "UnpricedCalls": {"displayName": "Calls of unknown price"},
    "CostAfter": {
        "displayName": "Cost after the decisive step",
        "unit": "currencyUSD",
        "noValue": "none",
    },
    "TokensAfter": {"displayName": "Tokens after the decisive step"},
    "RetryCost": {"displayName": "Cost of retries", "unit": "currencyUSD", "noValue": "none"},
    "ResentTokens": {"displayName": "Context sent again"},
}
"""Numbers of one query, which takes seconds where many runs are in the range: one panel shows them all."""

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


def _by(part: str, description: str) -> Panel:
    return table(
        f"Cost by {'failure mode' if part == 'mode' else part}",
        description,
        sql(f"cost_by_{part}", _COLUMNS.format(part.capitalize()), limit="50"),
        width=12,
        overrides=_DOLLARS,
    )


COST_ROWS: Final[Sequence[Sequence[Panel]]] = (
    (
        stat(
            "Cost",
            "Model calls of the runs in the range, in US dollars, without those whose price is "
            "unknown: the number beside it; the setting own_prices gives one. After the decisive "
            "step: calls that began after the step that decided the failure. Retries: calls with the "
            "same input as the agent's previous call. Sent again: tokens of inputs that the agent's "
            "previous call had read or written already, at most.",
            sql("cost_totals", ", ".join(_TOTALS)),
            width=24,
            overrides=tuple(field_override(name, **shown) for name, shown in _TOTALS.items()),
        ),
    ),
    (
        lines(
            "Cost over time",
            "Model calls of the runs in the range, by the time of the call. After: calls that began "
            "after the decisive step. A stretch of time without a known price has no point.",
            sql("cost_over_time", "Time AS time, Cost, CostAfter AS After"),
            unit="currencyUSD",
            height=10,
        ),
        table(
            "Most expensive runs",
            "Click a run to open it. After: calls that began after the decisive step. Unpriced: calls of "
            "unknown price, which the cost leaves out.",
            sql(
                "cost_by_run",
                f"{_COLUMNS.format('Run')}, InputTokens + OutputTokens AS Tokens",
                limit="20",
            ),
            width=12,
            overrides=(run_link(), *_DOLLARS, _TOKENS),
        ),
    ),
    (
        _by(
            "agent",
            "After: calls that began after the decisive step. Unpriced: calls of unknown price, which the "
            "cost leaves out.",
        ),
        _by("model", "Likewise by model."),
    ),
    (
        table(
            "Cost by tool",
            "Model calls after which their agent ran a tool; several tools share a call in equal parts. "
            "Unpriced: uses after a call of unknown price, which the cost leaves out.",
            sql(
                "cost_by_tool",
                "Key AS Tool, Cost, Uses, Tokens, UnpricedUses AS Unpriced",
                limit="50",
            ),
            width=12,
            overrides=(*_DOLLARS[:1], _TOKENS),
        ),
        _by("mode", "Of the runs that show a mode; a run with several counts in each."),
    ),
)
"""Each part in half of the width, and the totals above."""


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
