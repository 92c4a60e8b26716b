"""The rules find an injected spike in a real store, in Grafana's files, and in Prometheus."""

from __future__ import annotations

import os
import random
import re
import shutil
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from dashboards.test_judge_metrics import served
from grafana_macros import Selection
from pattern_runs import index
from program_runs import run_program
from prometheus_client import generate_latest
from stores import new_store
from verdict_rows import verdict_row

import mast_trace_dashboards.alerts
from mast_trace.taxonomy import FAILURE_MODES
from mast_trace_collector.collector import Collector
from mast_trace_collector.config import CollectorConfig
from mast_trace_dashboards.alerts import prometheus_rules
from mast_trace_dashboards.alerts.evaluator import Evaluator
from mast_trace_dashboards.alerts.files import as_yaml, contact_file, rule_file
from mast_trace_dashboards.alerts.rules import DAMAGED, REFUSED, RULES, tuned
from mast_trace_dashboards.alerts.runbooks import address
from mast_trace_dashboards.queries import QUERIES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mast_trace_collector.storage import Store

PROMETHEUS = Path(mast_trace_dashboards.alerts.__file__).parent / "prometheus"
NOW = datetime.now(timezone.utc).replace(minute=0, second=0, microsecond=0)
BEGIN = NOW - timedelta(days=8)
HOUR = timedelta(hours=1)
SPIKE = NOW - 4 * HOUR
SERVICES = ("shop", "quiet")


def verdicts() -> list[dict[str, Any]]:
    """40 runs an hour and service; 8 % violate, from `SPIKE` on 40 % of those of the shop."""
    chance = random.Random(7)
    rows: list[dict[str, Any]] = []
    for minute in range(0, 8 * 24 * 60, 3):
        end = BEGIN + timedelta(minutes=minute)
        for service in SERVICES:
            for _ in range(2):
                rate = 0.4 if service == "shop" and end >= SPIKE else 0.08
                hit = chance.random() < rate
                rows.append(
                    verdict_row(
                        len(rows),
                        end,
                        ["1.3"] * hit,
                        ServiceName=service,
                        Framework="ag2",
                        Outcome="failure" if hit else "success",
                        Examined=list(FAILURE_MODES),
                    )
                )
    return rows


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with new_store(tmp_path_factory.mktemp("alerts")) as opened:
        opened.insert("mast_verdicts", verdicts())
        # A call of a model, and a run, so that every rule's query has a row.
        opened.insert(
            "mast_judge_calls",
            [{"CallId": "1", "StartedAt": NOW - HOUR / 2, "Model": "m", "Status": "ok"}],
        )
        opened.insert(
            "otel_traces",
            [
                {
                    "Timestamp": NOW - HOUR,
                    "TraceId": "f" * 32,
                    "SpanId": "f" * 16,
                    "SpanName": "span",
                    "ServiceName": "shop",
                    "SpanAttributes": {"gen_ai.operation.name": "invoke_workflow"},
                }
            ],
        )
        # Patterns are counted from rows that the judge's worker writes after the verdicts.
        index(opened)
        yield opened


def replay(store: Store, begin: datetime, end: datetime) -> list[tuple[datetime, str, str, dict]]:
    """Look every twenty minutes, as `alerts run` does more often."""
    evaluator = Evaluator(store, [r for r in RULES if r.query.endswith("_spike")])
    found = []
    moment = begin
    while moment <= end:
        found += [
            (moment, change.kind, change.alert.rule, dict(change.alert.labels))
            for change in evaluator.look(moment)
        ]
        moment += timedelta(minutes=20)
    return found


def test_a_spike_pages_for_its_service_and_for_no_other(store: Store) -> None:
    told = replay(store, SPIKE - timedelta(hours=1), NOW - timedelta(hours=1))
    pages = [t for t in told if t[1] == "firing" and t[2] == "mast-specification-page"]
    assert [labels for *_, labels in pages] == [{"service": "shop", "framework": "ag2"}]
    assert SPIKE < pages[0][0] < SPIKE + timedelta(hours=2)
    assert {t[3]["service"] for t in told} == {"shop"}
    assert {t[3]["mode"] for t in told if "mode" in t[3]} == {"1.3"}


def test_a_quiet_week_fires_nothing(store: Store) -> None:
    assert replay(store, SPIKE - timedelta(hours=5), SPIKE) == []


def test_a_gate_may_be_set_for_one_query(store: Store) -> None:
    """A threshold that nothing passes; the other spikes are reported as before."""
    rules = [rule for rule in RULES if rule.uid in {"mast-specification-page", "mast-mode-page"}]
    gates = {"specification_spike": {"min_hits": 10_000}}
    told = [
        {alert.rule for alert in evaluator.alerts}
        for evaluator in (Evaluator(store, rules), Evaluator(store, rules, parameters=gates))
        if evaluator.look(NOW - timedelta(hours=1)) == []  # it waits before it fires
    ]
    assert told == [{"mast-specification-page", "mast-mode-page"}, {"mast-mode-page"}]


def test_the_present_is_one_in_every_zone(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluator = Evaluator(store, [rule for rule in RULES if rule.uid == "mast-specification-page"])
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        evaluator.look()
    finally:
        monkeypatch.undo()
        time.tzset()
    assert [dict(alert.labels)["service"] for alert in evaluator.alerts] == ["shop"]


def test_where_there_is_nothing_only_silence_is_told(store: Store) -> None:
    """Long before the first run: no service has been heard of, and no run waits for its verdict."""
    evaluator = Evaluator(store)
    evaluator.look(BEGIN - timedelta(days=100))
    changes = evaluator.look(BEGIN - timedelta(days=100) + timedelta(minutes=5))
    assert [(change.kind, change.alert.rule) for change in changes] == [("firing", "mast-silence")]


# -- Grafana --------------------------------------------------------------------------------------


def rules() -> list[dict[str, Any]]:
    return yaml.safe_load(as_yaml(rule_file(web="http://web")))["groups"][0]["rules"]


def test_the_file_has_the_fields_that_grafana_reads() -> None:
    for rule in rules():
        assert len(rule["uid"]) <= 40
        assert rule["noDataState"] in {"OK", "Alerting", "KeepLast", "NoData"}
        assert rule["execErrState"] in {"OK", "Error", "Alerting", "KeepLast"}
        assert [part["refId"] for part in rule["data"]] == ["A", "B", "C"]
        assert rule["condition"] == "C"
    # Refused spans and damaged files never reach the database that Grafana asks.
    asked = {rule.uid for rule in RULES if rule.query not in {REFUSED, DAMAGED}}
    assert {rule["uid"] for rule in rules()} == asked


def test_a_rules_file_is_whole() -> None:
    """All that Grafana is given; the queries are run below."""
    expression = {"type": "__expr__", "uid": "__expr__"}
    for rule, made in zip(
        [each for each in RULES if each.source == "database"], rules(), strict=True
    ):
        parts = [part.pop("model") for part in made["data"]]
        assert "$__toTime_ms" in parts[0].pop("rawSql")
        bounds = {"gt": [rule.above], "lt": [rule.recover]}
        gt, lt = ({"type": word, "params": number} for word, number in bounds.items())
        assert parts == [
            {"refId": "A", "editorType": "sql", "queryType": "table", "format": 1},
            {
                "refId": "B",
                "type": "reduce",
                "expression": "A",
                "reducer": "last",
                "datasource": expression,
            },
            {
                "refId": "C",
                "type": "threshold",
                "expression": "B",
                "datasource": expression,
                "conditions": [{"evaluator": gt, "unloadEvaluator": lt}],
            },
        ]
        summary, title = rule.summary.replace("{value}", "{{ .Values.B.Value }}"), rule.title
        for name in rule.labels:
            summary = summary.replace(f"{{{name}}}", f"{{{{ .Labels.{name} }}}}")
            title = title.replace(f"{{{name}}}", name)
        assert made == {
            "uid": rule.uid,
            "title": title,
            "condition": "C",
            "data": [
                {
                    "refId": ref,
                    "relativeTimeRange": {"from": begin, "to": 0},
                    "datasourceUid": source,
                }
                for ref, begin, source in (
                    ("A", 174 * 3600, "mast-clickhouse"),
                    ("B", 0, "__expr__"),
                    ("C", 0, "__expr__"),
                )
            ],
            "for": f"{rule.hold}s",
            "keepFiringFor": f"{rule.keep}s",
            "missing_series_evals_to_resolve": 2,
            "noDataState": {"ok": "OK", "alert": "Alerting", "keep": "KeepLast"}[rule.no_data],
            "execErrState": {"ok": "OK", "alert": "Error", "keep": "KeepLast"}[rule.on_error],
            "annotations": {
                "summary": summary,
                "description": rule.advice,
                "runbook_url": address("http://web", rule.runbook),
                "__dashboardUid__": rule.dashboard,
            },
            "labels": {"app": "mast-trace", "severity": rule.severity},
            "notification_settings": {
                "receiver": "mast-trace",
                "group_by": ["alertname", "service"],
                "repeat_interval": "4h",
            },
        }
    (group,) = rule_file()["groups"]
    assert group.pop("rules")
    assert group == {"orgId": 1, "name": "mast-trace", "folder": "mast-trace", "interval": "5m"}


def test_no_text_is_taken_for_an_environment_variable() -> None:
    """Grafana expands $NAME in every string but a query's model."""
    for rule in rules():
        texts = [rule["title"], *rule["annotations"].values(), *rule["labels"].values()]
        assert not [text for text in texts if "$" in text]
        assert not [text for text in texts if "{" in text.replace("{{", "").replace("}}", "")]


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["uid"])
def test_a_rules_query_gives_labels_and_one_number(store: Store, rule: dict[str, Any]) -> None:
    """The only shape of which Grafana makes one alert instance a row."""
    view = Selection(start=NOW - timedelta(hours=174), end=NOW)
    sql = view.expand(rule["data"][0]["model"]["rawSql"])
    assert "$__" not in sql
    *labels, (_, number) = store.describe(sql, {})
    assert [kind for _, kind in labels] == ["String"] * len(labels)
    assert number == "Float64"
    rows = store.query(sql)
    assert rows
    assert all(isinstance(list(row.values())[-1], float) for row in rows)
    assert len({tuple(row.values())[:-1] for row in rows}) == len(rows)


def test_the_contact_point_takes_its_address_from_the_environment() -> None:
    (point,) = contact_file()["contactPoints"]
    (receiver,) = point.pop("receivers")
    assert point == {"orgId": 1, "name": "mast-trace"}
    url = {"url": "${MAST_ALERT_WEBHOOK_URL}", "httpMethod": "POST"}
    told = {"uid": "mast-webhook", "type": "webhook", "disableResolveMessage": False}
    assert receiver == {**told, "settings": url}


# -- Prometheus -----------------------------------------------------------------------------------


@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool (Debian: prometheus)")
def test_the_prometheus_rules_pass_their_unit_tests() -> None:
    tests = PROMETHEUS / "tests" / "mast-trace.rules.test.yaml"
    run_program("promtool", "test", "rules", str(tests), status=0)


def test_the_committed_file_is_what_the_rules_make() -> None:
    """MAST_TRACE_WRITE_GOLDEN=1 writes it anew, as `mast-trace dashboards export` does elsewhere."""
    if os.environ.get("MAST_TRACE_WRITE_GOLDEN"):
        prometheus_rules.write(PROMETHEUS)
    assert (PROMETHEUS / prometheus_rules.NAME).read_text("utf-8") == prometheus_rules.text()


def test_every_rule_is_tried_by_promtool() -> None:
    """A rule that its unit tests leave out would not be known to fire at all."""
    tests = (PROMETHEUS / "tests" / "mast-trace.rules.test.yaml").read_text("utf-8")
    tried = {
        case["alertname"]
        for test in yaml.safe_load(tests)["tests"]
        for case in test["alert_rule_test"]
        if case["exp_alerts"]
    }
    made = {rule["alert"] for rule in prometheus_rules.rule_file()["groups"][0]["rules"]}
    # Their neighbours of the other level or kind differ in a number or a word.
    assert made - tried == {"MastSpecificationWarning", "MastModePage", "MastFailuresWarning"}


def test_the_prometheus_rules_read_metrics_that_exist(store: Store, tmp_path: Path) -> None:
    """Every name in the rules is one that the collector or the judge serves."""
    collector = Collector(CollectorConfig.load(data_dir=tmp_path), store)
    shown = (generate_latest(served(store)) + collector.metrics.exposition()).decode()
    used = set(re.findall(r"\bmast_trace_\w+", prometheus_rules.text()))
    assert used
    assert not [name for name in used if name.removesuffix("_total") not in shown]


def test_the_evidence_is_served_as_the_rules_see_it(store: Store) -> None:
    registry = served(store)
    for row in QUERIES["specification_spike"].run(store, until=datetime.now(timezone.utc)):
        labels = {"kind": "specification", "mode": "", **row}
        evidence = labels.pop("Evidence")
        seen = registry.get_sample_value("mast_trace_spike_evidence", labels)
        assert seen == pytest.approx(evidence, abs=0.5)  # asked a moment apart


def test_a_budget_and_a_pace_are_all_that_differs() -> None:
    changed = tuned(daily_budget=5.0, pace=0.1)
    assert [rule.uid for rule in changed] == [rule.uid for rule in RULES]
    assert [rule.above for rule in changed if rule.query == "judge_spending"] == [5.0]
    assert {rule.hold for rule in changed} == {0, 30}
    assert {rule.keep for rule in changed} == {60}
    assert list(tuned()) == list(RULES)
