"""The settings of `mast-trace up`."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field, SecretStr

from mast_trace_collector.settings import ProcessSettings


class UpConfig(ProcessSettings):
    """The settings of `mast-trace up` beside those of its parts: `[up]` in the configuration file."""

    table: ClassVar[str] = "up"
    moved: ClassVar[frozenset[str]] = frozenset({"web_host", "web_port", "web_token"})

    clickhouse_port: int = Field(
        8123,
        ge=0,
        le=65535,
        description="Port on loopback under which Grafana and other programs read the embedded "
        "database as a ClickHouse server; 0 takes a free one.",
    )
    clickhouse_password: SecretStr = Field(
        SecretStr(""),
        description="Password of the user default there; empty: one is made, shown once, and its hash kept under "
        "data_dir.",
    )
    judge_enabled: bool = Field(default=True, description="Turns judging of finished runs on.")
