"""Telemetry errors stay telemetry's: logged once, never raised into the traced program."""

from __future__ import annotations

import logging
import os

logger = logging.getLogger("mast_trace")
_reported: set[tuple[str, str]] = set()


class guarded:  # noqa: N801  # it reads as the verb that it is: with guarded("recording ...")
    """Runs telemetry code; swallows and logs its error, or raises it under pytest.

    Only telemetry goes inside: the traced program's own call must stay outside, for its
    exceptions are to pass through.

    Args:
        doing: what is being done, for the log ("recording a tool call").
    """

    __slots__ = ("_doing",)

    def __init__(self, doing: str) -> None:
        self._doing = doing

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, _trace: object) -> bool | None:
        if kind is None or not isinstance(error, Exception):
            return False
        if "PYTEST_CURRENT_TEST" in os.environ:
            return False
        # One line per kind of error: a defect in a hot path must not flood the user's log.
        key = (self._doing, type(error).__name__)
        if key not in _reported:
            _reported.add(key)
            logger.warning(
                "mast-trace failed while %s; your program is not affected, but its trace is "
                "incomplete. Further errors of this kind are not logged.",
                self._doing,
                exc_info=error,
            )
        return True
