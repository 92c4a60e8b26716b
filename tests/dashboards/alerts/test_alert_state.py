"""An alert fires after its waiting time, once, and ceases when the number has recovered."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import pytest

from mast_trace_dashboards.alerts.lifecycle import (
    Alert,
    AlertChange,
    AlertState,
    advance,
    load,
    save,
)
from mast_trace_dashboards.alerts.rules import Rule

if TYPE_CHECKING:
    from pathlib import Path

RULE = Rule(
    uid="test",
    title="Test",
    query="specification_spike",
    metric="mast_trace_spike_evidence",
    above=4.0,
    recover=2.0,
    severity="page",
    summary="",
    advice="",
    hold=300,
    keep=600,
)
MINUTE = 60.0


def replay(*values: float | None, rule: Rule = RULE, every: float = 5 * MINUTE) -> list[str]:
    """Return the changes of each evaluation; None stands for a missing series."""
    alerts: list[Alert] = []
    told = []
    for number, value in enumerate(values):
        rows = [] if value is None else [{"service": "shop", "Evidence": value}]
        alerts, changes = advance(rule, alerts, rows, number * every)
        told.append(changes[0].kind if changes else "")
    return told


@pytest.mark.parametrize(
    ("rule", "recovering"),
    [
        # Between the two thresholds it goes on; at the lower one, too.
        ({"above": 4.0, "recover": 2.0}, {4.0: False, 2.0: False, 1.9: True}),
        # Refused requests and silence: anything above 0 fires, and less than 1 is over.
        ({"above": 0.0, "recover": 1.0}, {1.0: False, 0.5: True, 0.0: True}),
        # A budget: at the threshold itself it neither fires nor goes on.
        ({"above": 20.0, "recover": 20.0}, {20.1: False, 20.0: True, 19.0: True}),
    ],
)
def test_what_ends_an_alert(rule: dict[str, float], recovering: dict[float, bool]) -> None:
    made = replace(RULE, hold=0, keep=0, **rule)  # type: ignore[arg-type]
    for value, ends in recovering.items():
        assert replay(100, value, rule=made) == ["firing", "resolved" if ends else ""]


LIFE = [
    # minute, number seen; phase, since which minute, recovering since, missed, number told
    (0, 5.0, ("pending", 0, None, 0, 5.0)),
    (4, 6.0, ("pending", 0, None, 0, 6.0)),
    (5, 7.0, ("firing", 5, None, 0, 7.0)),
    (10, None, ("firing", 5, None, 1, 7.0)),
    (15, 1.0, ("firing", 5, 15, 0, 1.0)),
    (20, None, ("firing", 5, 15, 1, 1.0)),
    (24, 1.5, ("firing", 5, 15, 0, 1.5)),
    (25, 2.0, ("firing", 5, None, 0, 2.0)),
    (30, 1.0, ("firing", 5, 30, 0, 1.0)),
    (40, 0.0, None),
    (45, 5.0, ("pending", 45, None, 0, 5.0)),
    (50, None, ("pending", 45, None, 1, 5.0)),
    (55, None, None),
    (60, 5.0, ("pending", 60, None, 0, 5.0)),
    (61, 4.0, None),
    (62, 5.0, ("pending", 62, None, 0, 5.0)),
    (67, 5.0, ("firing", 67, None, 0, 5.0)),
    (70, None, ("firing", 67, None, 1, 5.0)),
    (75, None, None),
]


def test_the_life_of_an_alert() -> None:
    """Evaluation by evaluation; each change has the times at which the alert fired and ceased."""
    alerts: list[Alert] = []
    told = []
    for minute, value, expected in LIFE:
        rows = [] if value is None else [{"service": "shop", "Evidence": value}]
        alerts, changes = advance(RULE, alerts, rows, minute * MINUTE)
        found = [
            (a.phase, a.since / MINUTE, a.recovered and a.recovered / MINUTE, a.missed, a.value)
            for a in alerts
        ]
        assert found == ([expected] if expected else []), f"after {minute} minutes"
        told += [(c.kind, c.began / MINUTE, c.alert.since / MINUTE, c.alert.value) for c in changes]
        assert all(c.alert.recovered is None for c in changes)
    assert told == [
        ("firing", 5, 5, 7.0),
        ("resolved", 5, 40, 0.0),
        ("firing", 67, 67, 5.0),
        ("resolved", 67, 75, 5.0),
    ]


def test_a_row_is_its_labels_and_a_number() -> None:
    (alert,), _ = advance(RULE, [], [{"service": "shop", "shard": 3, "Hits": 9}], 60)
    assert alert == Alert("test", (("service", "shop"), ("shard", "3")), 9.0, "pending", 60)
    assert alert.key == "test;service=shop;shard=3"
    (alert,), _ = advance(RULE, [], [{"Hits": 9}], 60)
    assert (alert.labels, alert.key) == ((), "test")


def test_services_do_not_share_a_state() -> None:
    rows = [{"service": "a", "Evidence": 9.0}, {"service": "b", "Evidence": 0.0}]
    alerts, _ = advance(RULE, [], rows, 0)
    alerts, changes = advance(RULE, alerts, rows, 300)
    assert [change.alert.labels for change in changes] == [(("service", "a"),)]


def test_what_fires_survives_a_restart(tmp_path: Path) -> None:
    rows = [{"service": "café", "Evidence": 9.0}]
    alerts, _ = advance(RULE, [], rows, 0)
    alerts, changes = advance(RULE, alerts, rows, 300)
    assert changes
    path = tmp_path / "very" / "deep" / "alerts.json"
    save(path, AlertState())
    waiting = [(changes[0], AlertChange(alerts[0], "resolved", 7.0)), (changes[0],)]
    save(path, AlertState(alerts, waiting))
    assert load(path) == AlertState(alerts, waiting)
    again, repeated = advance(RULE, load(path).alerts, rows, 600)
    assert not repeated
    assert again[0].phase == "firing"


def test_the_file_of_an_earlier_version_is_understood(tmp_path: Path) -> None:
    alert = Alert("r", (("service", "shop"),), 9.0, "firing", 300.0)
    (tmp_path / "alerts.json").write_text(json.dumps([asdict(alert)]))
    assert load(tmp_path / "alerts.json") == AlertState([alert])


@pytest.mark.parametrize("text", ["", "{", "null", '{"alerts": 3}', '[{"rule": "r"}]', "[7]"])
def test_a_damaged_file_is_set_aside(
    tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "alerts.json"
    path.write_text(text)
    assert load(path) == AlertState()
    assert path.with_suffix(".damaged").read_text() == text
    aside = path.with_suffix(".damaged")
    (message,) = caplog.messages
    assert message.startswith(f"{path} cannot be read (")
    assert message.endswith(f") and is {aside} now")
    assert "(None)" not in message, "it says why"


def test_there_is_nothing_to_remember_at_first(tmp_path: Path) -> None:
    assert load(tmp_path / "alerts.json") == AlertState()


@pytest.mark.parametrize("value", [4.0, 3.9, 0.0])
def test_the_threshold_itself_is_not_above(value: float) -> None:
    assert replay(value, value, value) == ["", "", ""]
