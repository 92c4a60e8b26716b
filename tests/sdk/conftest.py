"""Fixtures of the SDK's tests."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from receiver import Receiver, receiving

import mast_trace

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No test sees the settings of the machine, none leaves instrumentation on."""
    for name in list(os.environ):
        if name.startswith("OTEL_"):
            monkeypatch.delenv(name)
    yield
    mast_trace.uninstrument()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A receiver on a free port."""
    with receiving() as open_receiver:
        yield open_receiver


@pytest.fixture
def closed_port() -> int:
    """A port at which nobody listens."""
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
