"""The announcement of a running `mast-trace up`, a small file in its data folder; and its settings."""

from __future__ import annotations

import json
import socket
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import ClassVar

from pydantic import Field, SecretStr

from mast_trace.exceptions import ConfigurationError
from mast_trace.urls import parse_url
from mast_trace_collector.settings import ProcessSettings
from mast_trace_dashboards.whole_files import write_whole


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


_NAME = "up.json"
_PORTS = {"http": 8123, "clickhouse": 8123, "https": 8443, "clickhouses": 8443}


@dataclass(frozen=True)
class RunningInstance:
    """A running `mast-trace up`.

    Attributes:
        pid: id of its process.
        data_dir: its folder.
        clickhouse: address of its ClickHouse-compatible endpoint, for reading, or of the server that it
            stores on; without the password.
        owner: Unix socket of the embedded database for commands of this user; empty with a server.
        otlp_http: address to send spans to over HTTP.
        otlp_grpc: the same over gRPC; empty if that is off.
        web: address of the web view; empty if that is off.
        needs_password: whether the server asks for a password, which is not in this file.
    """

    pid: int
    data_dir: str
    clickhouse: str
    otlp_http: str
    otlp_grpc: str = ""
    owner: str = ""
    web: str = ""
    needs_password: bool = False


def announce(running: RunningInstance) -> Path:
    """Write the file, readable by this user alone; return its path."""
    path = Path(running.data_dir, _NAME)
    write_whole(path, json.dumps(asdict(running), indent=2), private=True)
    return path


def withdraw(data_dir: Path) -> None:
    """Remove the file."""
    Path(data_dir, _NAME).unlink(missing_ok=True)


def announced(data_dir: Path) -> float:
    """Return when the running `mast-trace up` locked its folder, in seconds since the epoch."""
    return Path(data_dir, _NAME).stat().st_mtime


def find(data_dir: Path) -> RunningInstance | None:
    """Return the `mast-trace up` that serves this folder now; None if none does.

    Raises:
        ConfigurationError: the file exists but cannot be read.
    """
    path = Path(data_dir, _NAME)
    try:
        running = RunningInstance(**json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError) as error:
        raise ConfigurationError(f"{path} cannot be read: {error}") from error
    # A killed process leaves its file behind, and its id may belong to another process by now.
    return running if _answers(running.clickhouse) else None


def _answers(url: str) -> bool:
    address = parse_url(url)
    port = address.port or _PORTS.get(address.scheme, 0)
    try:
        with socket.create_connection((address.host, port), timeout=1.0):
            return True
    except OSError:
        return False
