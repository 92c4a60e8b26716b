"""Every alert has a runbook, in all three forms, and what it says to do can be done."""

from __future__ import annotations

import re
import subprocess
from shutil import which
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from command_lines import named_in, understand_mention
from stores import new_store

from mast_trace.exceptions import ConfigurationError
from mast_trace_dashboards.alerts import files, prometheus_rules, runbooks
from mast_trace_dashboards.alerts.config import DEFAULT_WEB, AlertConfig
from mast_trace_dashboards.alerts.lifecycle import Alert, AlertChange
from mast_trace_dashboards.alerts.outbox import payload
from mast_trace_dashboards.alerts.rules import RULES
from mast_trace_dashboards.cli.commands.dashboards import export

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mast_trace_collector.storage import Store

WEB = "https://traces.example.org/team"
EARLY = {"spool-damaged"}
"""Written before its rule."""
PROBED = {"web-view-not-ready"}
"""The runbooks of probes, which belong to no rule."""
OF_ALERTS = sorted(set(runbooks.names()) - PROBED)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with new_store(tmp_path_factory.mktemp("runbooks")) as made:
        yield made


def links(form: str, web: str = DEFAULT_WEB) -> list[str]:
    """The links of all rules of a form."""
    if form == "grafana":
        rules = files.rule_file(web=web)["groups"][0]["rules"]
    elif form == "prometheus":
        rules = prometheus_rules.rule_file(web=web)["groups"][0]["rules"]
    else:
        changes = [AlertChange(Alert(r.uid, (), 1.0, "firing", 0.0), "firing", 0.0) for r in RULES]
        rules = payload(changes, "alertmanager", web=web)["alerts"]
    return [rule["annotations"]["runbook_url"] for rule in rules]


FORMS = ("grafana", "prometheus", "webhook")


@pytest.mark.parametrize("form", FORMS)
def test_every_rule_links_to_a_runbook_that_exists(form: str) -> None:
    for web in (DEFAULT_WEB, WEB, f"{WEB}/"):
        made = links(form, web)
        assert made
        for link in made:
            base, _, name = link.rpartition("/runbooks/")
            assert base == web.rstrip("/")
            assert name in runbooks.names()


def test_every_runbook_belongs_to_a_rule() -> None:
    linked = {link.rpartition("/")[2] for form in FORMS for link in links(form)}
    assert set(OF_ALERTS) - linked <= EARLY
    assert {"no-spans", "metrics-missing", "spans-dead-lettered"} < linked


@pytest.mark.parametrize("name", OF_ALERTS)
def test_a_runbook_says_what_it_means_where_to_look_and_what_to_do(name: str) -> None:
    text = runbooks.text(name)
    assert text.startswith("# ")
    parts = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert parts == ["What it means", "Where to look", "What to do", "When to escalate"]
    steps = [int(n) for n in re.findall(r"^(\d+)\. ", text, re.MULTILINE)]
    assert steps == list(range(1, len(steps) + 1))
    assert len(steps) >= 3
    named = re.findall(r"runbook `([\w-]+)`", text)
    assert set(named) <= set(runbooks.names())


@pytest.mark.parametrize("name", OF_ALERTS)
def test_every_command_of_a_runbook_exists(name: str) -> None:
    lines = named_in(runbooks.text(name))
    assert lines
    for line in lines:
        understand_mention(line)


@pytest.mark.parametrize("name", OF_ALERTS)
def test_every_query_of_a_runbook_is_answered(store: Store, name: str) -> None:
    queries = re.findall(r"```sql\n(.+?)```", runbooks.text(name), re.DOTALL)
    assert queries
    for query in queries:
        store.query(query)


def test_there_is_no_other_runbook() -> None:
    for name in ("../rules", "nothing", "", "specification.md", "/etc/passwd"):
        with pytest.raises(KeyError):
            runbooks.text(name)


@pytest.mark.parametrize("address", ["ftp://x", "http://", "http://x/${Y}", "http://x/{{z}}", "x"])
def test_an_address_that_the_files_would_expand_is_refused(address: str) -> None:
    with pytest.raises(ConfigurationError, match="alert_web_url"):
        AlertConfig.load(alert_web_url=address)


def test_exported_files_link_to_the_address_that_was_given(tmp_path: Path) -> None:
    export(tmp_path, web_url=f"{WEB}/")
    grafanas = tmp_path / "grafana" / "provisioning" / "alerting" / "mast-rules.yaml"
    for path in (grafanas, tmp_path / "prometheus" / prometheus_rules.NAME):
        rules: list[dict[str, Any]] = yaml.safe_load(path.read_text())["groups"][0]["rules"]
        for rule in rules:
            assert rule["annotations"]["runbook_url"].startswith(f"{WEB}/runbooks/")
    if promtool := which("promtool"):
        folder = tmp_path / "prometheus"
        tests = folder / "tests" / "mast-trace.rules.test.yaml"
        # A glob of the folder takes rules alone.
        for words in (["test", "rules", tests], ["check", "rules", *folder.glob("*.yaml")]):
            done = subprocess.run([promtool, *words], capture_output=True, check=False)
            assert done.returncode == 0, done.stderr
