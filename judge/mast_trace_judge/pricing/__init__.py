"""Prices of the models that runs use: a maintained table, and your own prices."""

from mast_trace_judge.pricing.prices import (
    Band,
    OwnPrice,
    PriceConfig,
    bands_of,
    cost_of,
    store_prices,
)

__all__ = ["Band", "OwnPrice", "PriceConfig", "bands_of", "cost_of", "store_prices"]
