"""Classes of simulated runs: each makes failed runs whose truth is known."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from random_programs import FIXES, LENGTH, RESAMPLE, Policy, judged

if TYPE_CHECKING:
    import random

    from mast_trace_judge.arms import Fix

Maker = Callable[["random.Random"], Policy]


@dataclass(frozen=True)
class Class:
    """A class of runs.

    Attributes:
        name: for the table.
        make: makes a run.
        something: whether there is an origin to confirm.
        bound: lower bound of the share with the right origin; 0 for none.
        nights: experiments about each run, one after the other.
        stops: replays after which the experiment is killed and resumed; 0 for never.
    """

    name: str
    make: Maker
    something: bool = False
    bound: float = 0.0
    nights: int = 1
    stops: int = 0


def single(rate: float, floor: float = 0.0, length: int = LENGTH) -> Maker:
    """An error that cannot be repaired, in a program that succeeds with `rate` otherwise."""

    def make(draw: random.Random) -> Policy:
        error = draw.randrange(2, length - 2)
        rates = [rate] * (error + 1) + [floor] * (length - error)
        return Policy(rates, error, error, judged(draw, error, length=length))

    return make


def rising(rate: float) -> Maker:
    """An error that cannot be repaired, after a rise of V from `rate`: decisions err alike."""

    def make(draw: random.Random) -> Policy:
        error = draw.randrange(2, LENGTH - 2)
        before = [rate ** ((LENGTH - 1 - step) / LENGTH) for step in range(-1, error)]
        return Policy([*before, *[0.0] * (LENGTH - error)], error, error, judged(draw, error))

    return make


def wandering(draw: random.Random) -> Policy:
    """An error that cannot be repaired, after a V that goes up and down by .15 about .6."""
    found = single(0.6)(draw)
    assert found.origin is not None
    before = [rate + draw.uniform(-0.15, 0.15) for rate in found.rates[: found.origin + 1]]
    return replace(found, rates=[*before, *found.rates[found.origin + 1 :]])


def repairable(repaired: float, rate: float = 0.6) -> Maker:
    """An error after which a share of the success is left, until the repair is missed."""

    def make(draw: random.Random) -> Policy:
        error = draw.randrange(2, LENGTH - 6)
        missed = draw.randrange(error + 2, LENGTH - 2)
        rates = [rate] * (error + 1) + [rate * repaired] * (missed - error)
        rates += [0.0] * (LENGTH - missed)
        return Policy(rates, error, missed, judged(draw, error))

    return make


def two_sufficient(*fixes: Fix) -> Maker:
    """Two errors that the program always makes; each alone is enough. All candidates have these fixes."""

    def make(draw: random.Random) -> Policy:
        first = draw.randrange(2, LENGTH - 6)
        second = draw.randrange(first + 2, LENGTH - 2)
        prior = judged(draw, first, second)
        rates, sources = [0.0] * (LENGTH + 1), dict.fromkeys(prior, fixes)
        return Policy(rates, None, None, prior, sources, joint=(first, second, 0.9))

    return make


def hardly_ever(draw: random.Random) -> Policy:
    """No fix helps, and few replays succeed: single fixes often never do, so that joint ones are tried."""
    found = nothing(0.1)(draw)
    return replace(found, sources=dict.fromkeys(found.prior, (FIXES[3],)))


def leaking(draw: random.Random) -> Policy:
    """A fix that makes nearly every replay succeed, at any step: it gives the right answer away."""
    steps = range(LENGTH)
    sources = dict.fromkeys(steps, (FIXES[3],))
    return replace(single(0.6)(draw), sources=sources, fixed=dict.fromkeys(steps, 0.95))


def systematic(draw: random.Random) -> Policy:
    """A program that always fails, and no fix that helps."""
    return Policy([0.0] * (LENGTH + 1), None, None, judged(draw, draw.randrange(LENGTH)))


def systematic_fixed(draw: random.Random) -> Policy:
    """A program that always fails; the judge's fix of one step helps."""
    error = draw.randrange(2, LENGTH - 2)
    prior = judged(draw, error)
    sources = {step: (RESAMPLE, *([FIXES[3]] if step in prior else [])) for step in range(LENGTH)}
    return Policy([0.0] * (LENGTH + 1), error, None, prior, sources, fixed={error: 0.9})


def diffuse(draw: random.Random) -> Policy:
    """A decline of V over the whole run: no step explains it."""
    rates = [0.8 * (LENGTH - 1 - step) / LENGTH for step in range(-1, LENGTH)]
    return Policy(rates, None, None, judged(draw, draw.randrange(LENGTH)))


def unstable(draw: random.Random) -> Policy:
    """An oracle that tells the opposite in a fifth of the cases; no fix helps."""
    rates = [0.6] * (LENGTH + 1)
    return Policy(rates, None, None, judged(draw, draw.randrange(LENGTH)), noise=0.2)


def nothing(rate: float, **ways: object) -> Maker:
    """No fix helps: the failure was chance outside of the model."""

    def make(draw: random.Random) -> Policy:
        rates = [rate] * (LENGTH + 1)
        return Policy(rates, None, None, judged(draw, draw.randrange(LENGTH)), **ways)  # type: ignore[arg-type]

    return make


def one_draw(draw: random.Random) -> Policy:
    """No fix helps, and replays of an arm share one draw, as with a cache or a fixed seed."""
    return nothing(draw.uniform(0.1, 0.9), shared=True)(draw)


def one_draw_jointly(draw: random.Random) -> Policy:
    """Likewise, with fixes of three steps, which are tried together where none of them drew a success."""
    found = one_draw(draw)
    return replace(found, sources=dict.fromkeys(found.prior, (FIXES[3],)))


def wave(number: int) -> float:
    """A provider whose quality goes up and down, once in forty replays."""
    return 0.35 * math.sin(2 * math.pi * number / 40)


ALL_FIXES = dict.fromkeys(range(LENGTH), FIXES)
CLASSES = (
    Class("single error, V .9", single(0.9), something=True, bound=0.85),
    Class("single error, V .6", single(0.6), something=True, bound=0.70),
    Class("single error, V .3", single(0.3), something=True),
    Class("single error, V rising from .3", rising(0.3), something=True),
    Class("single error, V wandering about .6", wandering, something=True),
    *(
        Class(
            f"single error, V {rate:.1g}, {length} steps".replace("0.", "."), maker, something=True
        )
        for length in (10, 40, 80)
        for rate in (0.9, 0.6)
        for maker in (single(rate, length=length),)
    ),
    Class("guess floor .1, V .9", single(0.9, 0.1), something=True),
    Class("guess floor .1, V .6", single(0.6, 0.1), something=True),
    Class("repairable .3, V .6", repairable(0.3), something=True),
    Class("repairable .6, V .6", repairable(0.6), something=True),
    Class("single error, V .6, every fix helps", leaking, something=True),
    Class("systematic, one fix helps", systematic_fixed, something=True),
    Class("two sufficient errors", two_sufficient(FIXES[3])),
    Class("two sufficient errors, four fix sources", two_sufficient(*FIXES)),
    Class("systematic, no fix helps", systematic),
    Class("diffuse decline", diffuse),
    Class("unstable oracle", unstable),
    Class("nothing planted, V .3", nothing(0.3)),
    Class("nothing planted, V .6", nothing(0.6)),
    Class("nothing planted, V .1, joint fixes", hardly_ever),
    Class("nothing planted, four fix sources", nothing(0.5, sources=ALL_FIXES)),
    Class("nothing planted, drift", nothing(0.5, drift=wave)),
    Class("nothing planted, successes censored", nothing(0.5, censored=0.5)),
    Class("nothing planted, last call alone random", nothing(0.25, quiet=True)),
    Class("nothing planted, killed and resumed", nothing(0.5), stops=7),
    Class("nothing planted, 30 nightly retries", nothing(0.5), nights=30),
    Class("nothing planted, an arm shares one draw", one_draw),
    Class("nothing planted, an arm shares one draw, joint fixes", one_draw_jointly),
)
