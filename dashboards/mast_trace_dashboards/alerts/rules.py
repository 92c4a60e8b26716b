"""The shipped alert rules.

The spike rules compare the probability of the recent rate per judged run, not counts: a busy
morning fires nothing, nor does a handful of runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from mast_trace_dashboards.queries import QUERIES

Severity = Literal["page", "warning"]
OnNothing = Literal["ok", "alert", "keep"]
Source = Literal["database", "collector"]

REFUSED: Final = "refused_requests"
"""The source of the rule on refused spans: the collectors' metrics."""
DAMAGED: Final = "damaged_files"
"""The source of the rule on damaged files: the collectors' metrics."""


@dataclass(frozen=True)
class Rule:
    """An alert rule.

    Attributes:
        uid: fixed; at most 40 characters.
        title: names the problem.
        query: name of the query whose number is compared; `REFUSED` and `DAMAGED` are read from the
            collectors instead.
        metric: the same number in PromQL, from the /metrics of `mast-trace up`.
        above: fires while the number is greater than this.
        recover: once firing, goes on until the number is below this.
        hold: seconds that the number must be above before it fires.
        keep: seconds that it goes on firing after the number has recovered.
        severity: ``page`` or ``warning``.
        summary: one sentence; ``{label}`` stands for a label's value, ``{value}`` for the number.
        advice: the first step of an investigation.
        no_data: Grafana's state for a query without rows.
        on_error: Grafana's state for a query that fails.
        dashboard: uid of the dashboard to open.
        runbook: name of its runbook; by default the uid without its prefix.
    """

    uid: str
    title: str
    query: str
    metric: str
    above: float
    recover: float
    severity: Severity
    summary: str
    advice: str
    hold: int = 300
    keep: int = 600
    no_data: OnNothing = "ok"
    on_error: OnNothing = "keep"
    dashboard: str = "mast-overview"
    runbook: str = ""

    def __post_init__(self) -> None:
        """Name the runbook after the rule."""
        if not self.runbook:
            object.__setattr__(self, "runbook", self.uid.removeprefix("mast-"))

    @property
    def source(self) -> Source:
        """The source of the number."""
        return "collector" if self.query in {REFUSED, DAMAGED} else "database"

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the labels that distinguish its alerts."""
        if self.source == "collector":
            return ("reason",) if self.query == REFUSED else ()
        return tuple(QUERIES[self.query].columns)[:-1]


_SPIKE_ADVICE = (
    "Open the failure modes of this service, compare with its last deployment, and read one of "
    "the newest runs that shows the mode."
)


def _spike(kind: str, query: str, what: str, where: str) -> tuple[Rule, ...]:
    """Two levels of one spike: a probability of 10^-4 pages, 10^-3 warns."""
    metric = f'mast_trace_spike_evidence{{kind="{query.removesuffix("_spike")}"}}'
    summary = (
        f"{what} of {where}: well above the last week, at whose rate so many would have a "
        "probability of 10^-{value}."
    )
    levels: tuple[tuple[Severity, str, float], ...] = (("page", "far ", 4.0), ("warning", "", 3.0))
    return tuple(
        Rule(
            uid=f"mast-{kind}-{severity}",
            title=f"{what}: {far}above the last week",
            query=query,
            metric=metric,
            above=above,
            recover=2.0,
            severity=severity,
            summary=summary,
            advice=_SPIKE_ADVICE,
            runbook=kind,
        )
        for severity, far, above in levels
    )


_SERVICE = "{service} ({framework})"

RULES: Final = (
    *_spike("specification", "specification_spike", "Specification violations", _SERVICE),
    *_spike("mode", "mode_spike", "Failure mode {mode}", _SERVICE),
    *_spike("failures", "failure_spike", "Failed runs", _SERVICE),
    *_spike("suspects", "suspect_spike", "Suspect runs", _SERVICE),
    Rule(
        uid="mast-new-pattern",
        title="A new pattern of failure",
        query="new_patterns",
        metric="mast_trace_new_patterns",
        above=0.0,
        recover=1.0,
        hold=0,
        severity="warning",
        summary="{value} patterns of failure of {service} are new in the last day, or came back after they were "
        "resolved.",
        advice="Open the patterns of this service, read the newest run of each, and acknowledge what is known.",
        dashboard="mast-modes",
    ),
    Rule(
        uid="mast-judge-behind",
        title="The judge is behind",
        query="judge_behind",
        metric="mast_trace_judge_oldest_waiting_seconds",
        above=900.0,
        recover=300.0,
        severity="page",
        summary="A finished run has waited {value} s for its verdict.",
        advice="Is a worker running (`mast-trace judge work`)? Add shards, or look at model calls.",
        no_data="alert",
        on_error="alert",
        dashboard="mast-judge",
    ),
    Rule(
        uid="mast-judge-errors",
        title="The judge's model calls fail",
        query="judge_errors",
        metric="mast_trace_judge_failed_call_share",
        above=0.2,
        recover=0.05,
        severity="warning",
        summary="{value} of the calls of {model} failed in the last hour.",
        advice="Look at the errors in mast_judge_calls: key, quota, or model name.",
        dashboard="mast-judge",
    ),
    Rule(
        uid="mast-judge-budget",
        title="The judge spends more than planned",
        query="judge_spending",
        metric="mast_trace_judge_day_cost_usd",
        above=20.0,
        recover=20.0,
        hold=0,
        severity="warning",
        summary="{value} US dollars were spent on judging in the last 24 hours.",
        advice="Lower the daily cap or the share of runs that a model judges.",
        dashboard="mast-judge",
    ),
    Rule(
        uid="mast-silence",
        title="No runs arrive",
        query="silence",
        metric="mast_trace_runs_missing",
        above=0.0,
        recover=1.0,
        severity="page",
        summary="No run of {service} in two hours; yesterday at this time there were {value}.",
        advice="Is the service up? Run `mast-trace doctor` where it runs.",
        no_data="alert",
        on_error="alert",
        dashboard="mast-ingestion",
    ),
    Rule(
        uid="mast-spans-refused",
        title="The collector refuses spans",
        query=REFUSED,
        metric="mast_trace_collector_refused_requests_total",
        above=0.0,
        recover=1.0,
        severity="warning",
        summary="In ten minutes {value} requests with spans were refused ({reason}).",
        advice='With reason "spool_full" the database is too slow or away; senders keep such spans '
        "and try again for some minutes, and nothing acknowledged is lost.",
        dashboard="mast-ingestion",
    ),
    Rule(
        uid="mast-spool-damaged",
        title="Files of a collector were damaged",
        query=DAMAGED,
        metric="mast_trace_collector_damaged_files",
        above=0.0,
        recover=1.0,
        hold=0,
        severity="page",
        summary="{value} damaged files of collectors are set aside: acknowledged spans may be lost.",
        advice="The collector's log and the notes in the folders `damaged` of its data folder say how "
        "many. Look for the cause (the system's log, the disk, other programs that write there), then "
        "empty these folders: the alert ends.",
        dashboard="mast-ingestion",
    ),
)


def tuned(
    rules: Iterable[Rule] = RULES, *, daily_budget: float | None = None, pace: float = 1.0
) -> Sequence[Rule]:
    """Return the rules for one installation.

    Args:
        rules: to start from.
        daily_budget: US dollars a day above which the judge spends too much.
        pace: factor of the waiting times (`hold`, `keep`). 1 is the shipped value; a smaller one
            serves to test, within minutes, that an alert arrives.
    """
    changed = [
        replace(rule, hold=round(rule.hold * pace), keep=round(rule.keep * pace)) for rule in rules
    ]
    if daily_budget is None:
        return changed
    return [
        replace(rule, above=daily_budget, recover=daily_budget)
        if rule.query == "judge_spending"
        else rule
        for rule in changed
    ]
