"""The shipped dashboards, and their files."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from mast_trace_collector.plugins import answers
from mast_trace_dashboards.grafana.board import text_variable
from mast_trace_dashboards.grafana.health import INGESTION, JUDGE
from mast_trace_dashboards.grafana.modes import DECISIVE, MODES
from mast_trace_dashboards.grafana.overview import OVERVIEW
from mast_trace_dashboards.grafana.runs import EXPLORER, RUN, WEB_VARIABLE
from mast_trace_dashboards.plugins import Plugin

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mast_trace_dashboards.grafana.board import Dashboard
    from mast_trace_dashboards.grafana.panels import Json

_SHIPPED: Final = (OVERVIEW, MODES, DECISIVE, EXPLORER, RUN, JUDGE, INGESTION)


def _with_plugins() -> Iterator[Dashboard]:
    """Yield each dashboard, the rows of plugins at its end."""
    added = [panels for _, panels in answers(Plugin, lambda each: dict(each.panels()))]
    for shipped in _SHIPPED:
        more = [row for panels in added for row in panels.get(shipped.uid, ())]
        yield replace(shipped, rows=(*shipped.rows, *more))


DASHBOARDS: Final = tuple(_with_plugins())


def definitions(web: str = "") -> Iterator[tuple[str, Json]]:
    """Yield the uid of each dashboard and its definition for Grafana.

    Args:
        web: address of the web view that they link to; empty for the one of `mast-trace up`.
    """
    for dashboard in DASHBOARDS:
        definition = dashboard.to_json()
        if web:
            _link(definition, web.rstrip("/"))
        yield dashboard.uid, definition


def _link(definition: Json, web: str) -> None:
    for variable in definition["templating"]["list"]:
        if variable["name"] == WEB_VARIABLE:
            variable.update(text_variable(WEB_VARIABLE, variable["label"], web))


def files(web: str = "") -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each dashboard's file."""
    for uid, definition in definitions(web):
        yield f"{uid}.json", f"{json.dumps(definition, indent=2, ensure_ascii=False)}\n"


def write(folder: Path, web: str = "") -> list[Path]:
    """Write the files into ``folder``, which is created if it is missing."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, text in files(web):
        path = folder / name
        path.write_text(text, encoding="utf-8")
        written.append(path)
    return written
