"""Processes that hold reservations: their names, and whether they still run."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from pathlib import Path
from typing import Final

_STARTED: Final = 19
"""Place of the start time among the fields of ``/proc/PID/stat`` behind the name; see proc(5)."""


def holder_of_this_process() -> str:
    """Return the name of this process among the holders of reservations: host, number, start."""
    return _name(os.getpid())


def is_on_another_machine(holder: str) -> bool:
    """Return whether a holder is a process of another machine, of which nothing else is known."""
    return holder.partition("/")[0] != socket.gethostname()


def is_running_elsewhere(holder: str) -> bool:
    """Return whether a holder is another process of this machine that runs.

    Nothing is known of a process on another machine; see `is_on_another_machine`.
    """
    host, _, rest = holder.partition("/")
    number = rest.partition("/")[0]
    if host != socket.gethostname() or not number.isdecimal() or int(number) == os.getpid():
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass
    # The number may belong to another process by now.
    return _name(int(number)) == holder


def _name(process: int) -> str:
    return f"{socket.gethostname()}/{process}/{_start_of(process)}"


def _start_of(process: int) -> str:
    """Return when a process started, in ticks since the machine did; empty where there is no ``/proc``."""
    with suppress(OSError, IndexError):
        stat = Path(f"/proc/{process}/stat").read_text("utf-8", "replace")
        return stat.rpartition(")")[2].split()[_STARTED]
    return ""
