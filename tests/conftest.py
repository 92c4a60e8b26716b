"""Fixtures and hooks that all tests share."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import skips

if TYPE_CHECKING:
    import pytest

# A proxy of the machine must not stand between a test and the servers that it starts.
for _variable in ("no_proxy", "NO_PROXY"):
    os.environ[_variable] = "127.0.0.1,localhost,::1"


def pytest_configure(config: pytest.Config) -> None:
    """Have skipped tests counted."""
    skips.register(config)


pytest_plugins = ["pytester"]
