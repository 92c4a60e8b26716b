"""Chooses the training parameters of a profile: ridge, agent's share of the loss, temperature.

All three are chosen on folds that never divide a group of runs.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mast_trace_judge.study.logit import Example, Stack, minimise
from mast_trace_judge.study.numeric import numpy_module

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

RIDGES = (3.2, 1.6, 0.8, 0.4, 0.2, 0.1)
AGENT_SHARES = (0.3, 1.0)
_TEMPERATURES = tuple(0.6 + 0.05 * i for i in range(60))
_INNER_FOLDS = 4


@dataclass(frozen=True)
class Fold:
    """A fold of the runs, with the predictions of a profile that was trained on all others.

    Attributes:
        own: the probabilities of the fold's runs, by the run's place among all.
        others: those of the runs that the profile was trained on, each from a part of the training
            that had not seen the run.
    """

    own: Mapping[int, list[float]]
    others: Mapping[int, list[float]]


def train(
    examples: Sequence[Example],
    seed: int,
    ridges: Sequence[float] = RIDGES,
    shares: Sequence[float] = AGENT_SHARES,
) -> tuple[list[float], dict[str, float], list[list[float]]]:
    """Train a profile.

    Args:
        examples: the labelled runs.
        seed: of the partition into folds.
        ridges: the ridges that are tried, the stiffest first.
        shares: the agent's shares of the loss that are tried.

    Returns:
        The weights, calibrated; the settings that were chosen for them; and each run's
        probabilities from weights that saw no run of its group.
    """
    np = numpy_module()
    tried = _inner_scores(examples, seed, ridges, shares)
    ridge, share = min(tried, key=lambda setting: _loss(examples, tried[setting]))
    scores = tried[ridge, share]
    temperature = _temperature(examples, scores)
    stack = Stack.of(examples)
    weights = np.round(minimise(stack, ridge, share) / stack.scale / temperature, 4)
    settings = {"ridge": ridge, "agent_share": share, "temperature": round(temperature, 2)}
    # A single group has no folds; then only the weights' own predictions exist.
    inner = [
        probabilities(example.rows @ weights if score is None else score / temperature)
        for example, score in zip(examples, scores, strict=True)
    ]
    return [float(weight) for weight in weights], settings, inner


def _inner_scores(
    examples: Sequence[Example], seed: int, ridges: Sequence[float], shares: Sequence[float]
) -> dict[tuple[float, float], list[Any]]:
    """Return every run's scores from weights that saw no run of its group, by setting."""
    scores: dict[tuple[float, float], list[Any]] = {
        (ridge, share): [None] * len(examples) for share in shares for ridge in ridges
    }
    for fold in folds(examples, _INNER_FOLDS, seed):
        stack = Stack.of([example for i, example in enumerate(examples) if i not in fold])
        for share in shares:
            weights = None
            for ridge in ridges:  # from the stiffest on: each is a good start for the next
                weights = minimise(stack, ridge, share, weights)
                for i in fold:
                    scores[ridge, share][i] = examples[i].rows @ (weights / stack.scale)
    return scores


def folds(examples: Sequence[Example], count: int, seed: int) -> list[set[int]]:
    """Divide the runs by their groups, the same way on every machine; return the runs' places."""
    groups = sorted({e.group for e in examples}, key=lambda group: order(group, seed))
    place = {group: i % count for i, group in enumerate(groups)}
    found = [{i for i, e in enumerate(examples) if place[e.group] == f} for f in range(count)]
    return [fold for fold in found if 0 < len(fold) < len(examples)]


def order(group: str, seed: int) -> str:
    """Return a key that orders groups by chance, the same way on every machine."""
    return hashlib.sha256(f"{seed}:{group}".encode()).hexdigest()


def _loss(examples: Sequence[Example], scores: Sequence[Any]) -> float:
    """Return the mean negative logarithm of the labelled steps' probabilities, by the runs' weights."""
    np = numpy_module()
    losses = [
        (-np.log(max(probabilities(score)[example.gold], 1e-9)), example.weight)
        for example, score in zip(examples, scores, strict=True)
        if example.gold is not None and score is not None
    ]
    if not losses:
        return 0.0
    values, weights = zip(*losses, strict=True)
    return float(np.average(values, weights=weights))


def _temperature(examples: Sequence[Example], scores: Sequence[Any]) -> float:
    """Return the temperature at which the first candidates' mean probability is nearest to their hits.

    Runs count by their weights.
    """
    np = numpy_module()
    tried = np.array(_TEMPERATURES)
    excess = np.zeros(len(tried))
    for example, score in zip(examples, scores, strict=True):
        if score is not None:
            below = (score - score.max())[:, None] / tried
            hit = int(score.argmax()) == example.gold
            excess += example.weight * (1.0 / np.exp(below).sum(axis=0) - hit)
    return _TEMPERATURES[int(np.abs(excess).argmin())]


def probabilities(scores: Any) -> list[float]:
    """Turn the scores of a run's steps into probabilities that add up to 1."""
    np = numpy_module()
    powers = np.exp(scores - scores.max())
    return [float(p) for p in powers / powers.sum()]
