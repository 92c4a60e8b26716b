"""A profile's weights over chosen features, trained on chosen labels; and its predictions for other runs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from mast_trace_judge.local.attribution import conclude
from mast_trace_judge.local.attribution.calibration import Calibration
from mast_trace_judge.local.attribution.profile import Profile
from mast_trace_judge.study.numeric import numpy_module
from mast_trace_judge.study.training import probabilities, train
from mast_trace_lab.fit.labels import COLUMNS, INJECTION, weigh_labels

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mast_trace_judge.local.attribution import Attribution
    from mast_trace_lab.fit.labels import Label

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
