"""Fits a profile to labelled runs, and scores it on held-out runs.

Chooses the training parameters of a profile: ridge, agent's share of the loss, temperature.

All three are chosen on folds that never divide a group of runs.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mast_trace.exceptions import ConfigurationError
from mast_trace_judge.local.attribution.features import FEATURES, features
from mast_trace_judge.local.attribution.profile import Profile, likeness_of, run_hash
from mast_trace_judge.study.labelled import LabelledRun, same_agent
from mast_trace_judge.study.logit import LogitExample, Stack, minimise
from mast_trace_judge.study.numeric import numpy_module

RIDGES = (3.2, 1.6, 0.8, 0.4, 0.2, 0.1)
AGENT_SHARES = (0.3, 1.0)
_TEMPERATURES = tuple(0.6 + 0.05 * i for i in range(60))
_INNER_FOLDS = 4

FEWEST_LABELS = 10
"""Number of labelled runs below which a profile would be noise."""
_OUTER_FOLDS = 5
REPEATS = 10
"""Partitions into outer folds over which cross-validated scores are averaged."""


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
    examples: Sequence[LogitExample],
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
    examples: Sequence[LogitExample], seed: int, ridges: Sequence[float], shares: Sequence[float]
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


def folds(examples: Sequence[LogitExample], count: int, seed: int) -> list[set[int]]:
    """Divide the runs by their groups, the same way on every machine; return the runs' places."""
    groups = sorted({e.group for e in examples}, key=lambda group: order(group, seed))
    place = {group: i % count for i, group in enumerate(groups)}
    found = [{i for i, e in enumerate(examples) if place[e.group] == f} for f in range(count)]
    return [fold for fold in found if 0 < len(fold) < len(examples)]


def order(group: str, seed: int) -> str:
    """Return a key that orders groups by chance, the same way on every machine."""
    return hashlib.sha256(f"{seed}:{group}".encode()).hexdigest()


def _loss(examples: Sequence[LogitExample], scores: Sequence[Any]) -> float:
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


def _temperature(examples: Sequence[LogitExample], scores: Sequence[Any]) -> float:
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


def fit(
    labelled: Sequence[LabelledRun],
    *,
    name: str,
    frameworks: tuple[str, ...] = (),
    trained_on: str = "",
    seed: int = 0,
    repeats: int = REPEATS,
) -> Profile:
    """Fit a profile to the runs that have a label.

    The profile carries the number of labels and its cross-validated scores, for which all
    parameters, ridge and temperature included, were chosen without the scored runs.

    Args:
        labelled: the runs.
        name: of the profile.
        frameworks: see `Profile`.
        trained_on: likewise.
        seed: of the partitions into folds.
        repeats: partitions over which the cross-validated scores are averaged.

    Raises:
        ConfigurationError: fewer than `FEWEST_LABELS` runs have a label, or numpy is missing.
    """
    taught = [(run, example) for run in labelled if (example := to_example(run)) is not None]
    examples = [example for _, example in taught]
    if len(examples) < FEWEST_LABELS:
        raise ConfigurationError(
            f"{len(examples)} labelled runs are too few to fit a profile: {FEWEST_LABELS} at least"
        )
    examples, folded_by = in_groups(examples)
    weights, settings, _ = train(examples, seed)
    held_out = [cross_validate(examples, seed + repeat) for repeat in range(repeats)]
    return Profile(
        name=name,
        weights=dict(zip(FEATURES, weights, strict=True)),
        frameworks=frameworks,
        trained_on=trained_on,
        labels=len(examples),
        scores=_scores(examples, held_out),
        settings=settings,
        likeness=likeness_of([run.trajectory for run, _ in taught]),
        runs=tuple(sorted({run_hash(run.trajectory) for run, _ in taught})),
        folded_by=folded_by,
    )


def in_groups(examples: Sequence[LogitExample]) -> tuple[list[LogitExample], str]:
    """Return examples whose groups can be divided into folds, and the unit of a group.

    Where nearly all runs have one task, each run is a group of its own: the scores then hold for
    more runs of these tasks, not for others.
    """
    if len({example.group for example in examples}) >= _OUTER_FOLDS:
        return list(examples), "task"
    return [replace(example, group=str(place)) for place, example in enumerate(examples)], "run"


def to_example(run: LabelledRun) -> LogitExample | None:
    """Return a run as numbers; None where it has no label or nobody acts."""
    actors, rows = features(run.trajectory)
    if not actors or (run.step is None and not run.agent):
        return None
    names = tuple(run.trajectory.steps[index].agent for index in actors)
    agent = run.agent or (run.trajectory.steps[run.step].agent if run.step is not None else "")
    return LogitExample(
        rows=numpy_module().array(rows),
        steps=tuple(actors),
        agents=names,
        gold=actors.index(run.step) if run.step in actors else None,
        blamed=tuple(i for i, other in enumerate(names) if same_agent(other, agent)),
        group=run.group or run.trajectory.trace_id,
    )


def constant_hits(
    examples: Sequence[LogitExample], divisions: Iterable[tuple[Collection[int], Collection[int]]]
) -> dict[int, float]:
    """Return where one step that is always named is the labelled one: what any profile has to beat.

    It is a step's number from either end, among all steps or one agent's: the one that is right most often elsewhere.

    Args:
        examples: the labelled runs.
        divisions: places of runs, and of those from which their constant is learned.
    """
    hits = {}
    for own, others in divisions:
        counts = Counter(each for i in others for each in _constants(examples[i]))
        best = max(counts, key=lambda each: (counts[each], each), default=None)
        hits.update({i: float(best in _constants(examples[i])) for i in own})
    return hits


def _constants(example: LogitExample) -> set[tuple[str, int]]:
    """Return the constants that name the labelled step: an agent or nobody, and a number from either end."""
    if example.gold is None:
        return set()
    found = set()
    for agent in ("", example.agents[example.gold]):
        own = [i for i, other in enumerate(example.agents) if agent in {"", other}]
        place = own.index(example.gold)
        found |= {(agent, place), (agent, place - len(own))}
    return found


def divisions(examples: Sequence[LogitExample], seed: int) -> list[tuple[set[int], list[int]]]:
    """Return the outer folds of a cross-validation, each with all runs beside it."""
    found = folds(examples, _OUTER_FOLDS, seed + 1000)
    return [(fold, [i for i in range(len(examples)) if i not in fold]) for fold in found]


def cross_fit(examples: Sequence[LogitExample], seed: int) -> list[Fold]:
    """Divide the runs into folds, and predict each fold by a profile that has not seen it.

    Parameters that are learned from probabilities, such as a calibration, have to be learned from
    each fold's predictions of the other runs, and then applied to the fold's own.
    """
    np = numpy_module()
    found = []
    for fold, others in divisions(examples, seed):
        weights, _, inner = train([examples[i] for i in others], seed)
        own = {i: probabilities(examples[i].rows @ np.array(weights)) for i in sorted(fold)}
        found.append(Fold(own, dict(zip(others, inner, strict=True))))
    return found


def cross_validate(examples: Sequence[LogitExample], seed: int) -> list[list[float]]:
    """Return each run's probabilities from a profile that saw no run of its group."""
    result: list[list[float]] = [[] for _ in examples]
    for fold in cross_fit(examples, seed):
        for place, found in fold.own.items():
            result[place] = found
    return result


def _scores(
    examples: Sequence[LogitExample], held_out: Sequence[Sequence[Sequence[float]]]
) -> dict[str, float]:
    """Return the share of runs whose agent, step, and step among the first three are right."""
    hits: dict[str, int] = defaultdict(int)
    for repeat in held_out:
        for example, found in zip(examples, repeat, strict=True):
            ranked = sorted(range(len(found)), key=lambda i: -found[i])
            hits["agent"] += ranked[0] in example.blamed
            hits["step"] += ranked[0] == example.gold
            hits["top 3"] += example.gold in ranked[:3]
    scored = len(examples) * len(held_out)
    return {measure: round(count / scored, 3) for measure, count in hits.items()}
