"""Fixtures of the SDK's tests."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest
from receiver import Receiver, receiving

import mast_trace
from mast_trace import _frameworks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mast_trace_instrumentations.base import Instrumentor


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
def known(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Sets which instrumentations are installed; none at first."""

    class Point:
        def __init__(self, kind: type[Instrumentor]) -> None:
            self.name = kind.framework
            self.load = lambda: kind

    def know(*kinds: type[Instrumentor]) -> None:
        monkeypatch.delitem(sys.modules, "colorsys", raising=False)
        monkeypatch.setattr(_frameworks, "entry_points", lambda group: [*map(Point, kinds)])

    know()
    return know


@pytest.fixture
def closed_port() -> int:
    """A port at which nobody listens."""
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
