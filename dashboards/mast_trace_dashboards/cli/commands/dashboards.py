"""`mast-trace dashboards`."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import typer

import mast_trace_dashboards.alerts
import mast_trace_dashboards.grafana
from mast_trace_collector.security import is_loopback
from mast_trace_dashboards.alerts.config import DEFAULT_WEB, AlertConfig
from mast_trace_dashboards.alerts.files import write as write_alerts
from mast_trace_dashboards.alerts.prometheus_rules import write as write_prometheus
from mast_trace_dashboards.alerts.rules import tuned
from mast_trace_dashboards.cli.options import AsJson, ConfigFile
from mast_trace_dashboards.cli.output import print_json, say, warn
from mast_trace_dashboards.grafana.dashboards import push as push_to_grafana
from mast_trace_dashboards.grafana.dashboards import write as write_dashboards
from mast_trace_dashboards.printable import counted

app = typer.Typer(
    name="dashboards", help="Grafana dashboards and alert rules as files.", no_args_is_help=True
)


WebUrl = Annotated[
    str | None,
    typer.Option(
        help="Address at which people reach the web view: dashboards and alerts link there.",
        show_default="MAST_TRACE_ALERT_WEB_URL, else http://127.0.0.1:8680",
    ),
]


@app.command()
def export(
    folder: Annotated[Path, typer.Argument(help="Folder to write to; created if it is missing.")],
    web_url: WebUrl = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Write dashboards, provisioning files and alert rules for Grafana and Prometheus.

    `grafana/dashboards` holds the JSON, `grafana/provisioning` goes to Grafana's folder of that
    name, `prometheus` holds the same alerts for Prometheus. The judge's budget is the setting
    `alert_daily_budget_usd`.

    Example: `mast-trace dashboards export ./monitoring --web-url https://traces.example.org`
    """
    grafana = Path(mast_trace_dashboards.grafana.__file__).parent
    alerts = Path(mast_trace_dashboards.alerts.__file__).parent
    settings = AlertConfig.load(config, alert_web_url=web_url)
    _warn_of_loopback(settings.alert_web_url)
    written = write_dashboards(folder / "grafana" / "dashboards", settings.alert_web_url)
    provisioning = folder / "grafana" / "provisioning"
    for source, target in (
        (grafana / "provisioning", provisioning),
        (alerts / "prometheus", folder / "prometheus"),
    ):
        shutil.copytree(source, target, dirs_exist_ok=True)
        written += [target / path.relative_to(source) for path in source.rglob("*.yaml")]
    rules = tuned(daily_budget=settings.alert_daily_budget_usd)
    written += write_alerts(provisioning, rules, settings.alert_web_url)
    tested = write_prometheus(folder / "prometheus", rules, settings.alert_web_url)
    _retarget(tested.parent / "tests" / "mast-trace.rules.test.yaml", settings.alert_web_url)
    if as_json:
        print_json([str(path) for path in written])
    else:
        say(f"Wrote {counted(len(written), 'file')} to {folder}.")


def _warn_of_loopback(web: str) -> None:
    if is_loopback(urlsplit(web).hostname or ""):
        warn(
            f"Links will lead to {web}, which only this machine reaches: --web-url names another address."
        )


def _retarget(tests: Path, web: str) -> None:
    """Set the links that promtool's tests expect to those of the exported rules."""
    text = tests.read_text(encoding="utf-8")
    tests.write_text(text.replace(f"{DEFAULT_WEB}/", f"{web.rstrip('/')}/"), encoding="utf-8")


@app.command()
def push(
    url: Annotated[str, typer.Argument(help="URL of Grafana, such as http://localhost:3000.")],
    token: Annotated[
        str,
        typer.Option(
            envvar="GRAFANA_TOKEN", help="Token of a service account with the role Editor."
        ),
    ],
    web_url: WebUrl = None,
    config: ConfigFile = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Change nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Create or update the dashboards in a running Grafana.

    Example: `GRAFANA_TOKEN=... mast-trace dashboards push http://localhost:3000 --dry-run`
    """
    web = AlertConfig.load(config, alert_web_url=web_url).alert_web_url
    _warn_of_loopback(web)
    changes = []
    for title, change in push_to_grafana(url, token, web=web, dry_run=dry_run):
        changes.append({"dashboard": title, "change": change})
        if not as_json:
            say(f"{'would ' if dry_run else ''}{change:<9}  {title}")
    if as_json:
        print_json(changes)
