"""The memory that requests hold until they are answered, and the share of it, and of slots for work, for each sender."""

from __future__ import annotations

import asyncio
import ipaddress
import time
from collections import Counter, deque
from collections.abc import Callable

from mast_trace_collector.spool import RequestRefused

_WAITS_SECONDS = 10.0
_RETRY_SECONDS = 1.0
_MOST_REMEMBERED = 1000


class Slots:
    """A number of slots, of which no sender has more than half, so that another finds one.

    Args:
        count: number of slots.
    """

    def __init__(self, count: int) -> None:
        self._free = count
        self._each = max(1, count // 2)
        self._taken: Counter[str] = Counter()
        self._waiting: deque[tuple[str, asyncio.Future[None]]] = deque()

    async def take(self, sender: str) -> None:
        """Wait for a slot; those of a sender come in order."""
        if self._has_one_for(sender):
            self._give(sender)
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((sender, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.give_back(sender)
            raise

    def give_back(self, sender: str) -> None:
        """Release a slot."""
        self._free += 1
        self._taken[sender] -= 1
        if not self._taken[sender]:
            del self._taken[sender]
        passed: deque[tuple[str, asyncio.Future[None]]] = deque()
        while self._waiting and self._free:
            who, turn = self._waiting.popleft()
            if turn.done():
                continue
            if self._has_one_for(who):
                self._give(who)
                turn.set_result(None)
            else:
                passed.append((who, turn))
        self._waiting.extendleft(reversed(passed))

    def _has_one_for(self, sender: str) -> bool:
        return self._free > 0 and self._taken[sender] < self._each

    def _give(self, sender: str) -> None:
        self._free -= 1
        self._taken[sender] += 1


class MemoryShares:
    """Counts the bytes of all requests, up to a limit.

    While another sender waits, no sender may have more than its share: a sender above it gets no
    more, and its requests whose bodies are still arriving are broken off. A sender counts as
    waiting for ten seconds after it was refused.

    Args:
        most: bytes of all requests together.
        share: bytes of a sender's requests while another waits.
    """

    def __init__(self, most: int, share: int) -> None:
        self._most = most
        self._share = share
        self._by_sender: Counter[str] = Counter()
        self._arriving: dict[str, dict[MemoryReservation, None]] = {}
        self._waits: dict[str, float] = {}
        self._closed: RequestRefused | None = None
        self.held = 0

    def hold(self, sender: str, size: int) -> None:
        """Count bytes as reserved; use `MemoryReservation`.

        Raises:
            Refused: the limit is reached, or the sender has its share.
        """
        if self._closed is not None:
            raise self._closed
        now = time.monotonic()
        if self.held + size > self._most:
            self._make_room(sender, size)
        if self.held + size > self._most:
            self._remember(sender, now)
            raise RequestRefused(
                "memory_full", "too many requests are in flight", retry_after=_RETRY_SECONDS
            )
        if self._by_sender[sender] + size > self._share and self._others_wait(sender, now):
            raise RequestRefused(
                "share_full",
                "other senders wait, and this one has its share",
                retry_after=_RETRY_SECONDS,
            )
        self.held += size
        self._by_sender[sender] += size

    def let_go(self, sender: str, size: int) -> None:
        """Count bytes as released; use `MemoryReservation`."""
        self.held -= size
        self._by_sender[sender] -= size
        if not self._by_sender[sender]:
            del self._by_sender[sender]

    def arrives(self, memory: MemoryReservation) -> None:
        """Count a request among those whose bodies are arriving."""
        self._arriving.setdefault(memory.sender, {})[memory] = None

    def arrived(self, memory: MemoryReservation) -> None:
        """Remove a request from those whose bodies are arriving."""
        requests = self._arriving.get(memory.sender, {})
        requests.pop(memory, None)
        if not requests:
            self._arriving.pop(memory.sender, None)

    def close(self, error: RequestRefused) -> None:
        """Refuse all requests whose bodies are still arriving, and all to come."""
        self._closed = error
        for requests in list(self._arriving.values()):
            for memory in list(requests):
                memory.break_off(error)

    def _make_room(self, sender: str, size: int) -> None:
        """Break off requests of the sender with the most memory, if that exceeds its share."""
        if not self._by_sender:
            return
        greedy, held = self._by_sender.most_common(1)[0]
        if greedy == sender or held <= self._share:
            return
        self._remember(sender, time.monotonic())
        error = RequestRefused(
            "share_full",
            "other senders wait, and this one has more than its share",
            retry_after=_RETRY_SECONDS,
        )
        largest_first = sorted(self._arriving.get(greedy, ()), key=lambda m: m.size, reverse=True)
        for memory in largest_first:
            if self.held + size <= self._most or self._by_sender[greedy] <= self._share:
                return
            memory.break_off(error)

    def _remember(self, sender: str, now: float) -> None:
        if len(self._waits) >= _MOST_REMEMBERED:
            self._waits.clear()
        self._waits[sender] = now

    def _others_wait(self, sender: str, now: float) -> bool:
        if not self._waits:
            return False
        self._waits = {who: at for who, at in self._waits.items() if now - at < _WAITS_SECONDS}
        return any(who != sender for who in self._waits)


class MemoryReservation:
    """The memory that one request holds.

    Attributes:
        sender: its project, or without keys the address that it comes from.
        size: bytes that it holds.
        broken_off: the reason why its body is not read to the end; None if it is.
    """

    def __init__(self, shares: MemoryShares, sender: str) -> None:
        self._shares = shares
        self._stop: Callable[[], object] | None = None
        self.sender = sender
        self.size = 0
        self.broken_off: RequestRefused | None = None

    def belongs_to(self, project: str | None) -> None:
        """Count for a project, whatever the address; call it before any memory is reserved."""
        if project is not None:
            self.sender = f"project {project}"

    def arriving(self, stop: Callable[[], object]) -> None:
        """Note that the body begins to arrive, and how to stop it."""
        self._stop = stop
        self._shares.arrives(self)

    def arrived(self) -> None:
        """Note that the body no longer arrives."""
        self._stop = None
        self._shares.arrived(self)

    def grow(self, size: int) -> None:
        """Reserve more.

        Raises:
            Refused: all requests together, or the sender's, would exceed their limit.
        """
        self._shares.hold(self.sender, size)
        self.size += size

    def break_off(self, error: RequestRefused) -> None:
        """Stop the body, which is being read, and release everything."""
        self.broken_off = error
        stop = self._stop
        self.arrived()
        self.release()
        if stop is not None:
            stop()

    def release(self) -> None:
        """Release everything."""
        self._shares.let_go(self.sender, self.size)
        self.size = 0


def sender_of(host: str) -> str:
    """Return the key of a sender without a bearer key: its address, for IPv6 its network."""
    if ":" not in host:
        return host
    try:
        address = ipaddress.IPv6Address(host.partition("%")[0])
    except ValueError:
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    # The holder of an IPv6 address usually has a network of 64 bits.
    return str(ipaddress.IPv6Network((address, 64), strict=False))
