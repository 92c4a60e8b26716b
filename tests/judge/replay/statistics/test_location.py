"""The posterior of the location against one that adds up every hypothesis by itself."""

from __future__ import annotations

import math
import random

import pytest

from mast_trace_lab.confirm.statistics.cells import (
    FLOORS,
    HIGHEST,
    LEVELS,
    LOWEST,
    REPAIRED,
    RISING,
    SINGLE,
    Kinds,
    rate_before,
    rate_diffuse,
)
from mast_trace_lab.confirm.statistics.location import Location, likely
from mast_trace_lab.confirm.statistics.plan import LocationPrior, origin_weights

LENGTH = 7
CASES = [
    {},
    {-1: (3, 4)},
    {-1: (3, 4), 3: (0, 4), 2: (2, 2)},
    {0: (1, 3), 5: (0, 2), 6: (0, 1)},
    {-1: (0, 8), 3: (0, 2)},
    {each: (each % 2, 2) for each in range(-1, LENGTH)},
]


def hypotheses(weights: tuple[float, ...]) -> list[tuple[str, int, int, float, list[float]]]:
    """Every hypothesis: kind, origin, point of no return, prior, and V from the start on."""
    kinds, positions, found = Kinds(), range(-1, LENGTH), []
    shapes = [
        (
            RISING[rises] / len(LEVELS),
            [rate_before(level, bool(rises), each, LENGTH) for each in positions],
        )
        for rises in (0, 1)
        for level in LEVELS
    ]
    for weight, before in shapes:
        found.append(("none", -1, -1, kinds.none * weight, before))
        for floor, share in FLOORS:
            for origin in range(LENGTH):
                for point in range(origin, LENGTH):
                    prior = kinds.fall * weight * share * weights[origin]
                    if point == origin:
                        prior *= SINGLE if origin < LENGTH - 1 else 1
                        lefts = [1.0]
                    else:
                        prior *= (1 - SINGLE) / (LENGTH - 1 - origin) / len(REPAIRED)
                        lefts = list(REPAIRED)
                    for left in lefts:
                        rates = [
                            rate
                            if each < origin
                            else max(LOWEST, left * rate)
                            if each < point
                            else floor
                            for each, rate in zip(positions, before, strict=True)
                        ]
                        found.append(("fall", origin, point, prior, rates))
    for level in LEVELS:
        rates = [rate_diffuse(level, each, LENGTH) for each in positions]
        found.append(("diffuse", -1, -1, kinds.diffuse / len(LEVELS), rates))
    for floor, share in FLOORS:
        found.append(("systematic", -1, -1, kinds.systematic * share, [floor] * (LENGTH + 1)))
    return found


def weighed(counts: dict[int, tuple[int, int]], weights: tuple[float, ...]):
    found = [
        (
            kind,
            origin,
            point,
            prior
            * math.prod(
                rates[each + 1] ** hits * (1 - rates[each + 1]) ** (runs - hits)
                for each, (hits, runs) in counts.items()
            ),
            rates,
        )
        for kind, origin, point, prior, rates in hypotheses(weights)
    ]
    total = sum(each[3] for each in found)
    return [(*each[:3], each[3] / total, each[4]) for each in found]


@pytest.mark.parametrize("counts", CASES)
@pytest.mark.parametrize("candidates", [{}, {2: 0.6, 5: 0.3}])
def test_the_posterior_is_that_of_all_hypotheses(
    counts: dict[int, tuple[int, int]], candidates: dict[int, float]
) -> None:
    weights = origin_weights(LENGTH, candidates)
    location = Location(LocationPrior(weights), counts)
    found = weighed(counts, weights)
    for position in range(LENGTH):
        origin = sum(each[3] for each in found if each[0] == "fall" and each[1] == position)
        point = sum(each[3] for each in found if each[0] == "fall" and each[2] == position)
        assert location.origins[position] == pytest.approx(origin, abs=1e-9)
        assert location.points[position] == pytest.approx(point, abs=1e-9)
    for kind in ("fall", "systematic", "diffuse", "none"):
        weight = sum(each[3] for each in found if each[0] == kind)
        assert getattr(location.kinds, kind) == pytest.approx(weight, abs=1e-9)
    for position in range(-1, LENGTH):
        rate = sum(each[3] * each[4][position + 1] for each in found)
        # After a repairable error the floor of V is left out, which only low levels feel.
        assert location.rate(position) == pytest.approx(rate, abs=1e-3)


@pytest.mark.parametrize("level", LEVELS)
def test_success_stays_rises_by_one_factor_or_falls_by_one_step(level: float) -> None:
    """It begins with the level; a rise ends with 1 and a fall with 0, but for what chance allows."""
    flat, rising, falling = (
        [rate(each) for each in range(-1, LENGTH)]
        for rate in (
            lambda each: rate_before(level, False, each, LENGTH),
            lambda each: rate_before(level, True, each, LENGTH),
            lambda each: rate_diffuse(level, each, LENGTH),
        )
    )
    assert flat == [level] * (LENGTH + 1)
    factor = level ** (-1 / LENGTH)
    steps = range(LENGTH + 1)
    assert rising == pytest.approx([min(HIGHEST, level * factor**each) for each in steps])
    assert falling == pytest.approx([max(LOWEST, level * (1 - each / LENGTH)) for each in steps])


def test_information_is_what_a_replay_removes_on_average_from_the_doubt_about_the_origin() -> None:
    counts = {-1: (3, 4), 4: (0, 2)}
    weights = origin_weights(LENGTH, {2: 1.0})
    location = Location(LocationPrior(weights), counts)
    for position in range(-1, LENGTH):
        assert 0 <= location.information(position) <= math.log(2)
    measured = [location.information(each) for each in range(LENGTH)]
    assert max(measured) == measured[2] or max(measured) == measured[1]
    assert measured[5] < max(measured) / 5  # V is known to be gone there


def test_many_replays_find_the_origin_of_a_long_run() -> None:
    draw = random.Random(1)
    length, error = 300, 211
    prior = LocationPrior(origin_weights(length, {}))
    counts: dict[int, tuple[int, int]] = {}
    for position in [-1, 100, 150, 200, 205, 210, 211, 212, 250]:
        hits = sum(draw.random() < (0.8 if position < error else 0.0) for _ in range(12))
        counts[position] = (hits, 12)
    location = Location(prior, counts)
    assert location.origins[error] > 0.9
    assert sum(location.origins) == pytest.approx(location.kinds.fall)


def test_many_runs_do_not_end_in_zeros() -> None:
    prior = LocationPrior(origin_weights(LENGTH, {}))
    counts = {each: (700 if each < 3 else 0, 1000) for each in range(-1, LENGTH)}
    assert Location(prior, counts).origins[3] == pytest.approx(1.0, abs=1e-6)


def test_the_judge_moves_two_thirds_of_the_prior() -> None:
    weights = origin_weights(10, {4: 0.5, 7: 0.5})
    assert sum(weights) == pytest.approx(1.0)
    assert (weights[4], weights[0]) == (pytest.approx(0.65 / 2 + 0.035), pytest.approx(0.035))
    assert origin_weights(4, {1: -1.0, 9: 2.0}) == (0.25,) * 4


def test_the_fewest_steps_that_hold_most_of_the_probability_are_likely() -> None:
    assert likely({1: 0.5, 2: 0.1, 3: 0.4}) == ((1, 0.5), (3, 0.4))
    assert likely({1: 0.3, 2: 0.3, 3: 0.0}, 0.9) == ((1, 0.3), (2, 0.3))
    assert likely({}) == ()
