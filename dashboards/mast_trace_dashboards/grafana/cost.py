"""The dashboard of cost and latency: what runs spend and how long they take, by their parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mast_trace_dashboards.grafana.board import Dashboard
from mast_trace_dashboards.grafana.panels import (
    Panel,
    counted,
    field_override,
    lines,
    run_link,
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


_LATENCY: Final = (
    sql("latency_over_time", "Time AS time, Kind, MedianSeconds AS median, P95Seconds AS `95 %`")
    + "\nWHERE Kind"
)


def _costs(part: str, select: str, limit: int = 50) -> str:
    """Return the text on one part of the costs."""
    return sql("costs", select, parts=f"['{part}']", limit=str(limit))


def _by(part: str, description: str) -> Panel:
    select = _COLUMNS.format(part.capitalize())
    return table(
        f"Cost by {'failure mode' if part == 'mode' else part}",
        description,
        sql("cost_by_mode", select, limit="50") if part == "mode" else _costs(part, select),
        width=12,
        overrides=_DOLLARS,
    )


COST: Final = Dashboard(
    uid="mast-cost",
    title="mast-trace / Cost and latency",
    description="Cost and duration of the runs: over time, by agent, tool, model and failure mode.",
    rows=(
        (
            stat(
                "Cost",
                "Model calls of the runs in the range, in US dollars, without those whose price is "
                "unknown: the number beside it; the setting own_prices gives one. After the decisive "
                "step: calls that began after the step that decided the failure. Retries: calls with the "
                "same input as the agent's previous call. Sent again: tokens of inputs that the agent's "
                "previous call had read or written already, at most.",
                _costs("total", ", ".join(_TOTALS)),
                width=24,
                overrides=tuple(field_override(name, **shown) for name, shown in _TOTALS.items()),
            ),
            lines(
                "Cost over time",
                "Model calls of the runs in the range, by the time of the call. After: calls that began "
                "after the decisive step. A stretch of time without a known price has no point.",
                _costs(
                    "time", "toDateTime(toUInt32(Key)) AS time, Cost, CostAfter AS After", 10_000
                )
                + "\nORDER BY time",
                unit="currencyUSD",
                height=10,
            ),
            table(
                "Most expensive runs",
                "Click a run to open it. After: calls that began after the decisive step. Unpriced: calls of "
                "unknown price, which the cost leaves out.",
                _costs(
                    "run", f"{_COLUMNS.format('Run')}, InputTokens + OutputTokens AS Tokens", 20
                ),
                width=12,
                overrides=(run_link(), *_DOLLARS, _TOKENS),
            ),
            _by(
                "agent",
                "After: calls that began after the decisive step. Unpriced: calls of unknown price, which the "
                "cost leaves out.",
            ),
            _by("model", "Likewise by model."),
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
            lines(
                "Latency of runs",
                "Durations of the runs that began in each stretch of time: one in two, and nineteen of twenty, took no longer.",
                f"{_LATENCY} = 'run' ORDER BY time",
                unit="s",
            ),
            lines(
                "Latency of tools and models",
                "Likewise of tool calls and model calls.",
                f"{_LATENCY} != 'run' ORDER BY time",
                unit="s",
            ),
            lines(
                "Errors of tools over time",
                "Share of the tool calls that failed; the bars are n, all calls.",
                sql("latency_over_time", "Time AS time, FailedShare AS failed, Calls AS n")
                + "\nWHERE Kind = 'tool' ORDER BY time",
                unit="percentunit",
                maximum=1.0,
                overrides=(counted(),),
            ),
        ),
    ),
)
