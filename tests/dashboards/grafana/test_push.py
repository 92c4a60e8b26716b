"""`dashboards export` writes everything that ships; `push` brings a Grafana to the same state.

No Grafana can be installed here: the server below answers as its HTTP API is documented.
"""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from mast_trace_dashboards.cli.app import run
from mast_trace_dashboards.grafana.dashboards import DASHBOARDS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TOKEN = "glsa_secret"


class Grafana:
    """Keeps folders and dashboards, for whoever has the token."""

    def __init__(self) -> None:
        self.folders: dict[str, Any] = {}
        self.dashboards: dict[str, dict[str, Any]] = {}
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                kind, _, uid = self.path.removeprefix("/api/").rpartition("/")
                if kind == "folders":
                    self._send(owner.folders.get(uid))
                else:
                    found = owner.dashboards.get(uid)
                    self._send({"dashboard": {**found, "version": 3}} if found else None)

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                if self.path == "/api/folders":
                    owner.folders[body["uid"]] = body
                else:
                    assert body["folderUid"] in owner.folders
                    assert body["dashboard"]["id"] is None
                    owner.dashboards[body["dashboard"]["uid"]] = {**body["dashboard"], "id": 7}
                self._send({"status": "success"})

            def _send(self, shape: Any) -> None:
                status = 200 if shape is not None else 404
                if self.headers["authorization"] != f"Bearer {TOKEN}":
                    status, shape = 401, {"message": "Invalid API key"}
                body = json.dumps(shape).encode()
                self.send_response(status)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"


@pytest.fixture
def grafana() -> Iterator[Grafana]:
    made = Grafana()
    threading.Thread(target=made.server.serve_forever, daemon=True).start()
    yield made
    made.server.shutdown()
    made.server.server_close()


def push(grafana: Grafana, capsys: pytest.CaptureFixture[str], *more: str) -> list[str]:
    """Return the change of each dashboard."""
    assert run(["dashboards", "push", grafana.url, "--token", TOKEN, "--json", *more]) == 0
    return [row["change"] for row in json.loads(capsys.readouterr().out)]


def test_dashboards_are_made_once(grafana: Grafana, capsys: pytest.CaptureFixture[str]) -> None:
    count = len(DASHBOARDS)
    assert push(grafana, capsys, "--dry-run") == ["create"] * count
    assert grafana.dashboards == grafana.folders == {}
    assert push(grafana, capsys) == ["create"] * count
    assert set(grafana.dashboards) == {dashboard.uid for dashboard in DASHBOARDS}
    assert push(grafana, capsys) == ["unchanged"] * count
    grafana.dashboards["mast-run"]["title"] = "renamed by hand"
    assert push(grafana, capsys, "--dry-run").count("update") == 1
    assert push(grafana, capsys).count("update") == 1
    assert grafana.dashboards["mast-run"]["title"] == "mast-trace / Run"


def web_view(dashboard: Any) -> str:
    """The address of the web view that the dashboard of a run links to."""
    (variable,) = [v for v in dashboard["templating"]["list"] if v["name"] == "web"]
    assert variable["current"]["value"] == variable["current"]["text"] == variable["query"]
    return str(variable["query"])


def test_the_dashboard_of_a_run_links_to_the_web_view_that_people_reach(
    grafana: Grafana, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    web = "https://traces.example.org"
    assert push(grafana, capsys, "--web-url", f"{web}/")
    assert web_view(grafana.dashboards["mast-run"]) == web
    assert push(grafana, capsys).count("update") == 1
    assert web_view(grafana.dashboards["mast-run"]) == "http://127.0.0.1:8680"
    assert run(["dashboards", "export", str(tmp_path), "--web-url", web]) == 0
    written = (tmp_path / "grafana/dashboards/mast-run.json").read_text("utf-8")
    assert web_view(json.loads(written)) == web


def test_what_grafana_says_is_told(grafana: Grafana, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["dashboards", "push", grafana.url, "--token", "wrong"]) == 2
    assert "service account" in capsys.readouterr().err
    assert run(["dashboards", "push", "http://127.0.0.1:9", "--token", "x"]) == 2
    assert "cannot be reached" in capsys.readouterr().err
    assert grafana.dashboards == {}


@pytest.mark.parametrize("token", ["glsa_\u00e9", "glsa_x\n", "glsa_x\r\nX-Odd: y", "glsa_\x01"])
def test_a_token_that_no_header_can_carry_is_refused_and_not_repeated(
    grafana: Grafana, capsys: pytest.CaptureFixture[str], token: str
) -> None:
    assert run(["dashboards", "push", grafana.url, "--token", token]) == 2
    error = capsys.readouterr().err
    assert "was it copied whole" in error
    assert "glsa" not in error


def test_everything_is_exported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "mast-trace.toml"
    config.write_text("[alerts]\nalert_daily_budget_usd = 3.5\n", encoding="utf-8")
    folder = tmp_path / "monitoring"
    for _ in range(2):
        arguments = ["dashboards", "export", str(folder), "--config", str(config), "--json"]
        assert run(arguments) == 0
        written = {str(path) for path in folder.rglob("*") if path.is_file()}
        assert set(json.loads(capsys.readouterr().out)) == written
    names = {path.removeprefix(f"{folder}/") for path in written}
    assert {f"grafana/dashboards/{dashboard.uid}.json" for dashboard in DASHBOARDS} <= names
    assert {
        "grafana/provisioning/alerting/mast-contact.yaml",
        "grafana/provisioning/dashboards/mast-trace.yaml",
        "grafana/provisioning/datasources/mast-trace.yaml",
        "prometheus/tests/mast-trace.rules.test.yaml",
    } <= names
    prometheus = (folder / "prometheus/mast-trace.rules.yaml").read_text("utf-8")
    assert "max (mast_trace_judge_day_cost_usd) > 3.5" in prometheus.replace("max(", "max (")
    rules = yaml.safe_load(
        (folder / "grafana/provisioning/alerting/mast-rules.yaml").read_text("utf-8")
    )["groups"][0]["rules"]
    (budget,) = [rule for rule in rules if rule["uid"] == "mast-judge-budget"]
    assert budget["data"][2]["model"]["conditions"][0]["evaluator"]["params"] == [3.5]
