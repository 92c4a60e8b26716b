"""The table of the page on alerts, made from the rules in all their forms."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from documentation.rule_tables import ROOT

from mast_trace_dashboards.alerts.prometheus_rules import rule_file
from mast_trace_dashboards.alerts.rules import RULES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mast_trace_dashboards.alerts.rules import Rule

PAGE = ROOT / "docs" / "operate" / "alerts.md"
RUNBOOKS = ROOT / "dashboards" / "mast_trace_dashboards" / "alerts" / "runbooks"
HEAD = (
    "| rule, and its runbook | says | level | fires above | ends below | waits | goes on |\n"
    "|---|---|---|---:|---:|---:|---:|"
)


def table() -> str:
    """Return the table of all rules, those of Prometheus alone at its end."""
    own = {rule.runbook for rule in RULES}
    others = [
        _prometheus_row(rule)
        for rule in rule_file()["groups"][0]["rules"]
        if _runbook_of(rule) not in own
    ]
    return "\n".join([HEAD, *map(_row, RULES), *others])


def _row(rule: Rule) -> str:
    number = f"| {rule.above:g} | {rule.recover:g} | {rule.hold} s | {rule.keep} s |"
    return f"| {_linked(rule.uid, rule.runbook)} | {rule.title} | {rule.severity} {number}"


def _prometheus_row(rule: Mapping[str, Any]) -> str:
    title = rule["annotations"]["summary"].rstrip(".")
    level, waits = rule["labels"]["severity"], rule.get("for", "0s")
    return f"| {_linked(rule['alert'], _runbook_of(rule))} | {title} | {level} | | | {waits} | |"


def _runbook_of(rule: Mapping[str, Any]) -> str:
    name: str = rule["annotations"]["runbook_url"].rpartition("/")[2]
    return name


def _linked(rule: str, runbook: str) -> str:
    return f"[`{rule}`]({os.path.relpath(RUNBOOKS, PAGE.parent)}/{runbook}.md)"
