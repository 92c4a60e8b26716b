"""The alert rules as files for Grafana's provisioning, in YAML that people can read.

Fields are those that Grafana reads (``rules_types.go``). A rule's query gives a table with one
column of numbers and others of strings: one alert instance per row. Texts use ``{{ .Labels }}`` and
``{{ .Values }}``, because ``$labels`` would be expanded as an environment variable.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import yaml

from mast_trace_dashboards.alerts.config import DEFAULT_WEB
from mast_trace_dashboards.alerts.rules import RULES, Rule
from mast_trace_dashboards.alerts.runbooks import address
from mast_trace_dashboards.queries import QUERIES

DATASOURCE: Final = "mast-clickhouse"
_NO_DATA: Final = {"ok": "OK", "alert": "Alerting", "keep": "KeepLast"}
_ON_ERROR: Final = {"ok": "OK", "alert": "Error", "keep": "KeepLast"}
_WEEK_AND_WINDOW = 174 * 3600


class _Readable(yaml.SafeDumper):
    """Writes long texts as blocks, so that queries can be read."""


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    style = "|" if "\n" in value else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Readable.add_representer(str, _text)


def as_yaml(shape: dict[str, Any]) -> str:
    """Return a file's text."""
    return yaml.dump(shape, Dumper=_Readable, sort_keys=False, width=100, allow_unicode=True)


def rule_file(rules: Iterable[Rule] = RULES, web: str = DEFAULT_WEB) -> dict[str, Any]:
    """Return the alert rules; those on the collectors need Prometheus as a source and are separate.

    Args:
        rules: as shipped, or `tuned`.
        web: address of the web view, which serves the runbooks.
    """
    group = {
        "orgId": 1,
        "name": "mast-trace",
        "folder": "mast-trace",
        "interval": "5m",
        "rules": [_rule(rule, web) for rule in rules if rule.source == "database"],
    }
    return {"apiVersion": 1, "groups": [group]}


def contact_file() -> dict[str, Any]:
    """Return the contact point: a webhook whose address is in MAST_ALERT_WEBHOOK_URL."""
    receiver = {
        "uid": "mast-webhook",
        "type": "webhook",
        "settings": {"url": "${MAST_ALERT_WEBHOOK_URL}", "httpMethod": "POST"},
        "disableResolveMessage": False,
    }
    point = {"orgId": 1, "name": "mast-trace", "receivers": [receiver]}
    return {"apiVersion": 1, "contactPoints": [point]}


def _rule(rule: Rule, web: str) -> dict[str, Any]:
    return {
        "uid": rule.uid,
        "title": _templated(rule.title, rule.labels, in_title=True),
        "condition": "C",
        "data": [_query(rule), _reduced(), _threshold(rule)],
        "for": f"{rule.hold}s",
        "keepFiringFor": f"{rule.keep}s",
        "missing_series_evals_to_resolve": 2,
        "noDataState": _NO_DATA[rule.no_data],
        "execErrState": _ON_ERROR[rule.on_error],
        "annotations": {
            "summary": _templated(rule.summary, rule.labels),
            "description": rule.advice,
            "runbook_url": address(web, rule.runbook),
            "__dashboardUid__": rule.dashboard,
        },
        "labels": {"app": "mast-trace", "severity": rule.severity},
        "notification_settings": {
            "receiver": "mast-trace",
            "group_by": ["alertname", "service"],
            "repeat_interval": "4h",
        },
    }


def _templated(text: str, labels: Iterable[str], *, in_title: bool = False) -> str:
    for name in labels:
        text = text.replace(f"{{{name}}}", name if in_title else f"{{{{ .Labels.{name} }}}}")
    return text.replace("{value}", "{{ .Values.B.Value }}")


def _query(rule: Rule) -> dict[str, Any]:
    query = QUERIES[rule.query]
    literal = {
        name: _literal(param.default) for name, param in query.params.items() if name != "until"
    }
    return {
        "refId": "A",
        "relativeTimeRange": {"from": _WEEK_AND_WINDOW, "to": 0},
        "datasourceUid": DATASOURCE,
        "model": {
            "refId": "A",
            "editorType": "sql",
            "queryType": "table",
            "format": 1,
            "rawSql": query.text({**literal, "until": "$__toTime_ms"}),
        },
    }


def _literal(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(str(item) for item in value) + "]"
    return str(value)


def _reduced() -> dict[str, Any]:
    model = {
        "refId": "B",
        "type": "reduce",
        "expression": "A",
        "reducer": "last",
        "datasource": {"type": "__expr__", "uid": "__expr__"},
    }
    return _expression("B", model)


def _threshold(rule: Rule) -> dict[str, Any]:
    model = {
        "refId": "C",
        "type": "threshold",
        "expression": "B",
        "datasource": {"type": "__expr__", "uid": "__expr__"},
        "conditions": [
            {
                "evaluator": {"type": "gt", "params": [rule.above]},
                "unloadEvaluator": {"type": "lt", "params": [rule.recover]},
            }
        ],
    }
    return _expression("C", model)


def _expression(ref: str, model: dict[str, Any]) -> dict[str, Any]:
    return {
        "refId": ref,
        "relativeTimeRange": {"from": 0, "to": 0},
        "datasourceUid": "__expr__",
        "model": model,
    }


def write(folder: Path, rules: Iterable[Rule] = RULES, web: str = DEFAULT_WEB) -> list[Path]:
    """Write rules and contact point into ``folder``/alerting."""
    target = folder / "alerting"
    target.mkdir(parents=True, exist_ok=True)
    written = []
    shapes = {"mast-rules.yaml": rule_file(rules, web), "mast-contact.yaml": contact_file()}
    for name, shape in shapes.items():
        path = target / name
        path.write_text(as_yaml(shape), encoding="utf-8")
        written.append(path)
    return written
