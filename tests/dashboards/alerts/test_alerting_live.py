"""An injected spike fires and resolves for real: through Prometheus and Alertmanager, and alone.

Everything that ships takes part: `mast-trace up` with its /metrics, the rule file, `alerts run`.
Only the waiting times are shortened, by the rules' own `pace`.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import yaml
from end_to_end.processes import free_port
from end_to_end.up_process import wait_for
from verdict_rows import verdict_row
from webhook_receiver import receiving

from mast_trace.taxonomy import FAILURE_MODES
from mast_trace_collector.storage import Store
from mast_trace_dashboards.alerts.prometheus_rules import rule_file
from mast_trace_dashboards.alerts.rules import tuned

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from webhook_receiver import Receiver

pytestmark = [pytest.mark.slow, pytest.mark.end_to_end]

PROMETHEUS = shutil.which("prometheus")
ALERTMANAGER = shutil.which("prometheus-alertmanager") or shutil.which("alertmanager")
PACE = 0.005  # five minutes are 1.5 seconds
PAGE = "mast-specification-page"


def runs(first: int, count: int, ended: datetime, *, violating: bool) -> list[dict[str, Any]]:
    """Verdicts on runs of the shop that end a second apart, the last at ``ended``."""
    return [
        verdict_row(
            first + number,
            ended - timedelta(seconds=number),
            ["1.3"] * violating,
            JudgedAt=ended,
            ServiceName="shop",
            Framework="ag2",
            Outcome="failure" if violating else "success",
            Examined=list(FAILURE_MODES),
        )
        for number in range(count)
    ]


def usual(store: Store) -> None:
    """A week with 5 % violations, the last of them half a day ago."""
    for day in range(1, 7):
        moment = datetime.now(timezone.utc) - timedelta(days=day)
        store.insert("mast_verdicts", runs(day * 1000, 5, moment, violating=True))
        store.insert("mast_verdicts", runs(day * 1000 + 100, 95, moment, violating=False))


def spike(store: Store) -> None:
    """Forty violating runs just now."""
    now = datetime.now(timezone.utc)
    store.insert("mast_verdicts", runs(50_000, 40, now, violating=True))


def recovery(store: Store) -> None:
    """So many good runs that the violating ones are no more than usual."""
    now = datetime.now(timezone.utc)
    store.insert("mast_verdicts", runs(60_000, 1_000, now, violating=False))


@contextmanager
def running(folder: Path, name: str, *command: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process for as long as the block lasts; its output is in ``folder``/``name``."""
    with (folder / name).open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder)
        try:
            yield process
        finally:
            process.terminate()
            process.wait(30)


@contextmanager
def mast_trace_up(folder: Path) -> Iterator[dict[str, str]]:
    """A running `mast-trace up` that judges nothing; yields its addresses."""
    ready = folder / "ready.json"
    command = [sys.executable, "-m", "mast_trace_dashboards", "up", "--no-judge"]
    command += ["--data-dir", str(folder / "data"), "--ready-file", str(ready)]
    for port in ("http", "grpc", "clickhouse", "web"):
        command += [f"--{port}-port", "0"]
    with running(folder, "up.log", *command):
        wait_for(ready.exists)
        yield json.loads(ready.read_text(encoding="utf-8"))


def told(receiver: Receiver, status: str, alertname: str) -> list[dict[str, Any]]:
    """The alerts of that name and status that have arrived."""
    return [
        alert
        for body in receiver.bodies
        for alert in body["alerts"]
        if alert["status"] == status and alert["labels"]["alertname"] == alertname
    ]


@pytest.mark.skipif(
    not PROMETHEUS or not ALERTMANAGER,
    reason="needs Debian's prometheus and prometheus-alertmanager",
)
def test_prometheus_and_alertmanager_fire_and_resolve(tmp_path: Path, receiver: Receiver) -> None:
    """Metrics of `mast-trace up` pass through the shipped rules to the webhook, and back."""
    assert PROMETHEUS
    assert ALERTMANAGER
    with mast_trace_up(tmp_path) as addresses, Store.open(addresses["owner"]) as store:
        usual(store)
        manager, prometheus = free_port(), free_port()
        files = {
            "rules.yaml": rule_file(tuned(pace=PACE), interval=1),
            "prometheus.yaml": prometheus_settings(addresses["otlp_http"], manager),
            "alertmanager.yaml": alertmanager_settings(receiver.url),
        }
        for name, shape in files.items():
            (tmp_path / name).write_text(yaml.safe_dump(shape), encoding="utf-8")
        with (
            running(
                *(tmp_path, "alertmanager.log", ALERTMANAGER, "--config.file=alertmanager.yaml"),
                *(f"--web.listen-address=127.0.0.1:{manager}", "--cluster.listen-address="),
                f"--storage.path={tmp_path / 'alertmanager'}",
            ),
            running(
                *(tmp_path, "prometheus.log", PROMETHEUS, "--config.file=prometheus.yaml"),
                f"--web.listen-address=127.0.0.1:{prometheus}",
                f"--storage.tsdb.path={tmp_path / 'prometheus'}",
            ),
        ):
            spike(store)
            wait_for(lambda: told(receiver, "firing", "MastSpecificationPage"))
            recovery(store)
            wait_for(lambda: told(receiver, "resolved", "MastSpecificationPage"))
    fired = told(receiver, "firing", "MastSpecificationPage")[0]
    assert (fired["labels"]["service"], fired["labels"]["severity"]) == ("shop", "page")
    assert "Specification violations of shop (ag2)" in fired["annotations"]["summary"]
    assert not told(receiver, "firing", "MastMetricsMissing")


def prometheus_settings(address: str, manager: int) -> dict[str, Any]:
    target = address.removeprefix("http://")
    return {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": ["rules.yaml"],
        "scrape_configs": [{"job_name": "mast", "static_configs": [{"targets": [target]}]}],
        "alerting": {
            "alertmanagers": [{"static_configs": [{"targets": [f"127.0.0.1:{manager}"]}]}]
        },
    }


def alertmanager_settings(webhook: str) -> dict[str, Any]:
    route = {"group_wait": "1s", "group_interval": "1s", "repeat_interval": "1h"}
    return {
        "route": {"receiver": "hook", "group_by": ["alertname", "service"], **route},
        "receivers": [{"name": "hook", "webhook_configs": [{"url": webhook}]}],
    }


def alerts_run(store: str, receiver: Receiver | SimpleNamespace, *more: str) -> list[str]:
    """The command line of `alerts run` on a store."""
    command = [sys.executable, "-m", "mast_trace_dashboards", "alerts", "run", "--every", "0.5"]
    return [*command, "--pace", str(PACE), "--webhook", receiver.url, "--url", store, *more]


def test_alerts_run_fires_and_resolves_from_a_database(tmp_path: Path, receiver: Receiver) -> None:
    """The same spike without Prometheus; a restart in between repeats nothing.

    Slack is told in words meanwhile, of refused spans too, which the database knows nothing of.
    """
    with (
        mast_trace_up(tmp_path) as addresses,
        Store.open(addresses["owner"]) as store,
        receiving() as slack,
    ):
        usual(store)
        command = alerts_run(addresses["owner"], receiver, "--data-dir", str(tmp_path))
        more = ("--shape", "slack", "--collector", addresses["otlp_http"], "--data-dir")
        in_words = alerts_run(addresses["owner"], slack, *more, str(tmp_path / "slack"))
        with (
            running(tmp_path, "alerts.log", *command),
            running(tmp_path, "slack.log", *in_words),
        ):
            spike(store)
            wait_for(lambda: told(receiver, "firing", PAGE))
            wait_for((tmp_path / "alerts.json").exists)
            wait_for(lambda: any("violations of shop (ag2)" in b["text"] for b in slack.bodies))
            headers = {"content-type": "application/x-protobuf"}
            httpx.post(f"{addresses['otlp_http']}/v1/traces", content=b"\xff", headers=headers)
            wait_for(lambda: any("were refused" in b["text"] for b in slack.bodies))
        with running(tmp_path, "alerts-again.log", *command):
            recovery(store)
            wait_for(lambda: told(receiver, "resolved", PAGE))
    assert all(set(body) == {"text"} for body in slack.bodies)
    assert slack.bodies[0]["text"].startswith(":rotating_light: ")
    (fired,) = told(receiver, "firing", PAGE)
    (resolved,) = told(receiver, "resolved", PAGE)
    assert fired["labels"] == {
        "alertname": PAGE,
        "severity": "page",
        "app": "mast-trace",
        "service": "shop",
        "framework": "ag2",
    }
    assert fired["fingerprint"] == resolved["fingerprint"]
    assert resolved["startsAt"] == fired["startsAt"] < resolved["endsAt"]


@pytest.mark.long
def test_alerts_survive_a_dead_webhook_and_kill(tmp_path: Path) -> None:
    """An alert that begins and ends while no receiver accepts is sent once each when one does."""
    port = free_port()
    with mast_trace_up(tmp_path) as addresses, Store.open(addresses["owner"]) as store:
        usual(store)
        away = SimpleNamespace(url=f"http://127.0.0.1:{port}/hook")
        command = alerts_run(addresses["owner"], away, "--data-dir", str(tmp_path))
        memory = tmp_path / "alerts.json"
        waiting = lambda: str(json.loads(memory.read_text())["waiting"]) if memory.exists() else ""  # noqa: E731
        with running(tmp_path, "alerts.log", *command) as process:
            spike(store)
            wait_for(lambda: "'firing'" in waiting())
            wait_for(lambda: "does not take alerts" in (tmp_path / "alerts.log").read_text())
            process.kill()
        with running(tmp_path, "again.log", *command) as process:
            recovery(store)
            wait_for(lambda: "'resolved'" in waiting())
            process.kill()
        with receiving(port) as receiver, running(tmp_path, "third.log", *command):
            wait_for(lambda: told(receiver, "resolved", PAGE))
            wait_for(lambda: waiting() == "[]")
    kinds = [(a["labels"]["alertname"], a["status"]) for b in receiver.bodies for a in b["alerts"]]
    assert len(kinds) == len(set(kinds)), "each once"
    assert kinds.index((PAGE, "firing")) < kinds.index((PAGE, "resolved"))
    (fired,) = told(receiver, "firing", PAGE)
    (resolved,) = told(receiver, "resolved", PAGE)
    assert fired["startsAt"] == resolved["startsAt"]
    log = (tmp_path / "alerts.log").read_text()
    assert log.count("does not take alerts") == 1
    assert "Traceback" not in log
