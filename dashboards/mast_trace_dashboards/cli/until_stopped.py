"""Parts shared by the commands that serve until they are stopped."""

from __future__ import annotations

import asyncio
import contextlib
import faulthandler
import json
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mast_trace_dashboards.cli.output import FittedTable, draft_of, plain

logger = logging.getLogger(__name__)

_STATUS = 1
# For the case that no Python thread gets its turn any more.
_BACKSTOP_SECONDS = 5.0


def end_within(seconds: float) -> None:
    """End this process after a number of seconds, whatever it waits for; the status is 1.

    Acknowledged requests are on disk long before, as they are when the process is killed.
    """

    def end() -> None:
        logger.error(
            "not everything has ended within %g s of the signal to stop; what was acknowledged is on "
            "disk, and is stored after the next start",
            seconds,
        )
        sys.stderr.flush()
        os._exit(_STATUS)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    with contextlib.suppress(OSError, ValueError, AttributeError):  # there is no standard error
        faulthandler.dump_traceback_later(
            seconds + _BACKSTOP_SECONDS, exit=True, file=sys.__stderr__ or sys.stderr
        )


_KILLED = 130


def stop_signal(seconds: float) -> asyncio.Event:
    """Return the event that SIGINT and SIGTERM set; a second signal ends the process at once.

    Args:
        seconds: time that the process has to end after the signal.
    """
    stop = asyncio.Event()

    def on_signal() -> None:
        if stop.is_set():
            os._exit(_KILLED)
        end_within(seconds)
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, on_signal)
    return stop


def in_daemon_thread(work: Callable[[], object]) -> asyncio.Future[object]:
    """Run a function that may wait for a server in a thread that does not delay the end of the process."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[object] = loop.create_future()

    def settle(result: object, error: BaseException | None) -> None:
        if done.done():
            return
        if error is None:
            done.set_result(result)
        else:
            done.set_exception(error)

    def run() -> None:
        result, problem = None, None
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001  # it is raised where the result is awaited
            problem = error
        with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile
            loop.call_soon_threadsafe(settle, result, problem)

    threading.Thread(target=run, name="waiting", daemon=True).start()
    return done


def ready(addresses: dict[str, Any], path: Path | None) -> None:
    """Write the ready file, with the addresses, for those who wait for it."""
    if path is None:
        return
    with draft_of(path) as draft:
        draft.touch(mode=0o600)
        draft.write_text(json.dumps(addresses, indent=2), encoding="utf-8")


def not_ready(path: Path | None) -> None:
    """Remove the ready file."""
    if path is not None and path.is_file():
        path.unlink(missing_ok=True)


def address_table(rows: dict[str, str]) -> FittedTable:
    """Return names and addresses, one pair a line."""
    table = FittedTable(show_header=False)
    for name, value in rows.items():
        table.add_row(name, plain(value))
    return table
