"""Sessions of people who signed in, and limits of failed attempts."""

from __future__ import annotations

import hashlib
import ipaddress
import math
import secrets
import time
from collections import OrderedDict
from dataclasses import dataclass

_MOST_SESSIONS = 10_000
_MOST_OF_ONE = 64
_MOST_ADDRESSES = 4096
_BURST = 20
_SECONDS_PER_ATTEMPT = 3.0
_IPV6_NETWORK = 64


@dataclass(frozen=True)
class _Session:
    identity: str
    ends: float


class Sessions:
    """Opaque session ids in memory; a restart signs everybody out.

    Args:
        seconds: duration of a session.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        # By the id's hash, oldest first. All have the same duration, so they also end in this
        # order.
        self._sessions: OrderedDict[str, _Session] = OrderedDict()

    def begin(self, identity: str) -> str:
        """Return the id of a new session; where there are too many, the oldest ends."""
        self._drop_ended()
        theirs = [key for key, each in self._sessions.items() if each.identity == identity]
        for key in theirs[: max(0, len(theirs) - _MOST_OF_ONE + 1)]:
            del self._sessions[key]
        while len(self._sessions) >= _MOST_SESSIONS:
            self._sessions.popitem(last=False)
        made = secrets.token_urlsafe(32)
        self._sessions[_hash(made)] = _Session(identity, time.monotonic() + self._seconds)
        return made

    def find(self, shown: str) -> str | None:
        """Return the identity of a session; None if there is none, or it has ended."""
        session = self._sessions.get(_hash(shown)) if shown else None
        return session.identity if session and session.ends > time.monotonic() else None

    def end(self, shown: str) -> None:
        """End a session, if it exists."""
        self._sessions.pop(_hash(shown), None)

    def __len__(self) -> int:
        return len(self._sessions)

    def _drop_ended(self) -> None:
        now = time.monotonic()
        while self._sessions and next(iter(self._sessions.values())).ends <= now:
            self._sessions.popitem(last=False)


class FailedSignIns:
    """Limits failed attempts of each address: twenty at once, then one every three seconds.

    An IPv6 address counts as its network, which belongs to one owner; an IPv4 address in IPv6's form, as a server
    on ``::`` sees it, counts as itself. Addresses that are dropped because there are too many start again.
    """

    def __init__(self) -> None:
        self._full_again: OrderedDict[str, float] = OrderedDict()

    def wait(self, address: str) -> int:
        """Return the seconds until another attempt is permitted; 0 if it is now."""
        due = self._full_again.get(_network(address), 0.0) - time.monotonic()
        over = due - (_BURST - 1) * _SECONDS_PER_ATTEMPT
        return max(0, math.ceil(over))

    def failed(self, address: str) -> None:
        """Count a failed attempt."""
        network, now = _network(address), time.monotonic()
        begin = max(self._full_again.pop(network, now), now)
        self._full_again[network] = begin + _SECONDS_PER_ATTEMPT
        while len(self._full_again) > _MOST_ADDRESSES:
            self._full_again.popitem(last=False)

    def __len__(self) -> int:
        return len(self._full_again)


def _hash(shown: str) -> str:
    # Looked up by its hash, so that the time taken reveals nothing about other ids.
    return hashlib.sha256(shown.encode("utf-8", "surrogateescape")).hexdigest()


def _network(address: str) -> str:
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if parsed.version == 4:
        return address
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((int(parsed), _IPV6_NETWORK), strict=False))
