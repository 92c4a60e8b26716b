"""Stores the prices of the models that runs have used, for queries to multiply with."""

from __future__ import annotations

import dataclasses
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Final

from mast_trace_collector.storage.span_sql import field
from mast_trace_judge.pricing.bands import Band, bands_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mast_trace_collector.storage.store import Store
    from mast_trace_judge.pricing.bands import OwnPrice

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
        own: prices of one's own by model.
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
