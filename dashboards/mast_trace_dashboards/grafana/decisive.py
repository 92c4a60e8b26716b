"""The dashboard of decisive errors: position, agent, certainty."""

from __future__ import annotations

from typing import Final

from mast_trace_dashboards.grafana.board import Dashboard
from mast_trace_dashboards.grafana.panels import (
    bars,
    field_override,
    run_link,
    share,
    sql,
    stat,
    table,
)

DECISIVE: Final = Dashboard(
    uid="mast-decisive",
    title="mast-trace / Decisive errors",
    description="The earliest steps whose correction would have turned failures into successes.",
    since="now-7d",
    rows=(
        (
            stat(
                "Failures",
                "Judged runs whose outcome is failure.",
                sql("decisive_confidence", "Failures"),
            ),
            stat(
                "Undecided",
                "Share of those for which the judge names no step: it is not sure enough.",
                sql("decisive_confidence", "UndecidedShare"),
                unit="percentunit",
            ),
            stat(
                "Median confidence",
                "Of the decisive steps whose probability was measured on runs like them.",
                sql("decisive_confidence", "MedianProbability"),
                unit="percentunit",
                empty="not measured",
            ),
        ),
        (
            bars(
                "Position in the run",
                "Share of decisive errors in each tenth of the run. Early: planning; late: checks.",
                sql("decisive_positions", "toString(Decile) AS Tenth, Share"),
                unit="percentunit",
            ),
            table(
                "Evidence for the steps",
                "The rules that named the decisive steps.",
                sql("decisive_rules", "Rule, Method, Runs, MeanProbability AS Confidence"),
                width=12,
                height=8,
                overrides=(share("Confidence"),),
            ),
        ),
        (
            table(
                "Deciding agents and modes",
                "Share of the runs that an agent decided that show a mode; n: those in which it was looked for.",
                sql("decisive_by_mode", "Agent, Code AS Mode, Share, Runs, Examined AS n"),
                overrides=(share("Share"),),
            ),
        ),
        (
            table(
                "Confirmed decisive errors",
                "Judged failures by what replays have shown of them, with the replays' own model calls and "
                "cost; these calls are in no other number. Unpriced: replays whose cost is unknown.",
                sql(
                    "confirmed_decisive",
                    "Conclusion, Runs, Share, Replays, LiveCalls AS `Live calls`, CostUsd AS Cost, Unpriced",
                ),
                height=8,
                overrides=(share("Share"), field_override("Cost", unit="currencyUSD", decimals=4)),
            ),
        ),
        (
            table(
                "Newest decisive errors",
                "Click a run to open it.",
                sql(
                    "newest_decisive",
                    "Time, TraceId AS Run, Name, Agent, Step, Confirmation AS Replays, "
                    "Probability AS Confidence, "
                    "arrayStringConcat(Modes, ', ') AS Modes, Reason",
                ),
                overrides=(run_link(), share("Confidence")),
            ),
        ),
    ),
)
