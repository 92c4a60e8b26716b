"""Errors of telemetry code are swallowed and logged once, and nothing else is."""

from __future__ import annotations

import contextlib
import logging

import pytest

from mast_trace.spans import guard


@pytest.mark.parametrize("under_pytest", [True, False])
@pytest.mark.parametrize("error", [None, ZeroDivisionError(), KeyboardInterrupt(), SystemExit()])
def test_only_errors_are_swallowed_and_only_in_production(
    error: BaseException | None,
    under_pytest: bool,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A person who stops the program stops it inside of our code, too."""
    caplog.set_level(logging.WARNING, "mast_trace")
    monkeypatch.setattr(guard, "_reported", set())
    if not under_pytest:
        monkeypatch.delenv("PYTEST_CURRENT_TEST")
    swallowed = isinstance(error, Exception) and not under_pytest
    passes = contextlib.nullcontext()
    for _ in range(2):
        passing = passes if error is None or swallowed else pytest.raises(type(error))
        with passing, guard.guarded("testing"):
            if error is not None:
                raise error
    assert [record.getMessage().partition(";")[0] for record in caplog.records] == (
        ["mast-trace failed while testing"] * swallowed
    )
