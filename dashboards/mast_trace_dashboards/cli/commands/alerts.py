"""`mast-trace alerts`."""

from __future__ import annotations

import signal
import time
from collections.abc import Sequence
from datetime import datetime, timezone
from enum import Enum
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from rich.console import Group, RenderableType
from rich.live import Live

from mast_trace.exceptions import ConfigurationError
from mast_trace_collector.config import CollectorConfig
from mast_trace_dashboards.alerts.config import AlertConfig
from mast_trace_dashboards.alerts.evaluator import Collectors, Evaluator, run
from mast_trace_dashboards.alerts.lifecycle import AlertChange, AlertState, load, save
from mast_trace_dashboards.alerts.outbox import (
    DeliveryResult,
    Outbox,
    Webhook,
    finite,
    payload,
    sentence,
)
from mast_trace_dashboards.alerts.rules import Rule, tuned
from mast_trace_dashboards.cli.open_store import open_store
from mast_trace_dashboards.cli.options import AsJson, ConfigFile, DataDir, Every, Url
from mast_trace_dashboards.cli.output import (
    FittedTable,
    console,
    plain,
    print_json,
    print_json_line,
    say,
    warn,
)
from mast_trace_dashboards.local import announcement
from mast_trace_dashboards.queries import QUERIES
from mast_trace_dashboards.run_names import parse_time

if TYPE_CHECKING:
    from mast_trace_collector.storage import Store

FIRING = 1
"""Exit status of `alerts check` when a rule is above its threshold."""

app = typer.Typer(name="alerts", help="Evaluate the shipped alert rules.", no_args_is_help=True)


class Shape(str, Enum):
    """The shape of a delivery."""

    alertmanager = "alertmanager"
    slack = "slack"


@app.command()
def check(
    at: Annotated[
        str | None,
        typer.Option(
            help="The moment of the evaluation: 2h ago as 2h, or a time.", show_default="now"
        ),
    ] = None,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Keep the table up to date.")
    ] = False,
    every: Every = 10.0,
    everything: Annotated[
        bool, typer.Option("--all", help="Show the rules that do not fire as well.")
    ] = False,
    url: Url = None,
    data_dir: DataDir = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Compare every rule with its threshold once, and show those above it. Exit status 1 if one is.

    Nothing is stored and nothing is sent: waiting times of rules do not apply. The rules on refused
    spans and damaged files, which read collectors' metrics, are left out: `alerts run` evaluates
    them. As JSON, every rule is printed, with `above`.

    Example: `mast-trace alerts check --json`
    """
    if watch and at:
        raise ConfigurationError("--watch looks at the present; leave --at out")
    rules = tuned(daily_budget=AlertConfig.load(config).alert_daily_budget_usd)
    with open_store(url, data_dir, config) as store:
        if watch:
            _watch(store, rules, every, everything=everything, as_json=as_json)
        rows = _look(store, rules, parse_time(at) if at else datetime.now(timezone.utc))
    if as_json:
        print_json(rows)
    else:
        console().print(_table(rows, everything=everything))
    if any(row["above"] for row in rows):
        raise typer.Exit(FIRING)


def _look(store: Store, rules: Sequence[Rule], moment: datetime) -> list[dict[str, Any]]:
    return [
        _compared(rule, row)
        for rule in rules
        if rule.source == "database"
        for row in QUERIES[rule.query].run(store, until=moment)
    ]


def _watch(
    store: Store, rules: Sequence[Rule], every: float, *, everything: bool, as_json: bool
) -> NoReturn:
    """Show the state of the rules until Ctrl-C; as JSON, a line for each evaluation."""
    with Live(console=console(), auto_refresh=False) as live:
        while True:
            rows = _look(store, rules, datetime.now(timezone.utc))
            if as_json:
                print_json_line(rows)
            else:
                live.update(_table(rows, everything=everything), refresh=True)
            time.sleep(every)


def _compared(rule: Rule, row: dict[str, Any]) -> dict[str, Any]:
    *labels, (_, value) = row.items()
    return {
        "rule": rule.uid,
        "labels": dict(labels),
        "value": float(value),
        "threshold": rule.above,
        "above": float(value) > rule.above,
        "severity": rule.severity,
    }


def _table(rows: list[dict[str, Any]], *, everything: bool) -> RenderableType:
    """Render the rules above their threshold; the others only with ``--all``."""
    above = [row for row in rows if row["above"]]
    rest = len(rows) - len(above)
    if everything or not rest:
        return _laid_out(rows)
    note = plain(f"{rest} others are below their thresholds; `--all` shows them.", "dim")
    if not above:
        return plain(
            f"Nothing fires: {rest} numbers are below their thresholds; `--all` shows them."
        )
    return Group(_laid_out(above), note)


def _laid_out(rows: list[dict[str, Any]]) -> FittedTable:
    table = FittedTable("RULE", "FOR", "VALUE", "THRESHOLD", "")
    for row in sorted(rows, key=lambda row: not row["above"]):
        labels = ", ".join(f"{name}={value or '-'}" for name, value in row["labels"].items())
        state = plain("ABOVE", style="bold red") if row["above"] else plain("ok", style="green")
        table.add_row(
            row["rule"], plain(labels), f"{row['value']:.4g}", f"{row['threshold']:.4g}", state
        )
    return table


@app.command("run")
def run_alerts(
    webhook: Annotated[
        str | None,
        typer.Option(
            help="Webhook to which alerts are sent by POST; without it they are only printed. Other users "
            "of this machine see it in the list of processes: a secret one goes into the variable.",
            show_default="MAST_TRACE_ALERT_WEBHOOK",
        ),
    ] = None,
    shape: Annotated[Shape, typer.Option(help="Format of the deliveries.")] = Shape.alertmanager,
    every: Annotated[
        float | None, typer.Option(min=0.2, help="Seconds between looks.", show_default="300")
    ] = None,
    collectors: Annotated[
        list[str] | None,
        typer.Option(
            "--collector",
            help="OTLP/HTTP address of a collector whose refused requests and damaged files are watched.",
            show_default="the running `mast-trace up`",
        ),
    ] = None,
    pace: Annotated[
        float,
        typer.Option(min=0, help="Factor of the rules' waiting times, for trying alerts out."),
    ] = 1.0,
    view: Annotated[
        str,
        typer.Option(
            help="Address that alerts link to, of the web view or of Grafana.",
            show_default="MAST_TRACE_ALERT_WEB_URL",
        ),
    ] = "",
    url: Url = None,
    data_dir: DataDir = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Evaluate the rules at an interval, and send alerts that begin or cease to fire.

    Firing alerts and waiting deliveries are kept in `alerts.json` in the data folder, so that a
    restart neither repeats nor loses an alert.

    Example: `mast-trace alerts run --webhook https://hooks.slack.com/... --shape slack`
    """
    settings = AlertConfig.load(
        config,
        alert_webhook=webhook,
        alert_interval_seconds=every,
        alert_collectors=collectors or None,
    )
    path = Path(CollectorConfig.load(config, data_dir=data_dir).data_dir, "alerts.json")
    remembered = load(path)
    outbox = _outbox(settings, shape, view, remembered)
    stop = Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    with open_store(url, data_dir, config) as store:
        evaluator = Evaluator(
            store,
            tuned(daily_budget=settings.alert_daily_budget_usd, pace=pace),
            alerts=list(remembered.alerts),
            collectors=_collectors(settings, path.parent),
        )

        def looked(changes: list[AlertChange]) -> None:
            for change in changes:
                _say(change, as_json=as_json)
            # First send the deliveries of a process that was killed.
            save(path, AlertState(evaluator.alerts, outbox.waiting))

        every = settings.alert_interval_seconds
        warn(f"Looking at {len(evaluator.rules)} rules every {every:g} s. Ctrl-C stops.")
        run(evaluator, outbox, looked, stop, interval=every)


def _outbox(settings: AlertConfig, shape: Shape, view: str, remembered: AlertState) -> Outbox:
    """Return the outbox of the webhook; without a webhook, printed changes count as delivered."""
    address = settings.alert_webhook.get_secret_value()
    if not address:
        return Outbox(lambda *_: DeliveryResult(), "nobody")
    webhook = Webhook(address)

    def post(delivery: Sequence[AlertChange], key: str) -> DeliveryResult:
        return webhook.post(payload(delivery, shape.value, view, settings.alert_web_url), key)

    return Outbox(post, webhook.label, remembered.waiting)


def _collectors(settings: AlertConfig, data_dir: Path) -> Collectors | None:
    """Return the named collectors, else that of the running `mast-trace up`, else none."""
    running = None if settings.alert_collectors else announcement.find(data_dir)
    urls = settings.alert_collectors or ([running.otlp_http] if running else [])
    key = settings.alert_collector_key.get_secret_value()
    return Collectors(urls, key) if urls else None


def _say(change: AlertChange, *, as_json: bool) -> None:
    if as_json:
        print_json_line(
            {
                "status": change.kind,
                "rule": change.alert.rule,
                "labels": dict(change.alert.labels),
                "value": finite(change.alert.value),
                "text": sentence(change),
            }
        )
    else:
        style = "bold red" if change.kind == "firing" else "green"
        say(sentence(change), style=style)
