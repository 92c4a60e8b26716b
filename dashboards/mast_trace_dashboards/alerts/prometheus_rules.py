"""The alert rules as a file for Prometheus, as an alternative to Grafana's alerting.

The numbers come from `mast-trace up`, which serves the results of the named queries on /metrics:
the exact test is the same in all three systems, and needs no week of Prometheus' own history.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from mast_trace_dashboards.alerts.config import DEFAULT_WEB
from mast_trace_dashboards.alerts.files import as_yaml
from mast_trace_dashboards.alerts.rules import DAMAGED, RULES, Rule
from mast_trace_dashboards.alerts.runbooks import address, name_of

NAME: Final = "mast-trace.rules.yaml"
_HEAD: Final = """\
# Alert rules for those who keep Prometheus instead of Grafana's alerting or `mast-trace alerts`.
# They read what `mast-trace up` serves on /metrics; MastSpansRefused, MastSpoolDamaged,
# MastSpansDeadLettered and MastNoSpans also what every `mast-trace collect` serves there.
# Made by `mast-trace dashboards export`. Test: promtool test rules tests/mast-trace.rules.test.yaml
"""
_MORE: Final[tuple[dict[str, Any], ...]] = (
    {
        "alert": "MastSpansDeadLettered",
        "expr": "sum(increase(mast_trace_collector_dead_lettered_spans_total[1h])) > 0",
        "labels": {"app": "mast-trace", "severity": "warning"},
        "annotations": {
            "summary": "Spans were set aside that cannot be stored.",
            "description": "mast-trace collect dead-letters list",
            "dashboard": "mast-ingestion",
        },
    },
    {
        "alert": "MastNoSpans",
        "expr": "sum(increase(mast_trace_collector_accepted_spans_total[2h])) == 0\n"
        "  and sum(increase(mast_trace_collector_accepted_spans_total[2h] offset 1d)) > 0",
        "for": "5m",
        "labels": {"app": "mast-trace", "severity": "page"},
        "annotations": {
            "summary": "No spans in two hours, while there were some yesterday at this time.",
            "description": "Are the agents up? Run mast-trace doctor where they run.",
            "dashboard": "mast-ingestion",
        },
    },
    {
        "alert": "MastMetricsMissing",
        "expr": "absent(mast_trace_database_up == 1)",
        "for": "5m",
        "labels": {"app": "mast-trace", "severity": "page"},
        "annotations": {
            "summary": "The state of the agents is unknown: mast-trace up is down, or its database.",
            "description": "Look at the target's scrape error, then at the log of mast-trace up.",
            "dashboard": "mast-ingestion",
        },
    },
)


def rule_file(
    rules: Iterable[Rule] = RULES, *, interval: int = 60, web: str = DEFAULT_WEB
) -> dict[str, Any]:
    """Return the alert rules.

    Args:
        rules: as shipped, or `tuned`.
        interval: seconds between two evaluations.
        web: address of the web view, which serves the runbooks.
    """
    more = [_with_runbook(rule, address(web, name_of(rule["alert"]))) for rule in _MORE]
    group = {
        "name": "mast-trace",
        "interval": _duration(interval),
        "rules": [*(_rule(rule, web) for rule in rules), *more],
    }
    return {"groups": [group]}


def text(rules: Iterable[Rule] = RULES, web: str = DEFAULT_WEB) -> str:
    """Return the shipped file."""
    return _HEAD + as_yaml(rule_file(rules, web=web))


def write(folder: Path, rules: Iterable[Rule] = RULES, web: str = DEFAULT_WEB) -> Path:
    """Write the file into ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / NAME
    path.write_text(text(rules, web), encoding="utf-8")
    return path


def name(rule: Rule) -> str:
    """Return a rule's name as Prometheus writes names."""
    return "".join(part.capitalize() for part in rule.uid.split("-"))


def _rule(rule: Rule, web: str) -> dict[str, Any]:
    made = {
        "alert": name(rule),
        "expr": _expression(rule),
        "for": _duration(rule.hold),
        "keep_firing_for": _duration(rule.keep),
        "labels": {"app": "mast-trace", "severity": rule.severity},
        "annotations": {
            "summary": _templated(rule.summary, rule.labels),
            "description": rule.advice,
            "dashboard": rule.dashboard,
        },
    }
    return _with_runbook(made, address(web, rule.runbook))


def _with_runbook(rule: dict[str, Any], runbook: str) -> dict[str, Any]:
    return {**rule, "annotations": {**rule["annotations"], "runbook_url": runbook}}


def _expression(rule: Rule) -> str:
    """Compare, and keep a firing alert until the number is below its recovery threshold."""
    by = f"by ({', '.join(rule.labels)}) " if rule.labels else ""
    if rule.query == DAMAGED:
        return f"sum({rule.metric}) > {rule.above:g}"
    if rule.source == "collector":
        return f"sum {by}(increase({rule.metric}[10m])) > {rule.above:g}"
    number = f"max {by}({rule.metric})"
    compared = f"{number} > {rule.above:g}"
    if rule.recover >= rule.above:
        return compared
    firing = f'ALERTS{{alertname="{name(rule)}", alertstate="firing"}}'
    return (
        f"{compared}\n  or {number} >= {rule.recover:g} and on ({', '.join(rule.labels)}) {firing}"
    )


def _templated(sentence: str, labels: Sequence[str]) -> str:
    for label in labels:
        sentence = sentence.replace(f"{{{label}}}", f"{{{{ $labels.{label} }}}}")
    return sentence.replace("{value}", '{{ printf "%.4g" $value }}')


def _duration(seconds: int) -> str:
    return f"{seconds // 60}m" if seconds and seconds % 60 == 0 else f"{seconds}s"
