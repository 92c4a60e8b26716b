"""Fits a profile to labelled runs.

Ridge and agent's share of the loss are chosen, and the probabilities calibrated by one temperature,
on folds that never divide a group of runs.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from mast_trace.exceptions import ConfigurationError
from mast_trace_judge.attribution.features import FEATURES, features
from mast_trace_judge.attribution.logit import Example, Stack, minimise, numpy_module
from mast_trace_judge.attribution.profile import Profile
from mast_trace_judge.datasets.who_and_when import same_agent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mast_trace_judge.datasets.labelled import LabelledRun

FEWEST_LABELS = 10
"""Below this many labelled runs a profile would be noise."""
_RIDGES = (3.2, 1.6, 0.8, 0.4, 0.2, 0.1)
_AGENT_SHARES = (0.3, 1.0)
_TEMPERATURES = tuple(0.6 + 0.05 * i for i in range(60))
_INNER_FOLDS = 4
_OUTER_FOLDS = 5
REPEATS = 10
"""Partitions into outer folds over which cross-validated scores are averaged."""


def fit(
    labelled: Sequence[LabelledRun],
    *,
    name: str,
    agents: tuple[str, ...] = (),
    frameworks: tuple[str, ...] = (),
    trained_on: str = "",
    seed: int = 0,
    repeats: int = REPEATS,
) -> Profile:
    """Fit a profile to the runs that have a label.

    The profile carries the number of labels and its cross-validated scores, for which everything,
    ridge and temperature too, was chosen anew without the runs that were scored.

    Args:
        labelled: the runs.
        name: of the profile.
        agents: see `Profile`.
        frameworks: likewise.
        trained_on: likewise.
        seed: of the partitions into folds.
        repeats: partitions over which the cross-validated scores are averaged.

    Raises:
        ConfigurationError: fewer than `FEWEST_LABELS` runs have a label, or numpy is missing.
    """
    examples = [example for run in labelled if (example := to_example(run)) is not None]
    if len(examples) < FEWEST_LABELS:
        raise ConfigurationError(
            f"{len(examples)} labelled runs are too few to fit a profile: {FEWEST_LABELS} at least"
        )
    weights, settings = train(examples, seed)
    held_out = [cross_validate(examples, seed + repeat) for repeat in range(repeats)]
    return Profile(
        name=name,
        weights=dict(zip(FEATURES, weights, strict=True)),
        agents=agents,
        frameworks=frameworks,
        trained_on=trained_on,
        labels=len(examples),
        scores=_scores(examples, held_out),
        settings=settings,
    )


def to_example(run: LabelledRun) -> Example | None:
    """Return a run as numbers; None where it has no label or nobody acts."""
    actors, rows = features(run.trajectory)
    if not actors or (run.step is None and not run.agent):
        return None
    names = tuple(run.trajectory.steps[index].agent for index in actors)
    agent = run.agent or (run.trajectory.steps[run.step].agent if run.step is not None else "")
    return Example(
        rows=numpy_module().array(rows),
        steps=tuple(actors),
        agents=names,
        gold=actors.index(run.step) if run.step in actors else None,
        blamed=tuple(i for i, other in enumerate(names) if same_agent(other, agent)),
        group=run.group or run.trajectory.trace_id,
    )


def train(examples: Sequence[Example], seed: int) -> tuple[list[float], dict[str, float]]:
    """Return the weights, calibrated, and the settings that were chosen for them."""
    np = numpy_module()
    tried = _inner_scores(examples, seed)
    ridge, share = min(tried, key=lambda setting: _loss(examples, tried[setting]))
    scores = tried[ridge, share]
    temperature = min(_TEMPERATURES, key=lambda t: _miscalibration(examples, scores, t))
    stack = Stack.of(examples)
    weights = np.round(minimise(stack, ridge, share) / stack.scale / temperature, 4)
    settings = {"ridge": ridge, "agent_share": share, "temperature": round(temperature, 2)}
    return [float(weight) for weight in weights], settings


def _inner_scores(examples: Sequence[Example], seed: int) -> dict[tuple[float, float], list[Any]]:
    """Return every run's scores from weights that saw no run of its group, by setting."""
    scores: dict[tuple[float, float], list[Any]] = {
        (ridge, share): [None] * len(examples) for share in _AGENT_SHARES for ridge in _RIDGES
    }
    for fold in _folds(examples, _INNER_FOLDS, seed):
        stack = Stack.of([example for i, example in enumerate(examples) if i not in fold])
        for share in _AGENT_SHARES:
            weights = None
            for ridge in _RIDGES:  # from the stiffest on: each is a good start for the next
                weights = minimise(stack, ridge, share, weights)
                for i in fold:
                    scores[ridge, share][i] = examples[i].rows @ (weights / stack.scale)
    return scores


def cross_validate(examples: Sequence[Example], seed: int) -> list[list[float]]:
    """Return each run's probabilities from a profile that saw no run of its group."""
    np = numpy_module()
    result: list[list[float]] = [[] for _ in examples]
    for fold in _folds(examples, _OUTER_FOLDS, seed + 1000):
        weights, _ = train([e for i, e in enumerate(examples) if i not in fold], seed)
        for i in fold:
            result[i] = [float(p) for p in _probabilities(examples[i].rows @ np.array(weights))]
    return result


def _scores(
    examples: Sequence[Example], held_out: Sequence[Sequence[Sequence[float]]]
) -> dict[str, float]:
    """Return the share of runs whose agent, step, and step among the first three are right."""
    hits: dict[str, int] = defaultdict(int)
    for repeat in held_out:
        for example, probabilities in zip(examples, repeat, strict=True):
            ranked = sorted(range(len(probabilities)), key=lambda i: -probabilities[i])
            hits["agent"] += ranked[0] in example.blamed
            hits["step"] += ranked[0] == example.gold
            hits["top 3"] += example.gold in ranked[:3]
    scored = len(examples) * len(held_out)
    return {measure: round(count / scored, 3) for measure, count in hits.items()}


def _folds(examples: Sequence[Example], count: int, seed: int) -> list[set[int]]:
    groups = sorted({e.group for e in examples}, key=lambda group: _order(group, seed))
    place = {group: i % count for i, group in enumerate(groups)}
    folds = [{i for i, e in enumerate(examples) if place[e.group] == f} for f in range(count)]
    return [fold for fold in folds if 0 < len(fold) < len(examples)]


def _order(group: str, seed: int) -> str:
    """Return a key that orders groups by chance, the same way on every machine."""
    return hashlib.sha256(f"{seed}:{group}".encode()).hexdigest()


def _loss(examples: Sequence[Example], scores: Sequence[Any]) -> float:
    """Return the mean negative logarithm of the labelled steps' probabilities."""
    np = numpy_module()
    losses = [
        -np.log(max(_probabilities(score)[example.gold], 1e-9))
        for example, score in zip(examples, scores, strict=True)
        if example.gold is not None and score is not None
    ]
    return float(np.mean(losses)) if losses else 0.0


def _miscalibration(
    examples: Sequence[Example], scores: Sequence[Any], temperature: float
) -> float:
    """Return how far the mean probability of the first candidates is from how often they are right."""
    first = [
        (float(_probabilities(score / temperature).max()), int(score.argmax()) == example.gold)
        for example, score in zip(examples, scores, strict=True)
        if score is not None
    ]
    return abs(sum(p for p, _ in first) - sum(hit for _, hit in first))


def _probabilities(scores: Any) -> Any:
    np = numpy_module()
    powers = np.exp(scores - scores.max())
    return powers / powers.sum()
