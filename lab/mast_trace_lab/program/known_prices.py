"""Prices of the models that a run's program asks: those given, else those of the maintained table."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING

from mast_trace_judge.llm.budget import Price
from mast_trace_judge.pricing import bands_of
from mast_trace_lab.program.isolation import recorded_models

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mast_trace.trajectory import Trajectory
    from mast_trace_judge.pricing import OwnPrice


def known_prices(
    recorded: Trajectory,
    given: Mapping[str, Price],
    own: Mapping[str, OwnPrice],
    others: Iterable[str] = (),
) -> dict[str, Price]:
    """Return the prices by model that are known, in US dollars per million tokens.

    Where a model's price depends on the hour or on the length of the input, the highest counts: a
    budget must hold for any call.

    Args:
        recorded: the run; the models that answered in it are looked up.
        given: prices that a person has given; they come before all others.
        own: your own prices, by model.
        others: names of further models that replays ask.
    """
    found = dict(given)
    today = datetime.now(timezone.utc).date()
    for model in {*recorded_models(recorded), *others} - {""} - given.keys():
        bands = [band for band in bands_of(model, "", own) if band.since <= today]
        if bands:
            found[model] = Price(
                input=float(max(max(each.input, each.cache_write) for each in bands)),
                output=float(max(each.output for each in bands)),
            )
    return found
