"""Prices of the models that runs use: a maintained table, and your own prices."""

from mast_trace_judge.pricing.bands import Band, OwnPrice, bands_of, cost_of
from mast_trace_judge.pricing.stored_prices import PriceConfig, store_prices

__all__ = ["Band", "OwnPrice", "PriceConfig", "bands_of", "cost_of", "store_prices"]
