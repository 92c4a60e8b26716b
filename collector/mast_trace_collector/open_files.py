"""How many files this process may have open, and how many of them connections may take."""

from __future__ import annotations

import contextlib
import resource

from mast_trace.exceptions import ConfigurationError

# A process with the embedded engine has 150 files open when idle and 220 under load, some for each
# of the engine's threads.
_OTHERS = 224
_LEAST = 256
# Beyond it, programs that walk through all possible numbers of files get slow.
_ENOUGH = 65_536


def raise_limit() -> int:
    """Raise the soft limit to the hard one, and return it.

    Raises:
        ConfigurationError: the hard limit is too low to serve anybody.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _ENOUGH if hard == resource.RLIM_INFINITY else min(hard, _ENOUGH)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        # Some systems have a lower limit for each process that they do not tell.
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
    """Return how many connections a server may have open.

    Args:
        most: if there are files enough.
        part: of the files that are left for connections, this server's.

    Raises:
        ConfigurationError: the limit of open files is too low to serve anybody.
    """
    return max(1, min(most, int((raise_limit() - _OTHERS) * part)))


def _limit() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _ENOUGH if soft == resource.RLIM_INFINITY else soft
