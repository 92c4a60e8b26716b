"""Runs programs under a time limit, each in a process group of its own; among them oracles and resets."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import IO, Final, Literal

from mast_trace.exceptions import MastTraceError
from mast_trace.replay.plan_variable import PLAN_VARIABLE

_KEPT = 2000
_CHUNK = 65_536
_DRAIN_SECONDS = 5.0


@dataclass(frozen=True)
class Ended:
    """The end of a command.

    Attributes:
        exit_status: negative if a signal ended it; None if it was killed at the time limit.
        printed: the last 2,000 characters of standard output and standard error together.
    """

    exit_status: int | None
    printed: str

    @property
    def last_line(self) -> str:
        """The last line of the output that is not empty, cut to 300 characters."""
        lines = [line.strip() for line in self.printed.splitlines() if line.strip()]
        return lines[-1][-300:] if lines else ""


Output = Literal["shown", "standard error", "discarded"]
"""The destination of the program's standard output; its standard error is discarded with ``discarded``."""
_OUTPUTS: Final[Mapping[Output, int | None]] = {
    "shown": None,
    "standard error": 2,
    "discarded": subprocess.DEVNULL,
}


_running: Final[set[int]] = set()
"""Leaders of the process groups whose end is waited for."""


def kill_group(leader: int) -> None:
    """Kill what is left of a process group."""
    _running.discard(leader)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def wait_for(leader: int) -> None:
    """Let `kill_all` kill a process group, until `kill_group` has."""
    _running.add(leader)


def kill_all() -> None:
    """Kill every process group that a thread waits for: the thread goes on at once."""
    for leader in [*_running]:
        kill_group(leader)


@contextmanager
def _whole_group(process: subprocess.Popen[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    """Kill a process and all that it has started at the end of the block."""
    wait_for(process.pid)
    try:
        yield process
    finally:
        # One that has ended by itself may have left child processes, which would hold its pipes open.
        kill_group(process.pid)
        process.wait()


def _end_of(process: subprocess.Popen[bytes], timeout: float) -> int | None:
    """Return the exit status; None if the process did not end in time."""
    try:
        return process.wait(timeout)
    except subprocess.TimeoutExpired:
        return None


def run_alone(
    command: Sequence[str], environment: Mapping[str, str], output: Output, timeout: float
) -> int | None:
    """Run a command and return its exit status; None if it was killed at the timeout.

    Args:
        command: the program and its arguments.
        environment: all its variables.
        output: the destination of its standard output.
        timeout: seconds until it is killed, with its child processes.

    Raises:
        OSError: the command cannot be started.
    """
    process = subprocess.Popen(
        [*command],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=_OUTPUTS[output],
        stderr=subprocess.DEVNULL if output == "discarded" else None,
        start_new_session=True,
    )
    with _whole_group(process):
        return _end_of(process, timeout)


def run_command(
    command: Sequence[str],
    *,
    stdin: str = "",
    timeout: float,
    environment: Mapping[str, str] | None = None,
    errors_alone: bool = False,
) -> Ended:
    """Run a command without a shell, and keep what it prints.

    Args:
        command: the program and its arguments.
        stdin: text for its standard input, as UTF-8; a command that does not read it is no error.
        timeout: seconds until it is killed, with its child processes.
        environment: all its variables; those of this process if absent, without the plan of a replay.
        errors_alone: whether its standard output is discarded, so that only its standard error is kept.

    Raises:
        OSError: it cannot be started.
    """
    if environment is None:
        environment = {name: value for name, value in os.environ.items() if name != PLAN_VARIABLE}
    process = subprocess.Popen(
        [*command],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL if errors_alone else subprocess.PIPE,
        stderr=subprocess.PIPE if errors_alone else subprocess.STDOUT,
        start_new_session=True,
    )
    kept = bytearray()
    text = stdin.encode(errors="replace")
    with _whole_group(process):
        shown = process.stderr if errors_alone else process.stdout
        assert process.stdin is not None
        assert shown is not None
        threads = (
            threading.Thread(target=_write, args=(process.stdin, text), daemon=True),
            threading.Thread(target=_read, args=(shown, kept), daemon=True),
        )
        for thread in threads:
            thread.start()
        exit_status = _end_of(process, timeout)
    for thread in threads:
        thread.join(_DRAIN_SECONDS)
    return Ended(exit_status, bytes(kept).decode(errors="replace")[-_KEPT:])


def _write(pipe: IO[bytes], text: bytes) -> None:
    # A command that ends before it has read all of its input breaks the pipe.
    with suppress(OSError, ValueError), pipe:
        pipe.write(text)


def _read(pipe: IO[bytes], kept: bytearray) -> None:
    """Read until the end, and keep the last bytes: a command may print for ever."""
    with suppress(OSError, ValueError), pipe:
        while chunk := os.read(pipe.fileno(), _CHUNK):
            kept += chunk
            del kept[: -4 * _KEPT]


SUCCESS, FAILURE = 0, 1
"""Exit statuses of an oracle; all others are errors."""


@dataclass(frozen=True)
class OracleOpinion:
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

    def ask(self, answer: str) -> OracleOpinion:
        """Return whether an answer is right.

        An oracle that cannot be started, that is killed, or that ends with another status has no
        opinion: its error is not taken for a failure of the answer.
        """
        try:
            ended = run_command(self.command, stdin=answer, timeout=self.timeout)
        except (OSError, ValueError) as error:
            return OracleOpinion(None, f"the oracle {self.command[0]} cannot be started: {error}")
        if ended.exit_status is None:
            return OracleOpinion(None, f"the oracle did not end within {self.timeout:g} s")
        if ended.exit_status in {SUCCESS, FAILURE}:
            return OracleOpinion(ended.exit_status == SUCCESS, ended.last_line)
        said = f": {ended.last_line}" if ended.last_line else ""
        return OracleOpinion(None, f"the oracle ended with {ended.exit_status}{said}")


def oracle_of(command: Sequence[str] | None, timeout: float = 60.0) -> Oracle | None:
    """Return the oracle of a command; None without one: the program records its outcome itself."""
    return Oracle(tuple(command), timeout) if command else None


class ResetFailed(MastTraceError):
    """The command that restores the state outside the program did not end with 0."""


def reset(command: Sequence[str], timeout: float = 60.0) -> None:
    """Run the command that restores the state.

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
