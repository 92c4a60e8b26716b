"""Readers of our own ClickHouse address, as Grafana is one, are refused no panel."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING
from urllib.parse import quote

from endpoint_server import PASSWORD
from grafana_macros import Selection

from mast_trace_collector.storage import Store
from mast_trace_dashboards.grafana.dashboards import DASHBOARDS

if TYPE_CHECKING:
    from collections.abc import Iterator

NOW = datetime.now(timezone.utc)
VIEW = Selection(
    start=NOW - timedelta(hours=6),
    end=NOW,
    interval=300,
    variables={"trace_id": ["a" * 32], "shown_from": ["0.5"]}
    | {name: ["$__all"] for name in ("project", "service", "framework")},
    options={"project": ["", "one"], "service": ["shop"], "framework": ["ag2"]},
)


def statements() -> Iterator[str]:
    """Yield the SQL of all panels and of the lists to choose from."""
    for board in (dashboard.to_json() for dashboard in DASHBOARDS):
        for panel in board["panels"]:
            for target in panel["targets"]:
                yield VIEW.expand(target["rawSql"])
        for variable in board["templating"]["list"]:
            if isinstance(variable["query"], dict):
                yield VIEW.expand(variable["query"]["rawSql"])


def test_no_panel_is_refused(embedded: Store, endpoint: str) -> None:
    """The names in them are tested here, and what they find elsewhere."""
    del embedded
    with Store.open(f"http://reader:{quote(PASSWORD)}@{endpoint}") as reader:
        for statement in statements():
            reader.query(f"EXPLAIN AST {statement}")
