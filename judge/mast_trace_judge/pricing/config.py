"""The settings of prices."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from mast_trace_collector.settings import ProcessSettings
from mast_trace_judge.pricing.bands import OwnPrice  # noqa: TC001  # pydantic reads it at run time


class PriceConfig(ProcessSettings):
    """The settings of prices: `[prices]` in the configuration file."""

    table: ClassVar[str] = "prices"

    own_prices: dict[str, OwnPrice] = Field(
        default_factory=dict,
        description="US dollars per million tokens of models of your own, or at a discount: "
        '{"my-model": {"input": 0.5, "output": 2, "cache_read": 0.05, "cache_write": 0.6}}. '
        "They precede the table of public prices.",
    )
