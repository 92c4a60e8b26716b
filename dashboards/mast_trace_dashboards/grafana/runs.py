"""The dashboards of the overview, of the list of runs, and of one run."""

from __future__ import annotations

from typing import Final

from mast_trace_dashboards.alerts.config import DEFAULT_WEB
from mast_trace_dashboards.grafana.board import Dashboard, link_to, text_variable
from mast_trace_dashboards.grafana.panels import (
    NOT_EXAMINED,
    Panel,
    Thresholds,
    field_override,
    lines,
    run_link,
    share,
    sql,
    stat,
    table,
    target,
)


def newest_failures(width: int) -> Panel:
    """Return the list of the newest failed runs, with where to look first in each; its width is in columns."""
    return table(
        "Newest failures",
        "Each with the place to look at first; click a run to open it.",
        sql(
            "runs",
            "Start, TraceId AS Run, Name, LookAgent AS `Look first at`, LookStep AS `Its step`, LookWhy AS Why, "
            "Confirmation AS Replays, arrayStringConcat(Modes, ', ') AS Modes",
            outcomes="['failure']",
            limit="50",
        ),
        width=width,
        overrides=(run_link(),),
    )


EXPLORER: Final = Dashboard(
    uid="mast-runs",
    title="mast-trace / Run explorer",
    description="The newest runs with outcome, failure modes and where to look first; click one.",
    rows=(
        (
            table(
                "Runs",
                "Newest first. A column's filter narrows the list. "
                "Tokens are what the column beside them says: exact, at least, being counted, or about.",
                sql(
                    "runs",
                    "Start, TraceId AS Run, Name, Framework, Outcome, "
                    "arrayStringConcat(Modes, ', ') AS Modes, LookAgent AS Agent, "
                    "LookStep AS Step, LookWhy AS Why, LookBasis AS Evidence, Confirmation AS Replays, Steps, DurationMs AS Duration, "
                    "InputTokens + OutputTokens AS Tokens, Totals AS Counted, JudgeCostUsd AS Judging, State",
                    limit="500",
                ),
                height=24,
                overrides=(
                    run_link(),
                    field_override("Duration", unit="ms"),
                    field_override("Judging", unit="currencyUSD", decimals=4),
                    field_override("Agent", displayName="Look first at"),
                    field_override("Step", displayName="Its step"),
                ),
            ),
        ),
    ),
)

_TRACE = """SELECT TraceId AS traceID, SpanId AS spanID, ParentSpanId AS parentSpanID,
  ServiceName AS serviceName, SpanName AS operationName, Timestamp AS startTime,
  Duration / 1000000 AS duration, if(StatusCode = 'Error', 2, 0) AS statusCode,
  StatusMessage AS statusMessage,
  arrayMap(key -> map('key', key, 'value', SpanAttributes[key]), mapKeys(SpanAttributes)) AS tags,
  arrayMap(key -> map('key', key, 'value', ResourceAttributes[key]),
    mapKeys(ResourceAttributes)) AS serviceTags
FROM otel_traces
WHERE TraceId = ${trace_id:singlequote}
LIMIT 1 BY SpanId
LIMIT 5000"""

_MARKED = field_override(
    "Found",
    mappings=[
        {"type": "value", "options": {"decisive": {"color": "red", "text": "DECISIVE", "index": 0}}}
    ],
    custom__cellOptions={"type": "color-background"},
    custom__width=100,
)

WEB_VARIABLE: Final = "web"

RUN: Final = Dashboard(
    uid="mast-run",
    title="mast-trace / Run",
    description="One run: verdict, steps, trace.",
    filters=False,
    variables=(
        text_variable("trace_id", "Run"),
        text_variable(WEB_VARIABLE, "Web view", DEFAULT_WEB),
    ),
    since="now-30d",
    links=(
        link_to(
            "Web view",
            "${web}/runs/${trace_id}",
            "The same run in mast-trace's own view: steps, evidence, labels",
        ),
    ),
    rows=(
        (
            stat("Outcome", "As recorded, else as judged.", sql("run", "Outcome"), empty="unknown"),
            stat("Decisive agent", "Who decided it.", sql("run", "DecisiveAgent"), empty="none"),
            stat("Decisive step", "In which step.", sql("run", "DecisiveStep"), empty="none"),
            stat(
                "Confidence",
                "Probability of that step, where it was measured on runs like this one.",
                sql("run", "DecisiveProbability"),
                unit="percentunit",
                empty="not measured",
            ),
            stat("Steps", "Messages, tool calls, model actions.", sql("run", "Steps")),
            stat("Duration", "From first to last span.", sql("run", "DurationMs"), unit="ms"),
            table(
                "Verdict",
                "The judge's findings, with their reasons.",
                sql(
                    "run",
                    "Name, Framework, TerminationReason AS Ended, "
                    "arrayStringConcat(Modes, ', ') AS Modes, LookAgent AS `Look first at`, LookStep AS `Its step`, "
                    "LookWhy AS Why, DecisiveReason AS Reason, "
                    "Confirmation AS Replays, Method, State, StateReason",
                ),
                height=4,
            ),
            table(
                "What happened",
                "Messages, tool calls, turns and model calls by time; the decisive step is marked.",
                sql(
                    "run_spans",
                    "Timestamp AS Time, if(SpanId GLOBAL IN (SELECT DecisiveSpanId FROM "
                    "mast_latest_verdicts WHERE TraceId = ${trace_id:singlequote}), "
                    "'decisive', '') AS Found, Operation, Agent, "
                    "arrayStringConcat(Recipients, ', ') AS Recipients, ToolName AS Tool, "
                    "left(Text, 400) AS Text, Error, DurationMs AS Duration",
                ),
                height=14,
                overrides=(field_override("Duration", unit="ms"), _MARKED),
            ),
            Panel(
                "traces",
                "Trace",
                "The spans as a waterfall.",
                [target(_TRACE, "traces")],
                24,
                16,
            ),
        ),
    ),
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
