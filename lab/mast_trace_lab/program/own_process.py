"""Runs a program in a process group of its own, under a time limit."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_STANDARD_ERROR = 2

Output = Literal["shown", "standard error", "discarded"]
"""The destination of the program's standard output; its standard error is discarded with ``discarded``."""


def run_alone(
    command: Sequence[str], environment: Mapping[str, str], output: Output, timeout: float
) -> int | None:
    """Run a command in a process of its own and return its exit status; None if it was killed at the timeout.

    Args:
        command: the program and its arguments.
        environment: all its variables.
        output: the destination of its standard output.
        timeout: seconds until it is killed, with its child processes.

    Raises:
        OSError: the command cannot be started.
    """
    outputs: dict[Output, int | None] = {
        "shown": None,
        "standard error": _STANDARD_ERROR,
        "discarded": subprocess.DEVNULL,
    }
    process = subprocess.Popen(
        [*command],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=outputs[output],
        stderr=subprocess.DEVNULL if output == "discarded" else None,
        start_new_session=True,
    )
    try:
        return process.wait(timeout)
    except subprocess.TimeoutExpired:
        return None
    finally:
        # A program that has ended by itself may have left child processes.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
