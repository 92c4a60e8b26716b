"""A dashboard: rows of panels with the variables that all of them share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mast_trace_dashboards.grafana.panels import (
    DATASOURCE,
    PLUGIN,
    THRESHOLD,
    Json,
    Panel,
    sql,
    target,
)
from mast_trace_judge.verdict import SHOWN_FROM

SCHEMA_VERSION = 42
_COLUMNS = 24


@dataclass(frozen=True)
class Dashboard:
    """A dashboard.

    Attributes:
        uid: fixed, so that links stay valid.
        rows: panels from left to right; a full row continues below.
        filters: whether project, service and framework can be chosen.
        variables: more variables.
        since: the initial time range.
        links: beside the one to the other dashboards.
    """

    uid: str
    title: str
    description: str
    rows: Sequence[Sequence[Panel]]
    filters: bool = True
    variables: Sequence[Json] = ()
    since: str = "now-24h"
    links: Sequence[Json] = ()

    def to_json(self) -> Json:
        """Return the dashboard's JSON for Grafana."""
        return {
            "uid": self.uid,
            "title": self.title,
            "description": self.description,
            "tags": ["mast-trace"],
            "schemaVersion": SCHEMA_VERSION,
            "editable": True,
            "graphTooltip": 1,
            "timezone": "browser",
            "refresh": "1m",
            "time": {"from": self.since, "to": "now"},
            "templating": {"list": self._variables()},
            "annotations": {"list": [_deployments()] if self.filters else []},
            "links": [*self.links, _others()],
            "panels": self._panels(),
        }

    def _variables(self) -> list[Json]:
        filters = [
            _filter(name, title)
            for name, title in (
                ("project", "Project"),
                ("service", "Service"),
                ("framework", "Framework"),
            )
        ]
        counts_modes = f"${{{THRESHOLD}:" in str(self._panels())
        return [
            _datasource(),
            *(filters if self.filters else ()),
            *([_threshold()] if counts_modes else ()),
            *self.variables,
        ]

    def _panels(self) -> list[Json]:
        placed: list[Json] = []
        y = 0
        for row in self.rows:
            x = tallest = 0
            for panel in row:
                if x + panel.width > _COLUMNS:
                    y, x, tallest = y + tallest, 0, 0
                placed.append(panel.to_json(len(placed) + 1, x, y))
                x += panel.width
                tallest = max(tallest, panel.height)
            y += tallest
        return placed


def _datasource() -> Json:
    return {
        "name": "datasource",
        "label": "Data source",
        "type": "datasource",
        "query": PLUGIN,
        "current": {"text": "mast-trace", "value": "mast-clickhouse"},
        "hide": 0,
        "refresh": 1,
    }


def _deployments() -> Json:
    """The first run of each version of a service, as a mark on every panel over time."""
    before = "$__fromTime_ms - toIntervalDay(30)"
    text = sql(
        "runs_by_version", "First AS time, concat(ServiceName, ' ', Value) AS text", since=before
    )
    return {
        "name": "Deployments",
        "datasource": DATASOURCE,
        "enable": True,
        "hide": False,
        "iconColor": "blue",
        "target": target(f"{text}\nWHERE time >= $__fromTime_ms"),
    }


def _filter(name: str, label: str) -> Json:
    """A choice among the values in the range, asked for when the dashboard opens; the filters do not narrow each other."""
    everything = dict.fromkeys(("projects", "services", "frameworks"), "CAST([], 'Array(String)')")
    text = f"{sql('filter_values', 'Value', **everything)}\nWHERE Filter = '{name}'\nORDER BY Value"
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": DATASOURCE,
        "query": {"editorType": "sql", "rawSql": text},
        "refresh": 1,
        "multi": True,
        "includeAll": True,
        "current": {"text": ["All"], "value": ["$__all"]},
        "hide": 0,
        "sort": 0,
    }


def _threshold() -> Json:
    """The probability from which a failure mode counts; the shipped one is first."""
    offered = [f"{SHOWN_FROM:g}", "0.7", "0.9", "0.3", "0"]
    options = [
        {"text": value, "value": value, "selected": not i} for i, value in enumerate(offered)
    ]
    return {
        "name": THRESHOLD,
        "label": "Modes from",
        "description": "Probability from which a failure mode counts as shown.",
        "type": "custom",
        "query": ",".join(offered),
        "options": options,
        "multi": False,
        "includeAll": False,
        "current": {"text": offered[0], "value": offered[0]},
        "hide": 0,
    }


def text_variable(name: str, label: str, value: str = "") -> Json:
    """Return a variable that is typed in, or set by a link."""
    return {
        "name": name,
        "label": label,
        "type": "textbox",
        "query": value,
        "current": {"text": value, "value": value},
        "hide": 0,
    }


def link_to(title: str, url: str, tooltip: str) -> Json:
    """Return a link to a page outside of Grafana."""
    return {
        "title": title,
        "type": "link",
        "url": url,
        "icon": "external link",
        "tooltip": tooltip,
        "tags": [],
        "asDropdown": False,
        "keepTime": False,
        "includeVars": False,
        "targetBlank": True,
    }


def _others() -> Json:
    return {
        "title": "mast-trace",
        "type": "dashboards",
        "tags": ["mast-trace"],
        "asDropdown": True,
        "keepTime": True,
        "includeVars": True,
        "targetBlank": False,
        "icon": "external link",
        "tooltip": "The other dashboards, with the same range and filters",
        "url": "",
    }
