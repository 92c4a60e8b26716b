"""Asks an oracle, a command of the user, whether an answer is right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mast_trace_lab.program.commands import run_command

if TYPE_CHECKING:
    from collections.abc import Sequence

SUCCESS, FAILURE = 0, 1
"""Exit statuses of an oracle; all others are errors."""


@dataclass(frozen=True)
class Opinion:
    """The answer of an oracle.

    Attributes:
        success: whether the answer is right; None if the oracle could not tell.
        reason: the last line that it printed, or the reason why it could not tell.
    """

    success: bool | None
    reason: str = ""


@dataclass(frozen=True)
class Oracle:
    """A command that reads a final answer on standard input and ends with 0 (right) or 1 (wrong).

    Attributes:
        command: the program and its arguments; no shell reads them.
        timeout: seconds after which it is killed, which is an error.
    """

    command: tuple[str, ...]
    timeout: float = 60.0

    def ask(self, answer: str) -> Opinion:
        """Return whether an answer is right.

        An oracle that cannot be started, that is killed, or that ends with another status has no
        opinion: its error is not taken for a failure of the answer.
        """
        try:
            ended = run_command(self.command, stdin=answer, timeout=self.timeout)
        except (OSError, ValueError) as error:
            return Opinion(None, f"the oracle {self.command[0]} cannot be started: {error}")
        if ended.exit_status is None:
            return Opinion(None, f"the oracle did not end within {self.timeout:g} s")
        if ended.exit_status in {SUCCESS, FAILURE}:
            return Opinion(ended.exit_status == SUCCESS, ended.last_line)
        said = f": {ended.last_line}" if ended.last_line else ""
        return Opinion(None, f"the oracle ended with {ended.exit_status}{said}")


def oracle_of(command: Sequence[str] | None, timeout: float = 60.0) -> Oracle | None:
    """Return the oracle of a command; None without one: the program records its outcome itself."""
    return Oracle(tuple(command), timeout) if command else None
