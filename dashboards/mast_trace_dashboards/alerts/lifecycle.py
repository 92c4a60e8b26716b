"""The life cycle of an alert from one evaluation to the next.

inactive -> pending (above the threshold, not for long enough) -> firing -> inactive. It goes on
firing while the number has not fallen below the recovery threshold, and for `Rule.keep` seconds
after.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from mast_trace_dashboards.whole_files import write_whole

if TYPE_CHECKING:
    from mast_trace_dashboards.alerts.rules import Rule

logger = logging.getLogger(__name__)

Phase = Literal["inactive", "pending", "firing"]

PROBLEM: Final = "problem"
"""Label of an alert whose number is unknown; its value is the reason."""
_VANISHED_AFTER = 2
"""Number of evaluations in a row without a series after which the alert is resolved."""


@dataclass(frozen=True)
class Alert:
    """One rule for one set of labels.

    Attributes:
        since: seconds since the epoch when the phase began.
        recovered: time since which the number is below the recovery threshold; None while it is
            not.
        missed: evaluations in a row without a number.
    """

    rule: str
    labels: tuple[tuple[str, str], ...]
    value: float
    phase: Phase
    since: float
    recovered: float | None = None
    missed: int = 0

    @property
    def key(self) -> str:
        """Key that is equal for the same rule and labels: receivers recognise repetitions by it."""
        return self.rule + "".join(f";{name}={value}" for name, value in self.labels)


@dataclass(frozen=True)
class AlertChange:
    """An alert that begins or ceases to fire.

    Attributes:
        alert: its present state.
        kind: whether it began or ceased.
        began: time when it began to fire, in seconds since the epoch.
    """

    alert: Alert
    kind: Literal["firing", "resolved"]
    began: float


def advance(
    rule: Rule, known: Sequence[Alert], rows: Sequence[Mapping[str, Any]], now: float
) -> tuple[list[Alert], list[AlertChange]]:
    """Advance the alerts of a rule by one evaluation.

    Args:
        rule: the rule.
        known: its alerts after the last evaluation.
        rows: result of its query: labels, and the number in the last column.
        now: seconds since the epoch.

    Returns:
        Its alerts that are not inactive, and the changes.
    """
    before = {alert.key: alert for alert in known}
    seen = {alert.key: alert for alert in (_inactive(rule, row, now) for row in rows)}
    after: list[Alert] = []
    changes: list[AlertChange] = []
    for key in dict.fromkeys([*before, *seen]):
        old = before.get(key) or seen[key]
        new = _moved(rule, old, seen[key].value, now) if key in seen else _missed(old, now)
        if new.phase != "inactive":
            after.append(new)
        if new.phase == "firing" and old.phase != "firing":
            changes.append(AlertChange(new, "firing", new.since))
        elif old.phase == "firing" and new.phase != "firing":
            changes.append(AlertChange(new, "resolved", old.since))
    return after, changes


def _inactive(rule: Rule, row: Mapping[str, Any], now: float) -> Alert:
    *labels, (_, value) = row.items()
    return Alert(rule.uid, tuple((n, str(v)) for n, v in labels), float(value), "inactive", now)


def _moved(rule: Rule, old: Alert, value: float, now: float) -> Alert:
    current = replace(old, value=value, missed=0)
    if old.phase == "firing":
        # Where both thresholds are the same number, that number is no longer above.
        if value >= rule.recover and (value > rule.above or rule.recover < rule.above):
            return replace(current, recovered=None)
        recovered = old.recovered if old.recovered is not None else now
        if now - recovered >= rule.keep:
            return replace(current, phase="inactive", since=now, recovered=None)
        return replace(current, recovered=recovered)
    if value <= rule.above:
        return replace(current, phase="inactive")
    # A new alert is as old as this evaluation.
    if now - old.since >= rule.hold:
        return replace(current, phase="firing", since=now)
    return replace(current, phase="pending")


def _missed(old: Alert, now: float) -> Alert:
    missed = old.missed + 1
    if missed >= _VANISHED_AFTER:
        return replace(old, phase="inactive", since=now, missed=missed)
    return replace(old, missed=missed)


@dataclass(frozen=True)
class AlertState:
    """The state of `mast-trace alerts run` after an evaluation.

    Attributes:
        alerts: those that are not inactive.
        waiting: deliveries of changes that no receiver has accepted.
    """

    alerts: Sequence[Alert] = ()
    waiting: Sequence[tuple[AlertChange, ...]] = ()


def load(path: Path) -> AlertState:
    """Read the state of an earlier process; an empty one if there is no file.

    An unreadable file is set aside: firing alerts are then sent again.
    """
    try:
        return _read(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return AlertState()
    except (ValueError, TypeError, KeyError) as error:
        aside = path.with_suffix(".damaged")
        path.replace(aside)
        logger.warning("%s cannot be read (%s) and is %s now", path, error, aside)
        return AlertState()


def _read(stored: Any) -> AlertState:
    if isinstance(stored, list):  # the format up to 0.1
        return AlertState([_alert(shape) for shape in stored])
    waiting = [
        tuple(AlertChange(**{**change, "alert": _alert(change["alert"])}) for change in delivery)
        for delivery in stored["waiting"]
    ]
    return AlertState([_alert(shape) for shape in stored["alerts"]], waiting)


def _alert(shape: Mapping[str, Any]) -> Alert:
    return Alert(**{**shape, "labels": tuple((name, value) for name, value in shape["labels"])})


def save(path: Path, memory: AlertState) -> None:
    """Save it for the next evaluation; a crash leaves the old file or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, json.dumps(asdict(memory), indent=1))
