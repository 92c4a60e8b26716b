"""Decisive errors: where, by whom, how sure."""

from __future__ import annotations

from typing import Final

from mast_trace_dashboards.grafana.board import Dashboard
from mast_trace_dashboards.grafana.panels import bars, run_link, share, sql, stat, table

DECISIVE: Final = Dashboard(
    uid="mast-decisive",
    title="mast-trace / Decisive errors",
    description="The earliest steps whose correction would have turned failures into successes.",
    since="now-7d",
    rows=(
        (
            stat(
                "Failures",
                "Judged runs that did not succeed.",
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
                "Of the decisive steps, as calibrated probability.",
                sql("decisive_confidence", "MedianProbability"),
                unit="percentunit",
                empty="none decided",
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
                "What speaks for the steps",
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
                "Share of the runs that an agent decided that show a mode; n runs it decided.",
                sql("decisive_by_mode", "Agent, Code AS Mode, Share, Runs, AllRuns AS n"),
                overrides=(share("Share"),),
            ),
        ),
        (
            table(
                "Newest decisive errors",
                "Click a run to open it.",
                sql(
                    "newest_decisive",
                    "Time, TraceId AS Run, Name, Agent, Step, Probability AS Confidence, "
                    "arrayStringConcat(Modes, ', ') AS Modes, Reason",
                ),
                overrides=(run_link(), share("Confidence")),
            ),
        ),
    ),
)
