"""The lock, the limits and the quota of the spool's folder."""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from mast_trace.exceptions import CollectorError
from mast_trace_collector.spool.segment import make_folder

logger = logging.getLogger(__name__)
_CHECK_SECONDS = 0.2


class RequestRefused(CollectorError):
    """The request was not accepted; the sender keeps it and sends it again later.

    Attributes:
        reason: one word for the counter, such as "spool_full" or "disk_full".
        retry_after: seconds that the sender should wait.
    """

    def __init__(self, reason: str, message: str, *, retry_after: float = 5.0) -> None:
        super().__init__(message)
        self.reason = reason
        self.retry_after = retry_after


@dataclass(frozen=True)
class SpoolLimits:
    """Limits of a spool.

    Attributes:
        max_bytes: bytes on disk and in writing.
        min_free_bytes: disk space that must stay free.
        segment_bytes: size at which a segment is closed.
        segment_items: number of spans at which it is closed: small spans need more of the
            database's memory per byte.
        segment_age: seconds after which an open segment may be closed for a consumer.
        duplicate_window: number of recently accepted requests that are remembered.
    """

    max_bytes: int
    min_free_bytes: int
    segment_bytes: int
    segment_items: int
    segment_age: float
    duplicate_window: int


class FolderLock:
    """A lock on a folder for this process; the kernel releases it when the process dies."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._file: int | None = None

    def acquire(self) -> None:
        """Create the folder and lock it.

        Raises:
            CollectorError: another process has locked it, or it cannot be used.
        """
        try:
            make_folder(self._directory)
            file = os.open(self._directory / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise CollectorError(f"cannot use the folder {self._directory}: {error}") from error
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(file)
            raise CollectorError(
                f"another collector is using the folder {self._directory}"
            ) from error
        self._file = file

    def release(self) -> None:
        """Release the lock; safe to call twice."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


class DiskQuota:
    """The disk usage of the spool, against its limits. Not thread-safe by itself.

    Attributes:
        used: bytes that the spool holds.
        failing: nothing has been written since a write failed.
    """

    def __init__(self, directory: Path, max_bytes: int, min_free_bytes: int) -> None:
        self._directory = directory
        self._max_bytes = max_bytes
        self._min_free_bytes = min_free_bytes
        self._free = 0
        self._checked = float("-inf")
        self._refuses = ""
        self._wanted = 0
        self.failing = False
        self.used = 0

    def take(self, size: int) -> None:
        """Count bytes as used."""
        self.used += size
        self._free -= size

    def give_back(self, size: int) -> None:
        """Count bytes as no longer used."""
        self.used -= size

    def ran_out(self, size: int) -> None:
        """Treat the disk as full until it is checked again: a write of so many bytes has just failed."""
        self._free = 0
        self._checked = time.monotonic()
        self._want(size)
        self.failing = True

    def wrote(self) -> None:
        """Forget the refusals of before: a request is on the disk."""
        self._wanted = 0
        self.failing = False

    def check_again(self) -> None:
        """Ensure that the smallest request that was refused since the last write would fit now.

        Raises:
            Refused: it would not.
        """
        self._check(self._wanted)

    def check(self, size: int) -> None:
        """Ensure that a number of bytes still fits.

        Raises:
            Refused: it does not.
        """
        try:
            self._check(size)
        except RequestRefused as refused:
            self._want(size)
            if refused.reason != self._refuses:
                logger.warning(
                    "requests are refused: %s (%s holds %d MiB of %d; %d MiB of the disk are free, %d "
                    "are left to others)",
                    refused,
                    self._directory,
                    self.used >> 20,
                    self._max_bytes >> 20,
                    shutil.disk_usage(self._directory).free >> 20,
                    self._min_free_bytes >> 20,
                )
                self._refuses = refused.reason
            raise
        if self._refuses and size:
            logger.warning("requests are taken again")
            self._refuses = ""

    def _want(self, size: int) -> None:
        self._wanted = min(filter(None, (size, self._wanted)), default=0)

    def _check(self, size: int) -> None:
        if self.used + size > self._max_bytes:
            raise RequestRefused("spool_full", "too much is waiting for the database")
        now = time.monotonic()
        if now - self._checked > _CHECK_SECONDS:
            self._free = shutil.disk_usage(self._directory).free
            self._checked = now
        if self._free - size < self._min_free_bytes:
            raise RequestRefused(
                "disk_full", "the collector's disk is nearly full, `mast-trace retain` makes room"
            )
