"""The dashboards of failure modes by framework, agent and model, and of decisive errors."""

from __future__ import annotations

from typing import Final

from mast_trace_dashboards.grafana.board import Dashboard
from mast_trace_dashboards.grafana.panels import (
    Panel,
    Thresholds,
    bars,
    field_override,
    lines,
    share,
    sql,
    stat,
    table,
)
from mast_trace_dashboards.grafana.runs import newest_failures

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
            table(
                "Deciding agents and modes",
                "Share of the runs that an agent decided that show a mode; n: those in which it was looked for.",
                sql("decisive_by_mode", "Agent, Code AS Mode, Share, Runs, Examined AS n"),
                overrides=(share("Share"),),
            ),
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
            newest_failures(width=24),
        ),
    ),
)

_THRESHOLDS = Thresholds(warn=0.15, bad=0.3)


def _against(query: str, column: str, description: str) -> Panel:
    return table(
        f"Modes by {column.lower()}",
        f"{description} n: those in which the mode was looked for; a share of few means little.",
        sql(query, f"{column}, Code AS Mode, Share, Runs, Examined AS n"),
        width=12,
        overrides=(share("Share", _THRESHOLDS),),
    )


MODES: Final = Dashboard(
    uid="mast-modes",
    title="mast-trace / Failure modes and agents",
    description="Failure modes by framework, service, agent and model.",
    since="now-7d",
    rows=(
        (
            lines(
                "Failures by category over time",
                "Share that shows a mode of each MAST category, of the runs in which one was looked for.",
                sql("categories_over_time", "Time AS time, Category, Share") + "\nORDER BY time",
                unit="percentunit",
                width=24,
                maximum=1.0,
            ),
            lines(
                "Failure modes over time",
                "Share of the runs in which each mode was looked for that show it. A mode without a "
                "line was not examined.",
                sql("modes_over_time", "Time AS time, Code, Share") + "\nORDER BY time",
                unit="percentunit",
                width=24,
                maximum=1.0,
            ),
            table(
                "Patterns",
                "Failures that recur: a mode at an agent, with a tool or a form of text. p: of so many failed "
                "runs among its own if it had nothing to do with failing, corrected for all patterns. Name: a sentence of "
                "the model beside it, which rests on quotes of the runs; empty without one.",
                sql(
                    "patterns",
                    "Code AS Mode, if(Peer = '', Agent, concat(Agent, ' to ', Peer)) AS Agent, Tool, Text, "
                    "Sentence AS Name, if(empty(Sentence), '', NamedBy) AS `Named by`, Share, Low, High, Runs, "
                    "Examined AS n, Trend, State, FirstSeen AS `First seen`, LastSeen AS `Last seen`, "
                    "Corrected AS p, arrayStringConcat(Versions, ', ') AS Versions, PatternId AS Id",
                ),
                width=24,
                overrides=(share("Share", _THRESHOLDS), share("Low"), share("High")),
            ),
            lines(
                "Patterns over time",
                "Share of the runs in which a pattern was looked for that show it.",
                sql("patterns_over_time", "Time AS time, Name, Share") + "\nORDER BY time",
                unit="percentunit",
                width=24,
                maximum=1.0,
            ),
            table(
                "Actions that separate failed from successful runs",
                "Of runs with recorded outcomes. Ochiai: suspicion from 0 to 1; p: exact test, corrected for all "
                "actions of the service. Neither says that the action is the cause.",
                sql(
                    "separating_actions",
                    "Service, Agent, concat(if(Absent, 'without ', ''), if(Action = '', 'acts', Action)) AS Action, "
                    "FailedRuns AS Failed, AllFailed AS `of failed`, PassedRuns AS Passed, AllPassed AS `of passed`, "
                    "Ochiai, Corrected AS p",
                    limit="50",
                ),
                width=12,
                overrides=(field_override("Ochiai", decimals=2, unit="none"),),
            ),
            table(
                "Versions against those before",
                "Rates of a service's version and of all versions before it. Evidence: minus the logarithm of a "
                "probability, as in the alerts; from 3 on it is a warning.",
                sql(
                    "version_regressions",
                    "Service, Version, Measure, Runs, Examined AS n, RunsBefore AS Before, "
                    "ExaminedBefore AS `n before`, Evidence",
                    limit="50",
                ),
                width=12,
                overrides=(field_override("Evidence", decimals=1, unit="none"),),
            ),
            _against("modes_by_framework", "Framework", "Share of each framework's runs."),
            _against("modes_by_model", "Model", "Share of the runs in which a model is used."),
            _against("modes_by_agent", "Agent", "Share of the runs in which an agent acts."),
            table(
                "Modes that occur together",
                "Lift: times as often as if the two were independent; near 1 means no relation.",
                sql("mode_pairs", "One, Other, Runs, Lift"),
                width=12,
                overrides=(field_override("Lift", decimals=1, unit="none"),),
            ),
            table(
                "Agents that decide failures",
                "Failed runs in which an agent made the decisive error, of those in which it acts.",
                sql(
                    "decisive_agents",
                    "Agent, ServiceName AS Service, Share, Decided, Failures AS n, "
                    "MeanProbability AS Confidence",
                ),
                width=12,
                overrides=(share("Share", Thresholds(0.3, 0.6)), share("Confidence")),
            ),
            table(
                "Hand-offs",
                "Hand-offs of control between agents.",
                sql("handoffs", "Source, Target, Times, Runs, Failed"),
                width=12,
            ),
            table(
                "Tools that fail",
                "By tool and calling agent, with the latest error.",
                sql("tool_errors", "Tool, Agent, Share, Failed, Calls AS n, LastError"),
                width=12,
                overrides=(share("Share", Thresholds(0.05, 0.2)),),
            ),
            _against("modes_by_service", "Service", "Share of each service's runs."),
            table(
                "Teams by version",
                "How multi-agent a service is, as far as no texts are needed, of the newest 500 runs of each version at "
                "most; shares from 20 runs on. "
                "`mast-trace profile` has the rest, with intervals. Left out: runs of that version whose spans "
                "retention removed, which no measure counts.",
                sql(
                    "teams_by_version",
                    "Service, Version, AgentsPerRun AS Agents, MessagesPerRun AS Messages, Talk, "
                    "ReadForEach AS `Read for each written`, Concurrency, "
                    "ChosenByAgents AS `Agents choose`, Runs AS n, LeftOut AS `Left out`",
                ),
                overrides=(
                    share("Talk"),
                    share("Concurrency"),
                    share("Agents choose"),
                    field_override("Agents", decimals=1, unit="none"),
                    field_override("Messages", decimals=1, unit="none"),
                    field_override("Read for each written", decimals=1, unit="none"),
                ),
            ),
        ),
    ),
)
