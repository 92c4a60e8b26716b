"""Stores the prices of the models that runs have used, for queries to multiply with."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, ClassVar, Final

from pydantic import Field

from mast_trace.exceptions import StorageError
from mast_trace_collector.settings import ProcessSettings
from mast_trace_collector.storage.span_sql import field
from mast_trace_judge.pricing.bands import Band, OwnPrice, bands_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mast_trace_collector.storage.store import Store

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
_MOST: Final = 100_000
_SEEN = f"""
SELECT Project, Model, Provider
FROM otel_traces
WHERE Operation = 'chat' AND Timestamp >= fromUnixTimestamp64Nano({{since:Int64}})
  AND Timestamp < fromUnixTimestamp64Nano({{until:Int64}}) AND {field("input_tokens")} != ''
GROUP BY Project, Model, Provider
LIMIT {_MOST}"""  # noqa: S608
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
