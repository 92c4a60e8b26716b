"""A profile's weights over chosen features, trained on chosen labels; and its predictions for other runs.

Ways to hold labels out: original runs, scenarios, operators, and operators together with scenarios.

A plain score tells what a profile makes of more faults of the same kinds. On operators that it has not seen, in
scenarios that it has not seen, it shows what it knows of failures.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from mast_trace_judge.local.attribution import Attribution, conclude
from mast_trace_judge.local.attribution.calibration import Calibration
from mast_trace_judge.local.attribution.profile import Profile
from mast_trace_judge.study.numeric import numpy_module
from mast_trace_judge.study.training import order, probabilities, train
from mast_trace_lab.fit.labels import COLUMNS, INJECTION, Label, weigh_labels

Mass = dict[int, float]
"""Probability of each step of a run, by its index."""
_FEW_RIDGES: Final = (3.2, 0.8, 0.2)
_FEW_SHARES: Final = (0.3,)
_LEAST_OPERATORS: Final = 4


@dataclass(frozen=True)
class Recipe:
    """The choices by which a profile is trained.

    Attributes:
        names: the features.
        of_injected: weight of planted faults beside the other sources.
        prevalence: share of each failure mode among people's labels; empty if unknown.
        seed: of partitions.
    """

    names: tuple[str, ...]
    of_injected: float
    prevalence: Mapping[str, float]
    seed: int


@dataclass(frozen=True)
class Model:
    """Trained weights.

    Attributes:
        weights: one for each of the recipe's features.
        settings: of the training.
        columns: places of the features in a label's rows.
    """

    weights: tuple[float, ...]
    settings: Mapping[str, float]
    columns: tuple[int, ...]

    def mass(self, label: Label) -> Mass:
        """Return the probability of each attributable step of a run."""
        np = numpy_module()
        rows = label.example.rows[:, self.columns]
        found = probabilities(rows @ np.array(self.weights))
        return dict(zip(label.example.steps, found, strict=True))


def trained(labels: Sequence[Label], recipe: Recipe, *, thorough: bool = False) -> Model | None:
    """Train on labels; None where none of them has a weight.

    Ridge and temperature are chosen on folds that leave out whole operators of planted faults and whole tasks of
    other labels, so that they fit what has not been seen.

    Args:
        labels: the labelled runs.
        recipe: the choices.
        thorough: try all ridges and agent's shares; held-out models, of which there are many, try a few.

    Raises:
        ConfigurationError: scipy is not installed.
    """
    columns = tuple(COLUMNS[name] for name in recipe.names)
    shares = weigh_labels(labels, recipe.of_injected, recipe.prevalence)
    operators = {label.operator for label in labels if label.source == INJECTION}
    by_operator = len(operators) >= _LEAST_OPERATORS
    examples = [
        replace(
            label.example,
            rows=label.example.rows[:, columns],
            group=f"operator {label.operator}"
            if by_operator and label.operator
            else label.scenario,
            weight=weight,
        )
        for label, weight in zip(labels, shares, strict=True)
        if weight > 0
    ]
    if not any(e.gold is not None or e.blamed for e in examples):
        return None
    grid: dict[str, Any] = {} if thorough else {"ridges": _FEW_RIDGES, "shares": _FEW_SHARES}
    weights, settings, _ = train(examples, recipe.seed, **grid)
    return Model(tuple(weights), settings, columns)


def concluded(
    label: Label,
    mass: Mapping[int, float],
    calibration: Calibration | None = None,
    least: float = 0,
) -> Attribution:
    """Return what the judge says of a run with a fitted profile's probabilities and the rules' findings."""
    told = (calibration or Calibration()).apply(dict(mass))
    profile = Profile(name="fitted", weights={}, abstain_below=least)
    return conclude(label.trajectory, told, {}, label.findings, profile)


PLAIN: Final = "plain"
SCENARIO: Final = "scenario"
OPERATOR: Final = "operator"
JOINT: Final = "operator and scenario"
PARTS: Final = 5
_MOST_PARTS: Final = 10
"""Number of scenarios up to which each is left out alone; more are left out in as many parts."""


@dataclass(frozen=True)
class HeldOutLabels:
    """Labels that are predicted by a profile trained on others.

    Attributes:
        test: places of the predicted labels.
        train: places of those that it is trained on.
    """

    test: tuple[int, ...]
    train: tuple[int, ...]


def cells(
    labels: Sequence[Label], units: Sequence[str], scheme: str, seed: int
) -> list[HeldOutLabels]:
    """Return the cells of a scheme; none where nothing can be held out.

    Args:
        labels: the labelled runs.
        units: the unit of each that no fold of scenarios divides.
        scheme: `PLAIN`, `SCENARIO`, `OPERATOR` or `JOINT`.
        seed: of the partition.
    """
    everything = range(len(labels))
    if scheme == OPERATOR:
        planted = [place for place in everything if labels[place].operator]
        found = list(_by_operator(labels, planted, everything))
        return [cell for cell in found if cell.train]
    by = [label.origin for label in labels] if scheme == PLAIN else list(units)
    count = _MOST_PARTS if scheme == SCENARIO else PARTS
    found = []
    for part in parts(by, count, seed):
        rest = [place for place in everything if place not in part]
        if scheme == JOINT:
            found += _by_operator(labels, sorted(part), rest)
        else:
            found.append(HeldOutLabels(tuple(sorted(part)), tuple(rest)))
    return [cell for cell in found if cell.train]


def held_out(
    labels: Sequence[Label],
    found: Sequence[HeldOutLabels],
    recipe: Recipe,
    *,
    only: Collection[int] | None = None,
    advance: Callable[[], None] = lambda: None,
) -> dict[int, Mass]:
    """Return the probabilities of each cell's runs from a profile that was trained without them.

    Args:
        labels: the labelled runs.
        found: the cells.
        recipe: of the training.
        only: places that may be trained on; all if absent.
        advance: called after each cell.

    Raises:
        ConfigurationError: scipy is not installed.
    """
    result: dict[int, Mass] = {}
    for cell in found:
        known = [labels[i] for i in cell.train if only is None or i in only]
        model = trained(known, recipe) if known else None
        if model is not None:
            result.update({place: model.mass(labels[place]) for place in cell.test})
        advance()
    return result


def _by_operator(
    labels: Sequence[Label], tested: Sequence[int], known: Sequence[int]
) -> Iterator[HeldOutLabels]:
    """Yield a cell for each operator; labels of other sources are tested on all that is known beside them."""
    by_operator: dict[str, list[int]] = {}
    for place in tested:
        by_operator.setdefault(labels[place].operator, []).append(place)
    for operator, test in sorted(by_operator.items()):
        others = [
            place
            for place in known
            if place not in set(test) and (not operator or labels[place].operator != operator)
        ]
        planted = any(labels[place].source == INJECTION for place in others)
        if operator and not planted:
            continue
        yield HeldOutLabels(tuple(test), tuple(others))


def parts(units: Sequence[str], count: int, seed: int) -> list[set[int]]:
    """Divide places by their units, the same way on every machine."""
    ordered = sorted(set(units), key=lambda unit: order(unit, seed))
    of = {unit: i % count for i, unit in enumerate(ordered)}
    found = [{i for i, unit in enumerate(units) if of[unit] == part} for part in range(count)]
    return [part for part in found if 0 < len(part) < len(units)]
