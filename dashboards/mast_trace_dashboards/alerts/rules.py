"""The shipped alert rules.

The spike rules ask how surprising the recent rate per judged run is, not how large a count is: a
busy morning fires nothing, and a handful of runs does neither.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Severity = Literal["page", "warning"]
OnNothing = Literal["ok", "alert", "keep"]


@dataclass(frozen=True)
class Rule:
    """An alert rule.

    Attributes:
        uid: fixed; at most 40 characters.
        title: what is wrong, when it fires.
        query: name of the query whose number is compared.
        above: fires while the number is greater than this.
        recover: once firing, goes on until the number is below this.
        hold: seconds that the number must be above before it fires.
        keep: seconds that it goes on firing after the number has recovered.
        severity: whether somebody is woken up.
        summary: one sentence; ``{label}`` stands for a label's value, ``{value}`` for the number.
        advice: what to look at first.
        no_data: what no row at all means.
        on_error: what a query that fails means.
        dashboard: uid of the dashboard to look at.
    """

    uid: str
    title: str
    query: str
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


_SPIKE_ADVICE = (
    "Open the failure modes of this service, compare with its last deployment, and read one of "
    "the newest runs that shows the mode."
)


def _spike(kind: str, query: str, what: str, where: str) -> tuple[Rule, Rule]:
    """Two levels of one spike: 10^-4 pages, 10^-3 warns."""
    return (
        Rule(
            uid=f"mast-{kind}-page",
            title=f"{what}: far above the last week",
            query=query,
            above=4.0,
            recover=2.0,
            severity="page",
            summary=f"{what} of {where} at a rate with probability 10^-{{value}} by the last week.",
            advice=_SPIKE_ADVICE,
        ),
        Rule(
            uid=f"mast-{kind}-warning",
            title=f"{what}: above the last week",
            query=query,
            above=3.0,
            recover=2.0,
            severity="warning",
            summary=f"{what} of {where} at a rate with probability 10^-{{value}} by the last week.",
            advice=_SPIKE_ADVICE,
        ),
    )


_SERVICE = "{service} ({framework})"

RULES: Final = (
    *_spike("specification", "specification_spike", "Specification violations", _SERVICE),
    *_spike("mode", "mode_spike", "Failure mode {mode}", _SERVICE),
    *_spike("failures", "failure_spike", "Failed runs", _SERVICE),
    Rule(
        uid="mast-judge-behind",
        title="The judge is behind",
        query="judge_behind",
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
        above=0.0,
        recover=1.0,
        severity="page",
        summary="No run of {service} in two hours; yesterday at this time there were {value}.",
        advice="Is the service up? Run `mast-trace doctor` where it runs.",
        no_data="alert",
        on_error="alert",
        dashboard="mast-ingestion",
    ),
)
"""Refused spans are counted by the collector alone: see the Prometheus rules."""
