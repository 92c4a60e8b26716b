"""Errors of a request, for its sender and for the counters."""

from __future__ import annotations

from mast_trace.exceptions import CollectorError


class RequestError(CollectorError):
    """The request cannot be accepted, now or later; the sender should not send it again.

    Attributes:
        status: the HTTP status of the answer.
        reason: one word for the counter.
    """

    status = 400
    reason = "malformed"


class TooLarge(RequestError):
    """The request is beyond a size limit."""

    status = 413
    reason = "too_large"


class UnsupportedMediaType(RequestError):
    """The content type or encoding is unknown to OTLP."""

    status = 415
    reason = "unsupported_media_type"


class Unauthenticated(RequestError):
    """The request carries no key, or an unknown one."""

    status = 401
    reason = "unauthenticated"


class Forbidden(RequestError):
    """The request's key is known, but lacks the right."""

    status = 403
    reason = "forbidden"


class TooSlow(RequestError):
    """The body did not arrive in time."""

    status = 408
    reason = "too_slow"
