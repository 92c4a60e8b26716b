"""Tells errors of the moment from those that a statement meets each time."""

from __future__ import annotations

from typing import Final

from mast_trace.exceptions import StorageError
from mast_trace_collector.storage.store import error_code

_TOO_LARGE: Final = {
    241: "the memory is used up, by this statement or by others",
    396: "the result is larger than its limit",
    777: "the reserved memory was taken away by others",
    778: "the memory cannot be reserved",
}
TRANSIENT: Final = {
    **_TOO_LARGE,
    74: "a file could not be read at this moment",
    75: "the disk did not take what was written",
    76: "a file could not be opened: there are too many, or the disk is away",
    95: "the connection to another node broke while reading",
    96: "the connection to another node broke while writing",
    159: "the time limit is over, which depends on what else is running",
    160: "the estimated time is too long, which depends on what else is running",
    173: "the system gave no memory",
    198: "the name of a node is not known at this moment",
    201: "the user's quota of this interval is used up",
    202: "too many statements are running",
    203: "no connection to another node is free",
    204: "the disk did not confirm what was written",
    209: "a connection was silent for too long",
    210: "a connection broke",
    225: "the keeper is away",
    234: "no replica that is up has this part",
    236: "the statement was broken off, as when the server ends",
    242: "the table is read-only, until its keeper is back",
    243: "the disk is full",
    244: "the keeper gave an unexpected answer",
    252: "too many parts wait for a merge",
    254: "no replica is up",
    265: "no replica is free",
    279: "no node accepts a connection",
    285: "too few replicas are up",
    286: "the insert before is not confirmed by enough replicas",
    289: "this replica is not up to date",
    297: "no node of a shard is connected",
    319: "it is not known whether the insert was stored",
    364: "the object store gets too many requests",
    369: "all replicas lag behind",
    373: "another statement uses the session",
    384: "a part is locked",
    394: "somebody has ended the statement",
    425: "the system refused a call",
    439: "no thread is free",
    473: "two statements waited for each other",
    499: "the object store is away",
    574: "too many bytes wait to be sent to other nodes",
    677: "the thread of the statement was ended",
    692: "too many mutations wait",
    696: "a table could not be loaded yet",
    722: "a table is still being loaded",
    733: "the table is being restarted",
    735: "the connection of the statement was closed",
    738: "a part is locked",
    745: "the server is overloaded",
    749: "too many connections are open",
    762: "too many connections are open",
    776: "the server's resources are used up",
    904: "too many shards are away",
    999: "the keeper is away",
    1000: "the server's network or disk failed below ClickHouse",
}
"""ClickHouse's errors after which the same statement may succeed, with the reason."""


def is_transient(error: BaseException) -> bool:
    """Return whether the same may succeed later, so that nothing follows about what was read or written."""
    if not isinstance(error, StorageError):
        return isinstance(error, OSError | MemoryError)
    code = error_code(error)
    return not _of_the_client(error) if code is None else code in TRANSIENT


def is_too_large(error: BaseException) -> bool:
    """Return whether a statement on less may succeed where this one fails."""
    return isinstance(error, MemoryError) or (
        isinstance(error, StorageError) and error_code(error) in _TOO_LARGE
    )


def _of_the_client(error: StorageError) -> bool:
    """Return whether the client refused the values, before the database saw them."""
    from clickhouse_connect.driver.exceptions import (
        DataError,
        NotSupportedError,
        ProgrammingError,
    )

    return isinstance(error.__cause__, DataError | NotSupportedError | ProgrammingError)
