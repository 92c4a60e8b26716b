"""The limit of open files of this process, and the share of it for connections."""

from __future__ import annotations

import contextlib
import resource

from mast_trace.exceptions import ConfigurationError

# A process with the embedded engine has 150 files open when idle and 220 under load, some for each
# of the engine's threads.
_OTHERS = 224
_LEAST = 256
# Above it, programs that iterate over all possible file numbers get slow.
_ENOUGH = 65_536


def raise_limit() -> int:
    """Raise the soft limit to the hard one, and return it.

    Raises:
        ConfigurationError: the hard limit is too low for any connection.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _ENOUGH if hard == resource.RLIM_INFINITY else min(hard, _ENOUGH)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        # Some systems have a lower limit for each process that they do not report.
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    limit = _limit()
    if limit < _LEAST:
        raise ConfigurationError(
            f"this process may have {limit} files open; it needs {_LEAST}, and one more for each "
            "connection. Raise the limit: `ulimit -n 4096`, LimitNOFILE= of a systemd unit, or "
            "`--ulimit nofile=4096` of a container"
        )
    return limit


def connections_that_fit(most: int, part: float) -> int:
    """Return the number of connections that a server may have open.

    Args:
        most: the number if there are enough files.
        part: this server's share of the files that are left for connections.

    Raises:
        ConfigurationError: the limit of open files is too low for any connection.
    """
    return max(1, min(most, int((raise_limit() - _OTHERS) * part)))


def _limit() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _ENOUGH if soft == resource.RLIM_INFINITY else soft
