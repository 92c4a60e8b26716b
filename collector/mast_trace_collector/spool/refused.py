"""The refusal of a request that cannot be made durable now."""

from __future__ import annotations

from mast_trace.exceptions import CollectorError


class Refused(CollectorError):
    """The request was not accepted; the sender keeps it and sends it again later.

    Attributes:
        reason: one word for the counter, such as "spool_full" or "disk_full".
        retry_after: seconds that the sender should wait.
    """

    def __init__(self, reason: str, message: str, *, retry_after: float = 5.0) -> None:
        super().__init__(message)
        self.reason = reason
        self.retry_after = retry_after
