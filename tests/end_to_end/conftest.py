"""Processes that tests start, and that end with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from end_to_end.processes import CollectorProcess
from end_to_end.up_process import UpProcess

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def up(tmp_path: Path) -> Iterator[UpProcess]:
    """A `mast-trace up` that has not been started yet; killed at the end if it still runs."""
    process = UpProcess(tmp_path / "data")
    yield process
    process.kill_if_running()


@pytest.fixture
def database(tmp_path: Path) -> Iterator[CollectorProcess]:
    """A database that serves a collector."""
    process = CollectorProcess(tmp_path / "database", database_only=True)
    process.start()
    yield process
    process.close()
