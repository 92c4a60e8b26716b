"""The deadline of a process that was asked to stop."""

from __future__ import annotations

import contextlib
import faulthandler
import logging
import os
import sys
import threading

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
