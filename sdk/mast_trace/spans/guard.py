"""Contains errors of telemetry code: they are logged once and never raised into the traced program."""

from __future__ import annotations

import logging
import os

logger = logging.getLogger("mast_trace")
_reported: set[tuple[str, str]] = set()
_misused: set[tuple[str, str]] = set()


class guarded:  # noqa: N801  # it reads as the verb that it is: with guarded("recording ...")
    """Runs telemetry code; swallows and logs its error, or raises it under pytest.

    Put only telemetry code inside: the traced program's own call must stay outside, because its
    exceptions have to pass through.

    Args:
        doing: names the work, for the log ("recording a tool call").
    """

    __slots__ = ("_doing",)

    def __init__(self, doing: str) -> None:
        self._doing = doing

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, _trace: object) -> bool | None:
        return kind is not None and isinstance(error, Exception) and swallowed(self._doing, error)


def swallowed(doing: str, error: Exception) -> bool:
    """Log an error of telemetry code; return whether it is swallowed: always, except under pytest.

    It does the work of `guarded` for code that runs in every traced call, where a plain ``try`` is
    cheaper than a context manager.

    Args:
        doing: as in `guarded`.
        error: the exception.
    """
    if "PYTEST_CURRENT_TEST" in os.environ:
        return False
    # One line per kind of error: a defect in a hot path must not flood the user's log.
    key = (doing, type(error).__name__)
    if key not in _reported:
        _reported.add(key)
        logger.warning(
            "mast-trace failed while %s; your program is not affected, but its trace is "
            "incomplete. Further errors of this kind are not logged.",
            doing,
            exc_info=error,
        )
    return True


def misused(call: str, problem: str) -> None:
    """Log once that a function was called with an argument that it does not accept.

    Args:
        call: the function.
        problem: completes "mast_trace.call(): ".
    """
    if (call, problem) not in _misused:
        _misused.add((call, problem))
        logger.warning(
            "mast_trace.%s(): %s. Your program is not affected. This is logged once.", call, problem
        )
