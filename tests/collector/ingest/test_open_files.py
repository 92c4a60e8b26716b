"""The limit of open files is raised as far as it goes, and bounds the number of connections."""

from __future__ import annotations

import resource
from typing import TYPE_CHECKING

import pytest

from mast_trace.exceptions import ConfigurationError
from mast_trace_collector.http_server.limits import connections_that_fit, raise_limit

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The soft and the hard limit that this process seems to have; those of the test stay."""
    pair = [1024, 4096]

    def change(_: int, wanted: tuple[int, int]) -> None:
        if wanted[0] > 10_240:
            raise ValueError("current limit exceeds maximum limit")
        pair[:] = wanted

    monkeypatch.setattr(resource, "getrlimit", lambda _: tuple(pair))
    monkeypatch.setattr(resource, "setrlimit", change)
    return pair


def test_the_soft_limit_is_raised_to_the_hard_one(limits: list[int]) -> None:
    assert raise_limit() == 4096
    assert limits == [4096, 4096]


def test_a_limit_that_cannot_be_raised_stays(limits: list[int]) -> None:
    limits[:] = [1024, resource.RLIM_INFINITY]
    assert raise_limit() == 1024


def test_connections_leave_files_to_the_engine(limits: list[int]) -> None:
    assert connections_that_fit(1024, 0.5) == 1024
    limits[:] = [256, 256]
    assert [connections_that_fit(1024, part) for part in (0.5, 0.25, 0.125)] == [16, 8, 4]


def test_too_low_a_limit_is_told_with_what_to_do(limits: list[int]) -> None:
    limits[:] = [64, 64]
    with pytest.raises(ConfigurationError, match=r"64 files open; it needs 256.*ulimit -n"):
        connections_that_fit(1024, 0.5)
