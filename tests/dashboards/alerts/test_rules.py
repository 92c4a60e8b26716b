"""Levels, labels and names of the shipped rules."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mast_trace_dashboards.alerts.rules import DAMAGED, REFUSED, RULES, _spike, tuned

BY_UID = {rule.uid: rule for rule in RULES}
SPIKES = {
    "specification": ("specification_spike", "Specification violations", "specification"),
    "mode": ("mode_spike", "Failure mode {mode}", "mode"),
    "failures": ("failure_spike", "Failed runs", "failure"),
    "suspects": ("suspect_spike", "Suspect runs", "suspect"),
}


def test_an_alert_is_told_apart_by_its_labels() -> None:
    service = ("service", "framework")
    assert {rule.query: rule.labels for rule in RULES} == {
        "specification_spike": service,
        "mode_spike": (*service, "mode"),
        "failure_spike": service,
        "suspect_spike": service,
        "new_patterns": ("service",),
        "judge_behind": (),
        "judge_errors": ("model",),
        "judge_spending": (),
        "silence": ("service",),
        REFUSED: ("reason",),
        DAMAGED: (),
    }


def test_the_collectors_know_what_the_database_does_not() -> None:
    assert {rule.query: rule.source for rule in RULES} == {
        **dict.fromkeys([rule.query for rule in RULES], "database"),
        REFUSED: "collector",
        DAMAGED: "collector",
    }


@pytest.mark.parametrize("kind", SPIKES)
@pytest.mark.parametrize(("level", "above"), [("page", 4.0), ("warning", 3.0)])
def test_a_spike_has_two_levels(kind: str, level: str, above: float) -> None:
    query, what, metric = SPIKES[kind]
    uid = f"mast-{kind}-{level}"
    made = {rule.uid: rule for rule in _spike(kind, query, what, "{service} ({framework})")}
    for rule in (made[uid], BY_UID[uid]):
        assert (rule.query, rule.severity, rule.runbook) == (query, level, kind)
        assert (rule.above, rule.recover) == (above, 2.0)
        assert rule.metric == f'mast_trace_spike_evidence{{kind="{metric}"}}'


def test_a_runbook_is_named_after_its_rule() -> None:
    for rule in RULES:
        name = rule.uid.removeprefix("mast-")
        spike = rule.query.endswith("_spike")
        assert rule.runbook == (name.rpartition("-")[0] if spike else name)
        assert replace(rule, runbook="").runbook == name


def test_a_budget_is_the_judges_alone() -> None:
    changed = {rule.uid: rule for rule in tuned(daily_budget=5.0)}
    assert (changed["mast-judge-budget"].above, changed["mast-judge-budget"].recover) == (5.0, 5.0)
    assert [uid for uid, rule in changed.items() if rule != BY_UID[uid]] == ["mast-judge-budget"]
    assert [rule.query for rule in tuned(RULES[:1], daily_budget=5.0)] == ["specification_spike"]


def test_a_pace_shortens_both_waiting_times() -> None:
    for rule in tuned(pace=0.0115):
        shipped = BY_UID[rule.uid]
        assert (rule.hold, rule.keep) == ({0: 0, 300: 3}[shipped.hold], {600: 7}[shipped.keep])
        assert (type(rule.hold), type(rule.keep)) == (int, int)
