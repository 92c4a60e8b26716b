"""The shipped dashboards are what the code makes, and each of their queries runs."""

from __future__ import annotations

import json
import os
import re
from datetime import datetime, timedelta, timezone
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

import pytest
from grafana_macros import Selection
from stores import new_store

import mast_trace_dashboards.grafana
from mast_trace_dashboards.grafana.board import Dashboard
from mast_trace_dashboards.grafana.cost import COST
from mast_trace_dashboards.grafana.dashboards import DASHBOARDS, files
from mast_trace_dashboards.grafana.panels import sql

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mast_trace_collector.storage import Store

JSON = Path(mast_trace_dashboards.grafana.__file__).parent / "json"
ROOT = Path(__file__).parents[3]
NOW = datetime.now(timezone.utc)
OPTIONS = {"project": ["", "one"], "service": ["shop", "o'brien"], "framework": ["ag2"]}
CHOICES = {
    "all": {name: ["$__all"] for name in OPTIONS},
    "one": {name: values[:1] for name, values in OPTIONS.items()},
    "many": OPTIONS,
    "none to choose": {name: [] for name in OPTIONS},
}
RANGES = (
    (NOW - timedelta(hours=6), NOW),
    (NOW - timedelta(days=7), NOW),
    (NOW - timedelta(days=900), NOW - timedelta(days=899)),
)
PANELS = [
    pytest.param(panel, id=f"{board['uid']}: {panel['title']}")
    for board in (dashboard.to_json() for dashboard in DASHBOARDS)
    for panel in board["panels"]
    if panel["targets"]
]
COSTS = ("total", "time", "agent", "model", "tool", "mode", "run")
_WRAPPED = re.compile(r"(?:Nullable|LowCardinality)\((.*)\)")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A store with one judged run, two hours old."""
    with new_store(tmp_path_factory.mktemp("grafana")) as opened:
        start = NOW - timedelta(hours=2)
        called = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look"}
        opened.insert(
            "otel_traces",
            [
                {
                    "TraceId": "a" * 32,
                    "ServiceName": "shop",
                    "Timestamp": start,
                    "Duration": 10**9,
                    "SpanId": span_id,
                    "ParentSpanId": parent,
                    "SpanName": name,
                    "SpanAttributes": attributes,
                    "StatusCode": status,
                    "ResourceAttributes": {"service.version": "7"},
                }
                for span_id, parent, name, attributes, status in (
                    ("1" * 16, "", "run", {}, "Unset"),
                    ("2" * 16, "1" * 16, "execute_tool look", called, "Error"),
                )
            ],
        )
        yield opened


@pytest.mark.parametrize(("name", "text"), [pytest.param(n, t, id=n) for n, t in files()])
def test_the_committed_file_is_what_the_code_makes(name: str, text: str) -> None:
    """A dashboard changes in the code; MAST_TRACE_WRITE_GOLDEN=1 writes its file anew."""
    if os.environ.get("MAST_TRACE_WRITE_GOLDEN"):
        (JSON / name).write_text(text, encoding="utf-8")
    assert (JSON / name).read_text(encoding="utf-8") == text


def test_there_are_no_files_of_dashboards_that_are_gone() -> None:
    assert {path.name for path in JSON.iterdir()} == {name for name, _ in files()}


@pytest.mark.parametrize("chosen", CHOICES.values(), ids=CHOICES)
@pytest.mark.parametrize("panel", PANELS)
def test_every_panel_runs(store: Store, panel: dict[str, Any], chosen: Any) -> None:
    for start, end in RANGES:
        view = Selection(
            start=start,
            end=end,
            interval=300,
            variables={**chosen, "trace_id": ["a" * 32], "shown_from": ["0.5"]},
            options=OPTIONS,
        )
        for target in panel["targets"]:
            expanded = view.expand(target["rawSql"])
            assert "$__" not in expanded
            store.query(expanded)
            if target["format"] == 0:
                assert_is_time_series(store.describe(expanded, {}))


def assert_is_time_series(columns: list[tuple[str, str]]) -> None:
    """Columns that the plugin can turn into lines: time first, numbers, at most one name."""
    (first, kind), *others = columns
    assert first == "time"
    assert kind.startswith("DateTime")
    plain = [_WRAPPED.sub(r"\1", kind) for _, kind in others]
    assert sum(kind == "String" for kind in plain) <= 1
    assert all(kind.startswith(("Int", "UInt", "Float", "String")) for kind in plain)


@pytest.mark.parametrize(("days", "marks"), [(1, 1), (0, 0)])
def test_versions_are_marked_where_they_began(store: Store, days: int, marks: int) -> None:
    """A version that was there before the range gets no mark in it."""
    [deployments] = DASHBOARDS[0].to_json()["annotations"]["list"]
    view = Selection(start=NOW - timedelta(days=days, hours=1), end=NOW)
    rows = store.query(view.expand(deployments["target"]["rawSql"]))
    assert [row["text"] for row in rows] == ["shop 7"] * marks


def test_the_overview_fits_on_one_screen() -> None:
    panels = DASHBOARDS[0].to_json()["panels"]
    assert len(panels) <= 10
    assert max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in panels) <= 24


@pytest.mark.parametrize("name", ["project", "service", "framework"])
def test_the_filters_offer_what_is_there(store: Store, name: str) -> None:
    board = DASHBOARDS[0].to_json()
    (variable,) = [v for v in board["templating"]["list"] if v["name"] == name]
    view = Selection(start=NOW - timedelta(days=1), end=NOW)
    values = [row["Value"] for row in store.query(view.expand(variable["query"]["rawSql"]))]
    assert values == (["shop"] if name == "service" else [])


@pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda dashboard: dashboard.uid)
def test_panels_say_what_they_show_and_do_not_overlap(dashboard) -> None:
    taken: set[tuple[int, int]] = set()
    board = dashboard.to_json()
    assert [panel["id"] for panel in board["panels"]] == list(range(1, len(board["panels"]) + 1))
    for panel in board["panels"]:
        assert panel["title"]
        assert panel["description"].endswith(".")
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert place["x"] + place["w"] <= 24
        assert not cells & taken
        taken |= cells


@pytest.mark.parametrize("part", COSTS)
def test_one_dashboard_shows_every_part_of_the_cost(part: str) -> None:
    alone = part in {"tool", "mode"}
    text = sql(f"cost_by_{part}") if alone else sql("costs", parts=f"['{part}']")
    text = text.rpartition("\nLIMIT")[0]
    panels = COST.to_json()["panels"]
    assert any(text in each["rawSql"] for panel in panels for each in panel["targets"])


def test_links_lead_to_dashboards_that_exist() -> None:
    uids = {dashboard.uid for dashboard in DASHBOARDS}
    linked = re.findall(r"/d/([\w-]+)", json.dumps([d.to_json() for d in DASHBOARDS]))
    assert linked
    assert set(linked) <= uids


def test_every_dashboard_is_shipped() -> None:
    """A dashboard that is missing from the list would neither be written nor pushed."""
    folder = mast_trace_dashboards.grafana
    modules = [
        import_module(each.name) for each in iter_modules(folder.__path__, f"{folder.__name__}.")
    ]
    defined = {
        value.uid
        for module in modules
        for value in vars(module).values()
        if isinstance(value, Dashboard)
    }
    assert defined == {dashboard.uid for dashboard in DASHBOARDS}
