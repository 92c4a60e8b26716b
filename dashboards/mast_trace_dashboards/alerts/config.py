"""The settings of the alerts."""

from __future__ import annotations

from typing import ClassVar, Final

from pydantic import Field, NonNegativeFloat, PositiveFloat, SecretStr, field_validator

from mast_trace.exceptions import ConfigurationError
from mast_trace.urls import parse_url
from mast_trace_collector.settings import ProcessSettings

DEFAULT_WEB: Final = "http://127.0.0.1:8680"
_ADDRESS: Final = r"^https?://[^\s{}$<>|\"'\\]+$"
"""Characters that the files of Grafana and Prometheus, or Slack, would interpret are refused."""


class AlertConfig(ProcessSettings):
    """The settings of alerting: `[alerts]` in the configuration file."""

    table: ClassVar[str] = "alerts"

    alert_webhook: SecretStr = Field(
        SecretStr(""), description="Webhook to which `mast-trace alerts run` sends alerts by POST."
    )
    alert_web_url: str = Field(
        DEFAULT_WEB,
        pattern=_ADDRESS,
        description="Address at which people reach the web view: alerts link to it, and to their "
        "runbooks there, in all forms.",
    )
    alert_interval_seconds: PositiveFloat = Field(
        300.0, description="Seconds between two evaluations of `mast-trace alerts run`."
    )
    alert_daily_budget_usd: NonNegativeFloat = Field(
        20.0,
        description="US dollars of model calls in 24 hours above which an alert says that judging "
        "costs too much; it stops nothing, judge_max_usd_per_day does.",
    )
    alert_collectors: list[str] = Field(
        default_factory=list,
        description="OTLP/HTTP addresses of collectors whose refused requests and damaged files are "
        "watched; none: that of the running `mast-trace up`.",
    )
    alert_collector_key: SecretStr = Field(
        SecretStr(""),
        description="Bearer key with which their /metrics are read; it needs the right `metrics`.",
    )

    @field_validator("alert_webhook")
    @classmethod
    def _webhook_is_a_url(cls, value: SecretStr) -> SecretStr:
        if not (text := value.get_secret_value()):
            return value
        try:
            return SecretStr(parse_url(text).text)
        except ConfigurationError:
            # The whole address of a webhook is secret.
            raise ValueError(
                "it cannot be read as a URL: write https://..., with /, ? and # in a password as "
                "%2F, %3F and %23"
            ) from None
