"""Prices of a model as bands (which applies from which day, at which hour, for which input), and the stored ones.

Public prices come from `genai-prices`, which is released with new prices every few weeks. It is chosen
before `tokencost`, which has neither dates nor cache writes, and before the table of `litellm`, which comes
with the whole of litellm and knows today's prices only.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Final

from pydantic import BaseModel, ConfigDict, Field

from mast_trace.exceptions import StorageError
from mast_trace_collector.settings import ProcessSettings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from genai_prices.types import ModelInfo, ModelPrice

    from mast_trace_collector.storage.store import Store

BEGINNING: Final = date(1970, 1, 1)
DAY: Final = 86_400
PLACES: Final = Decimal("1e-12")
"""The precision of a price per million tokens."""
MILLION: Final = Decimal(1_000_000)
_MOST: Final = Decimal(1_000_000)
_NAMES_OF_THEIR_OWN: Final = frozenset({"openai", "anthropic", "google"})
"""Providers whose models have names that others' do not have."""
_TOKENS: Final = ("input_mtok", "cache_read_mtok", "cache_write_mtok", "output_mtok")
_KNOWN: Final = frozenset({*_TOKENS, "requests_kcount"})


class OwnPrice(BaseModel):
    """Your own price of a model, in US dollars per million tokens.

    Attributes:
        input: of tokens that the model reads.
        output: of tokens that it writes.
        cache_read: of input from a cache; ``input`` if absent.
        cache_write: of input that is written to a cache; ``input`` if absent.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    input: Decimal = Field(ge=0, le=_MOST)
    output: Decimal = Field(ge=0, le=_MOST)
    cache_read: Decimal | None = Field(None, ge=0, le=_MOST)
    cache_write: Decimal | None = Field(None, ge=0, le=_MOST)


@dataclass(frozen=True)
class Band:
    """The prices of a model in US dollars per million tokens, and their conditions; the last band that applies counts.

    Attributes:
        since: the first day (UTC).
        begin: the first second of the day (UTC).
        end: the first second after it; below ``begin`` for a time around midnight.
        above: input tokens of a call, caches included, above which it applies; -1 for all calls.
        input: of input tokens that are in no cache.
        cache_read: of input tokens from a cache.
        cache_write: of input tokens that are written to a cache.
        output: of output tokens.
        calls: of a million calls.
    """

    since: date
    begin: int
    end: int
    above: int
    input: Decimal
    cache_read: Decimal
    cache_write: Decimal
    output: Decimal
    calls: Decimal = Decimal(0)

    def applies(self, at: datetime, input_tokens: int) -> bool:
        """Return whether a call at this time, with so many input tokens, has this price."""
        moment = at.astimezone(timezone.utc)
        second = moment.hour * 3600 + moment.minute * 60 + moment.second
        around = self.end < self.begin
        inside = (
            second >= self.begin or second < self.end if around else self.begin <= second < self.end
        )
        return moment.date() >= self.since and inside and input_tokens > self.above


def bands_of(model: str, provider: str, own: Mapping[str, OwnPrice]) -> tuple[Band, ...]:
    """Return the prices of a model; none if they are unknown.

    Args:
        model: name of the model, as the call names it.
        provider: as the call names it, such as ``openai`` or ``aws.bedrock``; empty if unknown. Without a
            provider only models of OpenAI, Anthropic and Google have a price, because other names are
            used by several providers at different prices.
        own: your own prices by model, or by provider and model with a slash between.
    """
    mine = own.get(f"{provider}/{model}") or own.get(model)
    if mine is not None:
        return (_of_own(mine),)
    found = _public(model, provider)
    return tuple(_of_public(found)) if found is not None else ()


def cost_of(
    bands: Sequence[Band],
    at: datetime,
    *,
    input_tokens: int,
    output_tokens: int,
    cache_read: int = 0,
    cache_write: int = 0,
) -> Decimal | None:
    """Return the cost of a call in US dollars; None if its price is unknown.

    Args:
        bands: of its model.
        at: the time of the call.
        input_tokens: all that the model read, caches included.
        output_tokens: all that it wrote.
        cache_read: input from a cache.
        cache_write: input written to a cache.
    """
    band = next((each for each in reversed(bands) if each.applies(at, input_tokens)), None)
    if band is None:
        return None
    fresh = max(input_tokens - cache_read - cache_write, 0)
    tokens = fresh * band.input + cache_read * band.cache_read + cache_write * band.cache_write
    return (tokens + output_tokens * band.output + band.calls) / MILLION


def _of_own(price: OwnPrice) -> Band:
    read = price.input if price.cache_read is None else price.cache_read
    write = price.input if price.cache_write is None else price.cache_write
    return _rounded(BEGINNING, 0, DAY, -1, (price.input, read, write, price.output, Decimal(0)))


@cache
def _public(model: str, provider: str) -> ModelInfo | None:
    """Look a model up in the public table."""
    # Its 400 ms are spent only where a price is wanted.
    from genai_prices.data_snapshot import get_snapshot

    try:
        by, found = get_snapshot().find_provider_model(model, None, provider or None, None)
    except LookupError:
        return None
    return found if provider or by.id in _NAMES_OF_THEIR_OWN else None


def _of_public(model: ModelInfo) -> Iterator[Band]:
    from genai_prices.types import ModelPrice, StartDateConstraint

    prices = model.prices
    if isinstance(prices, ModelPrice):
        yield from _tiers(prices, BEGINNING, 0, DAY)
        return
    # The first one counts where no other does.
    yield from _tiers(prices[0].prices, BEGINNING, 0, DAY)
    for each in prices:
        rule = each.constraint
        if rule is None:
            yield from _tiers(each.prices, BEGINNING, 0, DAY)
        elif isinstance(rule, StartDateConstraint):
            yield from _tiers(each.prices, rule.start_date, 0, DAY)
        else:
            times = _second(rule.start_time), _second(rule.end_time)
            yield from _tiers(each.prices, BEGINNING, *times)


def _second(moment: time) -> int:
    offset = moment.utcoffset()
    seconds = moment.hour * 3600 + moment.minute * 60 + moment.second
    return (seconds - int(offset.total_seconds()) if offset else seconds) % DAY


def _tiers(price: ModelPrice, since: date, begin: int, end: int) -> Iterator[Band]:
    """Yield a band for each number of input tokens from which another price applies to the whole call."""
    stated = {name: value for name, value in vars(price).items() if value is not None}
    if "input_mtok" not in stated:
        return  # priced by pages, hours or characters, which spans do not tell
    starts = {tier.start for each in stated.values() for tier in getattr(each, "tiers", ())}
    for above in (-1, *sorted(starts)):
        at = {name: _at(value, above) for name, value in stated.items() if name in _KNOWN}
        full = at["input_mtok"]
        read, write = at.get("cache_read_mtok", full), at.get("cache_write_mtok", full)
        calls = at.get("requests_kcount", Decimal(0)) * 1000
        output = at.get("output_mtok", Decimal(0))
        yield _rounded(since, begin, end, above, (full, read, write, output, calls))


def _at(value: object, above: int) -> Decimal:
    """Return a price for calls with more input tokens than this."""
    tiers = getattr(value, "tiers", None)
    if tiers is None:
        return Decimal(str(value))
    reached = [tier.price for tier in tiers if tier.start <= above]
    return Decimal(str(reached[-1] if reached else getattr(value, "base", 0)))


def _rounded(since: date, begin: int, end: int, above: int, prices: Sequence[Decimal]) -> Band:
    return Band(since, begin, end, above, *(price.quantize(PLACES) for price in prices))


TABLE: Final = "mast_prices"
COLUMNS: Final[Mapping[str, str]] = {
    "since": "Bands.Since",
    "begin": "Bands.Begin",
    "end": "Bands.End",
    "above": "Bands.Above",
    "input": "Bands.Input",
    "cache_read": "Bands.CacheRead",
    "cache_write": "Bands.CacheWrite",
    "output": "Bands.Output",
    "calls": "Bands.Calls",
}
"""The columns of a band's fields."""
_MOST_MODELS: Final = 100_000
_SEEN = f"""
SELECT Project, Model, Provider
FROM otel_traces
WHERE Operation = 'chat' AND Timestamp >= fromUnixTimestamp64Nano({{since:Int64}})
  AND Timestamp < fromUnixTimestamp64Nano({{until:Int64}}) AND (InputTokens > 0 OR OutputTokens > 0)
GROUP BY Project, Model, Provider
LIMIT {_MOST_MODELS}"""  # noqa: S608
_LAST: Final = 2**62
logger = logging.getLogger(__name__)
EVERY: Final = 300.0
"""Seconds between renewals."""
_SOON: Final = 15.0
"""Seconds between looks where no model was found: a first run's cost is not unknown for minutes."""
_FIRST: Final = timedelta(days=1)
_OVERLAP: Final = timedelta(hours=1)
"""Time before the last renewal of which calls are looked at again, because spans arrive late."""


class PriceConfig(ProcessSettings):
    """The settings of prices: `[prices]` in the configuration file."""

    table: ClassVar[str] = "prices"

    own_prices: dict[str, OwnPrice] = Field(
        default_factory=dict,
        description="US dollars per million tokens of models of your own, or at a discount: "
        '{"my-model": {"input": 0.5, "output": 2, "cache_read": 0.05, "cache_write": 0.6}}. '
        "They precede the table of public prices.",
    )


def store_prices(
    store: Store,
    own: Mapping[str, OwnPrice],
    *,
    since: datetime | None = None,
    until: datetime | None = None,
) -> int:
    """Store the present prices of all models that calls of a time have used; return their number.

    A model whose price is unknown has a row without bands, so that it does not keep an earlier price.

    Args:
        store: the database.
        own: your own prices by model.
        since: only models of calls at this time or later.
        until: only models of calls before this time.

    Raises:
        StorageError: the database does not answer, or does not accept the prices.
    """
    given = {"since": _nanoseconds(since, 0), "until": _nanoseconds(until, _LAST)}
    now = datetime.now(timezone.utc)
    rows = [
        {**row, "PricedAt": now, **_columns(bands_of(row["Model"], row["Provider"], own))}
        for row in store.query(_SEEN, given)
    ]
    if rows:
        store.insert(TABLE, rows)
    return len(rows)


def _columns(bands: tuple[Band, ...]) -> dict[str, Any]:
    names = {each.name for each in dataclasses.fields(Band)}
    assert names == set(COLUMNS)
    return {column: [getattr(band, name) for band in bands] for name, column in COLUMNS.items()}


def _nanoseconds(moment: datetime | None, otherwise: int) -> int:
    return otherwise if moment is None else int(moment.timestamp() * 1_000_000) * 1000


async def renew_prices(store: Store, config: PriceConfig, *, every: float = EVERY) -> None:
    """Store the prices of newly used models again and again, until cancelled.

    At the start, models of calls of the last day are looked up; `mast-trace cost --since` renews earlier ones.
    """
    since = datetime.now(timezone.utc) - _FIRST
    while True:
        begun, found = datetime.now(timezone.utc), 1
        try:
            found = await asyncio.to_thread(store_prices, store, config.own_prices, since=since)
        except StorageError as error:
            logger.warning("prices were not renewed, and will be in %.0f s: %s", every, error)
        else:
            since = begun - _OVERLAP
        await asyncio.sleep(every if found else min(every, _SOON))
