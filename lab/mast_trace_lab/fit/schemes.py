"""Ways to hold labels out: original runs, scenarios, operators, and operators together with scenarios.

A plain score tells what a profile makes of more faults of the same kinds. On operators that it has not seen, in
scenarios that it has not seen, it shows what it knows of failures.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mast_trace_judge.study.training import order
from mast_trace_lab.fit.labels import INJECTION
from mast_trace_lab.fit.models import trained

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from mast_trace_lab.fit.labels import Label
    from mast_trace_lab.fit.models import Mass, Recipe

PLAIN: Final = "plain"
SCENARIO: Final = "scenario"
OPERATOR: Final = "operator"
JOINT: Final = "operator and scenario"
SCHEMES: Final = (PLAIN, SCENARIO, OPERATOR, JOINT)
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
        scheme: one of `SCHEMES`.
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
