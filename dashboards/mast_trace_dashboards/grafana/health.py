"""The dashboards of the judge's health and of ingestion."""

from __future__ import annotations

from typing import Final

from mast_trace_dashboards.grafana.board import Dashboard
from mast_trace_dashboards.grafana.panels import (
    Thresholds,
    counted,
    field_override,
    lines,
    share,
    sql,
    stat,
    table,
)

JUDGE: Final = Dashboard(
    uid="mast-judge",
    title="mast-trace / Judge health",
    description="The judge's backlog, cost and failures.",
    rows=(
        (
            stat(
                "Waiting",
                "Finished runs of which a verdict, or a model's reading, is due.",
                sql("judge_lag", "Waiting"),
                thresholds=Thresholds(50, 500),
            ),
            stat(
                "Oldest wait",
                "Since the oldest of those ended. Over 15 minutes an alert fires.",
                sql("judge_lag", "OldestWaitSeconds"),
                unit="s",
                thresholds=Thresholds(300, 900),
            ),
            stat(
                "Median lag",
                "From a run's end to its verdict.",
                sql("judge_lag", "MedianLagSeconds"),
                unit="s",
                empty="none judged",
            ),
            stat(
                "95 % lag",
                "Nineteen of twenty runs have their verdict within this time.",
                sql("judge_lag", "P95LagSeconds"),
                unit="s",
                empty="none judged",
            ),
            stat("Judged", "Runs with a verdict.", sql("judge_lag", "Judged")),
            stat(
                "Unscored",
                "Runs on which no verdict could be reached; the runs list says why.",
                sql("judge_lag", "Unscored"),
                thresholds=Thresholds(1, 20),
            ),
            lines(
                "Model calls over time",
                "Share of the judge's calls that failed; the bars are n, all calls.",
                sql(
                    "judge_calls_over_time",
                    "Time AS time, FailedShare AS failed, Calls AS n",
                ),
                unit="percentunit",
                maximum=1.0,
                overrides=(counted(),),
            ),
            lines(
                "Cost over time",
                "US dollars of model calls.",
                sql("judge_calls_over_time", "Time AS time, Cost AS cost"),
                unit="currencyUSD",
            ),
            table(
                "Agreement with people",
                "On the outcome of runs that people labelled, by judge version. Kappa is agreement "
                "beyond chance (1 is perfect, 0 is guessing); n below 30 says little.",
                sql(
                    "judge_agreement",
                    "JudgeVersion AS Version, Labels AS n, Agreement, Kappa, "
                    "HumanFailures AS `Failed, people`, JudgeFailures AS `Failed, judge`",
                ),
                height=6,
                overrides=(
                    share("Agreement"),
                    field_override("Kappa", decimals=2, unit="none"),
                    share("Failed, people"),
                    share("Failed, judge"),
                ),
            ),
            table(
                "Model calls",
                "Calls of the judge's models by stage, with retries, failures and cost.",
                sql(
                    "judge_calls",
                    "Model, Stage, Calls, Failed, AllRetries AS Retries, "
                    "AllInputTokens AS Input, AllCachedTokens AS Cached, AllOutputTokens AS Output, "
                    "Cost, P95Ms AS Slow",
                ),
                overrides=(
                    field_override("Cost", unit="currencyUSD", decimals=4),
                    field_override("Slow", unit="ms", displayName="95 % duration"),
                ),
            ),
        ),
    ),
)

INGESTION: Final = Dashboard(
    uid="mast-ingestion",
    title="mast-trace / Ingestion",
    description="Arriving spans, and irregularities among them.",
    rows=(
        (
            stat("Runs", "Runs that started in the range.", sql("run_health", "Runs")),
            stat(
                "Without root",
                "Their root span has not arrived: still running, or lost.",
                sql("run_health", "WithoutRoot"),
                thresholds=Thresholds(10, 100),
            ),
            stat(
                "Foreign",
                "Traces that other instrumentations sent.",
                sql("run_health", "UnknownFramework"),
            ),
            stat("With errors", "Runs with a failed span.", sql("run_health", "WithErrors")),
            stat(
                "Newest span",
                "Time at which the newest span was stored.",
                sql("run_health", "LastSpan"),
                unit="dateTimeFromNow",
                empty="none",
                width=8,
            ),
            lines(
                "Spans",
                "Stored spans by framework. One that was sent twice counts twice.",
                sql("spans_over_time", "Time AS time, Framework, Spans") + "\nORDER BY time",
                stacked=True,
            ),
            lines(
                "Time to storage",
                "From the end of a span until it can be queried; the bars are those over a minute.",
                sql(
                    "arrival",
                    "Time AS time, MedianSeconds AS median, P95Seconds AS `95 %`, Late AS late",
                ),
                unit="s",
                overrides=(counted("late"),),
            ),
            table(
                "Tables",
                "Size of the tables on disk.",
                sql("table_sizes", "Table, Rows, Bytes, BytesPerRow AS `Bytes a row`, Parts"),
                height=8,
                overrides=(
                    field_override("Bytes", unit="bytes"),
                    field_override("Bytes a row", unit="bytes"),
                ),
            ),
        ),
    ),
)
