"""Prices as bands give the same costs as the table that they come from."""

from __future__ import annotations

import random
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from genai_prices import Usage
from genai_prices.data_snapshot import get_snapshot
from pydantic import ValidationError

from mast_trace_judge.pricing import OwnPrice, PriceConfig, bands_of, cost_of
from mast_trace_judge.pricing.prices import DAY, Band, _of_public, _second

NOON = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)
LENGTHS = (0, 1, 1000, 128_000, 200_000, 200_001, 300_000, 1_000_000)


def test_costs_are_those_of_the_public_table() -> None:
    """Every model of every provider, at random times, input lengths and shares of caches."""
    draw = random.Random(20)
    compared = 0
    for provider in get_snapshot().providers:
        for model in provider.models:
            bands = tuple(_of_public(model))
            at = datetime(2024, 1, 1, tzinfo=timezone.utc) + timedelta(
                seconds=draw.randrange(10**8)
            )
            # A price with several tiers has several that may be the wrong one.
            for read in LENGTHS if len(bands) > 2 else [draw.choice(LENGTHS)]:
                cached = draw.randrange(read + 1)
                written = draw.randrange(read - cached + 1)
                output = draw.randrange(5000)
                usage = Usage(
                    input_tokens=read,
                    cache_read_tokens=cached,
                    cache_write_tokens=written,
                    output_tokens=output,
                )
                ours = cost_of(
                    bands,
                    at,
                    input_tokens=read,
                    output_tokens=output,
                    cache_read=cached,
                    cache_write=written,
                )
                if ours is None:
                    continue  # priced by hours, pages or characters
                theirs = model.calc_price(usage, provider, genai_request_timestamp=at).total_price
                assert abs(ours - theirs) < Decimal("1e-9"), (provider.id, model.id, at, usage)
                compared += 1
    assert compared > 1500


@pytest.mark.parametrize(
    ("model", "provider"),
    [("nobody-knows", ""), ("gpt-4o", "ollama"), ("mistral-large-latest", ""), ("", "")],
)
def test_an_unknown_price_has_no_bands(model: str, provider: str) -> None:
    """A model of several providers has no price where the provider is not known."""
    assert bands_of(model, provider, {}) == ()
    assert bands_of("mistral-large-latest", "mistral_ai", {})
    assert cost_of((), NOON, input_tokens=1, output_tokens=1) is None


def test_own_prices_precede_the_table() -> None:
    own = {
        "gpt-4o": OwnPrice(input=Decimal(1), output=Decimal(3)),
        "azure/gpt-4o": OwnPrice(input=Decimal(0), output=Decimal(0)),
    }
    cost = cost_of(bands_of("gpt-4o", "openai", own), NOON, input_tokens=10**6, output_tokens=10**6)
    assert cost == 4
    free = cost_of(bands_of("gpt-4o", "azure", own), NOON, input_tokens=10**6, output_tokens=10**6)
    assert free == 0


@pytest.mark.parametrize(
    ("begin", "end", "second", "inside"),
    [
        *((0, DAY, second, True) for second in (0, DAY - 1)),
        *((3661, 7200, second, 3661 <= second < 7200) for second in (3660, 3661, 7199, 7200)),
        *((7200, 3661, second, second < 3661 or second >= 7200) for second in (3660, 3661, 7199)),
        (7200, 3661, 7200, True),
    ],
)
def test_a_band_applies_from_its_first_second_on_until_its_end(
    begin: int, end: int, second: int, inside: bool
) -> None:
    """In UTC, whatever the zone of the call; from its first day on; and above so many tokens of input."""
    at = datetime(2026, 3, 1, tzinfo=timezone.utc) + timedelta(seconds=second)
    prices = [Decimal(1)] * 4
    for zone in (timezone.utc, timezone(timedelta(hours=11))):
        for above, day, fits in ((-1, 1, True), (998, 1, True), (999, 1, False), (-1, 2, False)):
            band = Band(date(2026, 3, day), begin, end, above, *prices)
            assert band.applies(at.astimezone(zone), 999) is (inside and fits)
    assert Band(date(2026, 3, 1), 0, DAY, -1, *prices).applies(at, 0)


@pytest.mark.parametrize(
    ("caches", "cost"),
    [
        ({"cache_read": 1, "cache_write": 6}, 51),
        ({"cache_read": 0}, 44),
        ({"cache_write": 0}, 48),
        ({}, 50),
    ],
)
def test_own_prices_of_caches_are_the_inputs_where_they_are_not_given(
    caches: dict[str, Any], cost: int
) -> None:
    bands = bands_of("m", "p", {"m": OwnPrice(input=2, output=10, **caches)})
    used = {"input_tokens": 10, "output_tokens": 3, "cache_read": 3, "cache_write": 1}
    assert cost_of(bands, NOON, **used) == Decimal(cost) / 1_000_000
    # More from a cache than was read at all: a report of that kind makes nothing cheaper.
    most = cost_of(bands, NOON, **{**used, "input_tokens": 0})
    assert most == Decimal(cost - 12) / 1_000_000


def test_prices_are_those_of_the_day() -> None:
    bands = bands_of("o3", "openai", {})
    early, late = (
        cost_of(
            bands,
            datetime(2025, month, 1, tzinfo=timezone.utc),
            input_tokens=10**6,
            output_tokens=0,
        )
        for month in (5, 9)
    )
    assert (early, late) == (Decimal(10), Decimal(2))


@pytest.mark.parametrize(
    "price",
    [
        {"input": -1, "output": 1},
        {"input": 1},
        {"input": "NaN", "output": 1},
        {"input": 1, "output": 1, "x": 1},
    ],
)
def test_a_price_that_cannot_be_is_refused(price: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        OwnPrice.model_validate(price)


def test_own_prices_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAST_TRACE_OWN_PRICES", '{"m": {"input": 0.5, "output": 2}}')
    assert PriceConfig.load().own_prices["m"].output == 2


@pytest.mark.parametrize(
    ("text", "second"), [("16:30:05Z", 59_405), ("00:30:00+01:00", 84_600), ("01:00:00", 3600)]
)
def test_a_time_of_day_is_a_second_of_the_day_in_utc(text: str, second: int) -> None:
    assert _second(time.fromisoformat(text.replace("Z", "+00:00"))) == second
