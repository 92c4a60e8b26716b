"""Panels, as the dictionaries that Grafana reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from mast_trace_dashboards.queries import QUERIES

if TYPE_CHECKING:
    from mast_trace_dashboards.queries.query import Query

Json = dict[str, Any]

PLUGIN = "grafana-clickhouse-datasource"
PLUGIN_VERSION = "4.20.0"
DATASOURCE: Json = {"type": PLUGIN, "uid": "${datasource}"}

_FORMATS = {"timeseries": 0, "table": 1, "traces": 3}
NOT_EXAMINED = "not examined"
"""Replaces a share where the failure mode was examined in no run."""
THRESHOLD = "shown_from"
"""The variable with the probability from which a failure mode counts as shown."""
# Parameters of the named queries as Grafana's macros and variables. A cast gives its type to the
# empty list of a variable without options.
_MACROS = {
    "since": "$__fromTime_ms",
    "until": "$__toTime_ms",
    "bucket": "$__interval_s",
    "projects": "CAST([${project:singlequote}], 'Array(String)')",
    "services": "CAST([${service:singlequote}], 'Array(String)')",
    "frameworks": "CAST([${framework:singlequote}], 'Array(String)')",
    "run": "${trace_id:singlequote}",
    "at_least": f"toFloat64(${{{THRESHOLD}:singlequote}})",
}


def sql(query: str | Query, select: str = "*", **fixed: str) -> str:
    """Return the SQL of a named query for Grafana.

    Args:
        query: the query, or its name.
        select: the columns to keep, and their names on the dashboard.
        fixed: SQL for parameters that are neither range nor filter.
    """
    named = QUERIES[query] if isinstance(query, str) else query
    literal = {
        name: _literal(param.default) for name, param in named.params.items() if name not in _MACROS
    }
    text = named.text({**literal, **_MACROS, **fixed})
    return text if select == "*" else f"SELECT {select}\nFROM (\n{text}\n)"


def _literal(value: Any) -> str:
    if isinstance(value, list):
        return "CAST([], 'Array(String)')"
    return f"'{value}'" if isinstance(value, str) else str(value)


def target(
    text: str, kind: Literal["timeseries", "table", "traces"] = "table", ref: str = "A"
) -> Json:
    """Return a panel's query."""
    return {
        "datasource": DATASOURCE,
        "refId": ref,
        "editorType": "sql",
        "queryType": kind,
        "format": _FORMATS[kind],
        "pluginVersion": PLUGIN_VERSION,
        "rawSql": text,
    }


@dataclass(frozen=True)
class Thresholds:
    """Colours by value: green, orange from ``warn``, red from ``bad``."""

    warn: float
    bad: float

    def to_json(self) -> Json:
        """Return Grafana's thresholds."""
        return {
            "mode": "absolute",
            "steps": [
                {"color": "green", "value": None},
                {"color": "orange", "value": self.warn},
                {"color": "red", "value": self.bad},
            ],
        }


@dataclass(frozen=True)
class Panel:
    """A panel before it has a place.

    Attributes:
        kind: Grafana's panel type.
        title: of the panel.
        description: help for its reader, shown at the title.
        width: of 24 columns.
        height: in grid rows.
    """

    kind: str
    title: str
    description: str
    targets: Sequence[Json] = ()
    width: int = 12
    height: int = 8
    options: Mapping[str, Any] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    overrides: Sequence[Json] = ()
    links: Sequence[Json] = ()

    def to_json(self, number: int, x: int, y: int) -> Json:
        """Return the panel at a place."""
        return {
            "id": number,
            "type": self.kind,
            "title": self.title,
            "description": self.description,
            "datasource": DATASOURCE,
            "gridPos": {"x": x, "y": y, "w": self.width, "h": self.height},
            "targets": list(self.targets),
            "options": dict(self.options),
            "fieldConfig": {"defaults": dict(self.defaults), "overrides": list(self.overrides)},
            "links": list(self.links),
        }


def stat(
    title: str,
    description: str,
    text: str,
    *,
    unit: str = "short",
    thresholds: Thresholds | None = None,
    empty: str = "no runs",
    width: int = 4,
    overrides: Sequence[Json] = (),
) -> Panel:
    """Return a panel with one number, or one for each column, or ``empty`` where there is none."""
    defaults: Json = {"unit": unit, "noValue": empty}
    defaults["color"] = {"mode": "thresholds" if thresholds else "fixed", "fixedColor": "text"}
    if thresholds:
        defaults["thresholds"] = thresholds.to_json()
    options = {
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        "colorMode": "value" if thresholds else "none",
        "graphMode": "none",
        "justifyMode": "auto",
        "textMode": "auto",
        "orientation": "auto",
    }
    return Panel(
        *("stat", title, description, [target(text)], width, 4),
        options=options,
        defaults=defaults,
        overrides=overrides,
    )


def lines(
    title: str,
    description: str,
    text: str,
    *,
    unit: str = "short",
    width: int = 12,
    height: int = 8,
    stacked: bool = False,
    maximum: float | None = None,
    overrides: Sequence[Json] = (),
) -> Panel:
    """Return a panel with lines over time; the query gives ``time`` and one column a line."""
    custom: Json = {
        "drawStyle": "bars" if stacked else "line",
        "lineWidth": 1,
        "fillOpacity": 60 if stacked else 10,
        "showPoints": "auto",
        "spanNulls": False,
        "stacking": {"mode": "normal" if stacked else "none", "group": "A"},
    }
    defaults: Json = {"unit": unit, "min": 0, "noValue": "no runs", "custom": custom}
    if maximum is not None:
        defaults["max"] = maximum
    options = {
        "legend": {
            "displayMode": "table",
            "placement": "right",
            "showLegend": True,
            "calcs": ["lastNotNull", "max"],
        },
        "tooltip": {"mode": "multi", "sort": "desc"},
    }
    return Panel(
        "timeseries",
        title,
        description,
        [target(text, "timeseries")],
        width,
        height,
        options=options,
        defaults=defaults,
        overrides=overrides,
    )


def table(
    title: str,
    description: str,
    text: str,
    *,
    width: int = 24,
    height: int = 10,
    overrides: Sequence[Json] = (),
) -> Panel:
    """Return a table."""
    options = {"showHeader": True, "cellHeight": "sm"}
    return Panel(
        "table",
        title,
        description,
        [target(text)],
        width,
        height,
        options=options,
        defaults={"noValue": "-", "custom": {"align": "auto", "filterable": True}},
        overrides=overrides,
    )


def bars(
    title: str,
    description: str,
    text: str,
    *,
    unit: str = "short",
    width: int = 12,
    height: int = 8,
) -> Panel:
    """Return a bar chart; the query gives a name and numbers."""
    options = {
        "orientation": "auto",
        "legend": {"showLegend": False, "displayMode": "hidden", "placement": "bottom"},
        "tooltip": {"mode": "multi", "sort": "none"},
        "xTickLabelRotation": 0,
        "stacking": "none",
        "showValue": "auto",
    }
    return Panel(
        "barchart",
        title,
        description,
        [target(text)],
        width,
        height,
        options=options,
        defaults={"unit": unit, "min": 0, "noValue": "no runs"},
    )


def field_override(name: str, **properties: Any) -> Json:
    """Return an override of one column, such as ``unit="percentunit"``; ``__`` stands for a dot."""
    return {
        "matcher": {"id": "byName", "options": name},
        "properties": [{"id": key.replace("__", "."), "value": v} for key, v in properties.items()],
    }


def share(name: str = "Share", thresholds: Thresholds | None = None, *, empty: str = "") -> Json:
    """Return the override of a column of shares: per cent, coloured by ``thresholds``.

    Args:
        name: of the column.
        thresholds: its colours.
        empty: text where there is no share; by default the table's.
    """
    more: Json = {"thresholds": thresholds.to_json()} if thresholds else {}
    if empty:
        more["noValue"] = empty
    cell = {"type": "color-background" if thresholds else "auto"}
    return field_override(name, unit="percentunit", custom__cellOptions=cell, **more)


def counted(name: str = "n") -> Json:
    """Return the override of a number that is drawn as bars behind lines of shares."""
    return field_override(
        name,
        unit="short",
        max=None,
        color={"mode": "fixed", "fixedColor": "text"},
        custom__axisPlacement="right",
        custom__drawStyle="bars",
        custom__fillOpacity=15,
        custom__lineWidth=0,
    )


def run_link(name: str = "Run") -> Json:
    """Return the override that links a column of run ids to the run's dashboard."""
    link = {
        "title": "Open this run",
        "url": "/d/mast-run?var-trace_id=${__value.raw}&${datasource:queryparam}",
        "targetBlank": False,
    }
    return field_override(name, links=[link], custom__width=270)
