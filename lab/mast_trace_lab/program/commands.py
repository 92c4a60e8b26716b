"""Starts the commands of `mast-trace confirm`: oracle and reset, each in a process group of its own."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import threading
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from mast_trace.exceptions import ConfigurationError
from mast_trace.replay.plan_variable import PLAN_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Sequence

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


def split_command(text: str, option: str) -> tuple[str, ...]:
    """Return the words of a command line; no shell reads them.

    Args:
        text: words, with quotes where a word holds spaces.
        option: name for the error.

    Raises:
        ConfigurationError: there is no word, or a quote is not closed.
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ConfigurationError(f"{option}: cannot read {text!r}: {error}") from None
    if not words:
        raise ConfigurationError(f"{option} needs a command")
    return tuple(words)


def run_command(command: Sequence[str], *, stdin: str = "", timeout: float) -> Ended:
    """Run a command without a shell; kill it and all that it started at the time limit.

    Args:
        command: the program and its arguments.
        stdin: text for its standard input, as UTF-8; a command that does not read it is no error.
        timeout: seconds.

    Raises:
        OSError: it cannot be started.
    """
    environment = {name: value for name, value in os.environ.items() if name != PLAN_VARIABLE}
    process = subprocess.Popen(
        [*command],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    kept = bytearray()
    given, shown = process.stdin, process.stdout
    threads = []
    if given is not None and shown is not None:
        text = stdin.encode(errors="replace")
        threads = [
            threading.Thread(target=_write, args=(given, text), daemon=True),
            threading.Thread(target=_read, args=(shown, kept), daemon=True),
        ]
    for thread in threads:
        thread.start()
    exit_status: int | None = None
    try:
        with suppress(subprocess.TimeoutExpired):
            exit_status = process.wait(timeout)
    finally:
        # A process that it has left behind would hold the pipes open.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
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
