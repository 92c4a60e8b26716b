"""The tables of the page on alerts, made from the rules in all their forms."""

from __future__ import annotations

from collections import defaultdict
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
    "| rule | level | fires above | ends below | waits | goes on |\n|---|---|---:|---:|---:|---:|"
)
ONLY_PROMETHEUS = "| rule, of Prometheus alone | level | waits |\n|---|---|---:|"


def tables() -> Mapping[str, str]:
    """Return a table of rules for each runbook to which one of them links, by its name."""
    rows: dict[str, list[str]] = defaultdict(list)
    for rule in RULES:
        rows[rule.runbook].append(_row(rule))
    made = {name: "\n".join([HEAD, *lines]) for name, lines in rows.items()}
    for rule in rule_file()["groups"][0]["rules"]:
        name = rule["annotations"]["runbook_url"].rpartition("/")[2]
        if name not in rows:
            made[name] = f"{ONLY_PROMETHEUS}\n{_prometheus_row(rule)}"
    return made


def _row(rule: Rule) -> str:
    number = f"| {rule.above:g} | {rule.recover:g} | {rule.hold} s | {rule.keep} s |"
    return f"| `{rule.uid}` | {rule.severity} {number}"


def _prometheus_row(rule: Mapping[str, Any]) -> str:
    return f"| `{rule['alert']}` | {rule['labels']['severity']} | {rule.get('for', '0s')} |"
