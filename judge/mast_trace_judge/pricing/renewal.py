"""Renews the stored prices while a process runs."""

from __future__ import annotations

import asyncio
import logging
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Final

from mast_trace.exceptions import StorageError
from mast_trace_judge.pricing.stored_prices import store_prices

if TYPE_CHECKING:
    from mast_trace_collector.storage.store import Store
    from mast_trace_judge.pricing.config import PriceConfig

logger = logging.getLogger(__name__)

EVERY: Final = 300.0
"""Seconds between renewals."""
_FIRST: Final = timedelta(days=1)
_OVERLAP: Final = timedelta(hours=1)
"""Time before the last renewal of which calls are looked at again, because spans arrive late."""


async def renew_prices(store: Store, config: PriceConfig, *, every: float = EVERY) -> None:
    """Store the prices of newly used models again and again, until cancelled.

    At the start, models of calls of the last day are looked up; `mast-trace cost --since` renews earlier ones.
    """
    since = datetime.now(timezone.utc) - _FIRST
    while True:
        begun = datetime.now(timezone.utc)
        try:
            await asyncio.to_thread(store_prices, store, config.own_prices, since=since)
        except StorageError as error:
            logger.warning("prices were not renewed, and will be in %.0f s: %s", every, error)
        else:
            since = begun - _OVERLAP
        await asyncio.sleep(every)
