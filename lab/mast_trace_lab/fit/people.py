"""The gain of a fit on people's labels alone, and the weight of planted faults that people's labels ask for."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from mast_trace_lab.fit.labels import INJECTION, OF_INJECTED, PERSON
from mast_trace_lab.fit.models import trained
from mast_trace_lab.fit.schemes import PARTS, parts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mast_trace_lab.fit.labels import Label
    from mast_trace_lab.fit.models import Mass, Recipe

_INNER: Final = 3


@dataclass(frozen=True)
class OnPeople:
    """Held-out probabilities of people's runs, and the chosen weight.

    Attributes:
        fitted: with planted faults, by place; their weight was chosen without the run's scenario.
        people_only: without them.
        weight: the weight that all of people's labels choose.
    """

    fitted: dict[int, Mass]
    people_only: dict[int, Mass]
    weight: float


def nested(
    labels: Sequence[Label],
    units: Sequence[str],
    recipe: Recipe,
    advance: Callable[[], None] = lambda: None,
) -> OnPeople:
    """Cross-validate on people's labels, and choose the weight of planted faults inside of each fold.

    Planted faults in a scenario of the scored runs are left out with it.

    Args:
        labels: of all sources, people's among them.
        units: the unit of each that no fold divides.
        recipe: of the training; its weight of planted faults is not used.
        advance: called after each of the `STEPS`.

    Raises:
        ConfigurationError: scipy is not installed.
    """
    people = {place for place, label in enumerate(labels) if label.source == PERSON}
    fitted: dict[int, Mass] = {}
    alone: dict[int, Mass] = {}
    for part in parts(units, PARTS, recipe.seed):
        rest = [place for place in range(len(labels)) if place not in part]
        scored = sorted(part & people)
        if scored:
            weight = _chosen(labels, units, rest, recipe)
            fitted.update(_predicted(labels, rest, scored, replace(recipe, of_injected=weight)))
            alone.update(_predicted(labels, rest, scored, replace(recipe, of_injected=0.0)))
        advance()
    weight = _chosen(labels, units, list(range(len(labels))), recipe)
    advance()
    return OnPeople(fitted, alone, weight)


STEPS: Final = PARTS + 1
"""Times that `nested` calls ``advance``, at most."""


def _chosen(
    labels: Sequence[Label], units: Sequence[str], known: Sequence[int], recipe: Recipe
) -> float:
    """Return the weight under which people's labels among the known ones are likeliest, held out.

    Equal weights count from the smallest on.
    """
    if not any(labels[place].source == INJECTION for place in known):
        return 0.0
    own = [units[place] for place in known]
    inner = parts(own, _INNER, recipe.seed + 1)
    losses = {}
    for weight in OF_INJECTED:
        surprise = []
        for part in inner:
            scored = [known[i] for i in sorted(part) if labels[known[i]].source == PERSON]
            rest = [known[i] for i in range(len(known)) if i not in part]
            found = _predicted(labels, rest, scored, replace(recipe, of_injected=weight))
            surprise += [
                -math.log(max(mass.get(labels[i].run.step or 0, 0.0), 1e-9))
                for i, mass in found.items()
                if labels[i].run.step is not None
            ]
        losses[weight] = sum(surprise) / len(surprise) if surprise else math.inf
    return min(OF_INJECTED, key=lambda weight: losses[weight])


def _predicted(
    labels: Sequence[Label], known: Sequence[int], scored: Sequence[int], recipe: Recipe
) -> dict[int, Mass]:
    model = trained([labels[i] for i in known], recipe) if scored and known else None
    return {} if model is None else {i: model.mass(labels[i]) for i in scored}
