"""Restores the state outside a program before each of its replays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mast_trace.exceptions import MastTraceError
from mast_trace_lab.program.commands import run_command

if TYPE_CHECKING:
    from collections.abc import Sequence


class ResetFailed(MastTraceError):
    """The command that restores the state outside the program did not end with 0."""


def reset(command: Sequence[str], timeout: float = 60.0) -> None:
    """Run the command of ``--reset``.

    A replay after a failed reset would begin in another state than the others, so that its result
    could not be compared with theirs.

    Raises:
        ResetFailed: it cannot be started, does not end in time, or ends with another status than 0.
    """
    try:
        ended = run_command(command, timeout=timeout)
    except (OSError, ValueError) as error:
        raise ResetFailed(f"the reset {command[0]} cannot be started: {error}") from None
    if ended.exit_status is None:
        raise ResetFailed(f"the reset did not end within {timeout:g} s")
    if ended.exit_status:
        said = f": {ended.last_line}" if ended.last_line else ""
        raise ResetFailed(f"the reset ended with {ended.exit_status}{said}")
