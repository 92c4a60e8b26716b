"""Weights of labels: scenarios count alike, modes as often as people see them, planted faults as chosen.

A scenario with a hundred planted faults is still one scenario, and a generator that plants one mode more often than
people meet it would teach the judge its own habits.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Final

from mast_trace_lab.fit.labels import INJECTION, PERSON

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mast_trace_lab.fit.labels import Label

OF_INJECTED: Final = (0.0, 0.1, 0.3, 1.0)
"""Weights of planted faults beside people's labels that are tried."""
_SMALLEST: Final = 0.02
"""Prevalence that a mode has at least: people who label few runs miss the rare ones."""


def prevalence(labels: Sequence[Label]) -> dict[str, float]:
    """Return the share of each failure mode among those that people named; empty if they named none."""
    seen = Counter(
        code
        for label in labels
        if label.source == PERSON
        for code, shown in label.run.modes.items()
        if shown
    )
    total = sum(seen.values())
    return {code: count / total for code, count in seen.items()}


def weigh_labels(
    labels: Sequence[Label], of_injected: float, seen_by_people: Mapping[str, float]
) -> list[float]:
    """Return the weight of each label; those of a scenario add up to 1, for planted faults and others apart.

    Args:
        labels: of all sources.
        of_injected: weight of planted faults beside the other sources.
        seen_by_people: share of each mode among people's, to which planted faults are weighed; without it all
            operators count alike. Modes that people did not name, and faults of the environment, which
            have no mode, keep a small share.
    """
    counts = Counter(_kind(label, seen_by_people) for label in labels)
    raw = [
        1.0
        if label.source != INJECTION
        else _wanted(label, seen_by_people) / counts[_kind(label, seen_by_people)]
        for label in labels
    ]
    sizes: dict[tuple[str, bool], float] = defaultdict(float)
    for label, weight in zip(labels, raw, strict=True):
        sizes[_scenario(label)] += weight
    return [
        weight / sizes[_scenario(label)] * (of_injected if label.source == INJECTION else 1.0)
        for label, weight in zip(labels, raw, strict=True)
    ]


def _kind(label: Label, seen_by_people: Mapping[str, float]) -> str:
    """Return what a planted fault is counted by: its mode where people named modes, else its operator."""
    if label.source != INJECTION:
        return ""
    return f"mode {label.mode}" if seen_by_people else f"operator {label.operator}"


def _wanted(label: Label, seen_by_people: Mapping[str, float]) -> float:
    return max(seen_by_people.get(label.mode, 0.0), _SMALLEST) if seen_by_people else 1.0


def _scenario(label: Label) -> tuple[str, bool]:
    return label.scenario, label.source == INJECTION
