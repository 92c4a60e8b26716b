"""No sender takes what others need: memory, decoders, places for messages."""

from __future__ import annotations

import asyncio
import gzip
import socket
import struct
import time
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ingest_support import EXPORT, body_of, call, connect, post, refusals, until

from mast_trace_collector.receivers.memory import MemoryReservation, MemoryShares, Slots, sender_of
from mast_trace_collector.security import new_key
from mast_trace_collector.spool import RequestRefused

if TYPE_CHECKING:
    from pathlib import Path

    from ingest_support import Launch

    from mast_trace_collector.collector import Collector


class TestMemory:
    """Half of the memory is what a sender keeps while another waits."""

    @staticmethod
    def holding(shares: MemoryShares, sender: str, size: int) -> MemoryReservation:
        memory = MemoryReservation(shares, sender)
        memory.grow(size)
        return memory

    def test_a_sender_alone_may_have_all_again_and_again(self) -> None:
        shares = MemoryShares(100, 50)
        for _ in range(2):
            memory = self.holding(shares, "a", 100)
            with pytest.raises(RequestRefused, match="in flight"):
                self.holding(shares, "a", 1)
            memory.release()

    @pytest.mark.parametrize(
        ("sizes", "wanted", "stopped", "held"),
        [
            ([40, 60], 30, [60], 70),  # the largest first
            ([30, 30, 30], 20, [30], 80),  # no more than are needed
            ([30, 31, 39], 80, [39, 31], 30),  # none of what is a sender's share
        ],
    )
    def test_bodies_that_still_arrive_make_room(
        self, sizes: list[int], wanted: int, stopped: list[int], held: int
    ) -> None:
        shares = MemoryShares(100, 50)
        seen = []
        memories = [self.holding(shares, "a", size) for size in sizes]
        for memory in memories:
            memory.arriving(lambda memory=memory, size=memory.size: seen.append((memory, size)))
        fits = sum(sizes) - sum(stopped) + wanted <= 100
        with nullcontext() if fits else pytest.raises(RequestRefused, match="in flight"):
            self.holding(shares, "b", wanted)
        assert [size for _, size in seen] == stopped
        assert {memory.broken_off.reason for memory, _ in seen} == {"share_full"}
        assert shares.held == held
        with pytest.raises(RequestRefused, match="its share"):
            self.holding(shares, "a", 51 - (sum(sizes) - sum(stopped)))

    @pytest.mark.parametrize("senders", ["aa", "cc", "cd"])
    def test_a_sender_gets_its_share(self, senders: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """Bodies that have arrived are not broken off; ten seconds after a refusal nobody waits."""
        now = [100.0]
        monkeypatch.setattr(time, "monotonic", lambda: now[0])
        shares = MemoryShares(100, 50)
        self.holding(shares, "a", 40)
        others = [
            self.holding(shares, who, size) for who, size in zip(senders, (15, 45), strict=True)
        ]
        with pytest.raises(RequestRefused, match="in flight"):
            self.holding(shares, "b", 30)
        for memory in others:
            memory.release()
        self.holding(shares, "a", 10)
        now[0] += 9.9
        with pytest.raises(RequestRefused, match="its share"):
            self.holding(shares, "a", 1)
        self.holding(shares, "b", 30)
        now[0] += 0.1
        self.holding(shares, "a", 20)

    @given(
        steps=st.lists(
            st.tuples(st.sampled_from("abc"), st.integers(1, 60), st.booleans()), max_size=60
        )
    )
    def test_all_held_adds_up_below_the_bound(self, steps: list[tuple[str, int, bool]]) -> None:
        shares = MemoryShares(100, 50)
        memories: list[MemoryReservation] = []
        for sender, size, arriving in steps:
            memory = MemoryReservation(shares, sender)
            if arriving:
                memory.arriving(lambda: None)
            try:
                memory.grow(size)
            except RequestRefused:
                memory.arrived()
                continue
            memories.append(memory)
            assert shares.held == sum(memory.size for memory in memories) <= 100
            if size % 3 == 0:
                oldest = memories.pop(0)
                oldest.arrived()
                oldest.release()
        for memory in memories:
            memory.arrived()
            memory.release()
        assert shares.held == 0
        assert not shares._by_sender
        assert not shares._arriving


@pytest.mark.parametrize(
    ("host", "sender"),
    [
        ("10.0.0.7", "10.0.0.7"),
        ("::ffff:10.0.0.7", "10.0.0.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("unix:", "unix:"),
    ],
)
def test_a_sender_is_an_address_and_of_ipv6_its_network(host: str, sender: str) -> None:
    assert sender_of(host) == sender


class TestSlots:
    """A sender has half of the places."""

    async def test_another_finds_a_place_at_once(self) -> None:
        slots = Slots(4)
        for _ in range(2):
            await slots.take("a")
        third = asyncio.create_task(slots.take("a"))
        await asyncio.wait_for(slots.take("b"), 5)
        assert not third.done()
        slots.give_back("b")
        await asyncio.sleep(0)
        assert not third.done()
        slots.give_back("a")
        await asyncio.wait_for(third, 5)

    async def test_one_that_gives_up_leaves_nothing_behind(self) -> None:
        slots = Slots(2)
        await slots.take("a")
        for _ in range(5):
            waiting = asyncio.create_task(slots.take("a"))
            await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
        # Also if its turn came at the very moment that it gave up.
        waiting = asyncio.create_task(slots.take("a"))
        await asyncio.sleep(0)
        slots.give_back("a")
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await asyncio.wait_for(slots.take("a"), 5)
        await asyncio.wait_for(slots.take("b"), 5)


async def stalled(collector: Collector, sent: bytes, length: int, key: str = "none") -> Any:
    """A connection on which a part of a body was sent."""
    reader, writer = await connect(collector)
    headers = f"POST /v1/traces HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n"
    headers += f"content-type: application/x-protobuf\r\nauthorization: Bearer {key}\r\n\r\n"
    writer.write(headers.encode() + sent)
    await writer.drain()
    return reader, writer


@pytest.fixture
def keys(tmp_path: Path) -> dict[str, str]:
    """A key of each of two projects."""
    made = {project: new_key(project) for project in ("greedy", "modest")}
    (tmp_path / "keys").write_text("\n".join(line for _, line in made.values()))
    return {project: key for project, (key, _) in made.items()}


async def test_declared_lengths_take_no_memory(launch: Launch) -> None:
    """Four senders that declare the largest body and send a byte of it keep nobody out."""
    collector = await launch()
    slow = [await stalled(collector, b"x", 64 << 20) for _ in range(8)]
    await until(lambda: collector._ingest.held == 8)
    assert (await post(collector, body_of("innocent"))).status_code == 200
    for _, writer in slow:
        writer.close()


async def test_full_memory_makes_room(launch: Launch, tmp_path: Path, keys: dict[str, str]) -> None:
    collector = await launch(
        keys_file=tmp_path / "keys", max_body_bytes=100_000, max_inflight_bytes=400_000
    )
    slow = [await stalled(collector, b"x" * 99_000, 100_000, keys["greedy"]) for _ in range(4)]
    await until(lambda: collector._ingest.held == 4 * 99_000)
    body = body_of(*map(str, range(100)), attributes=4)
    assert len(body) > 4_000
    assert (await post(collector, body, key=keys["modest"])).status_code == 200
    assert refusals(collector, "http", "share_full")
    # Senders of broken-off requests are asked to retry, and get no more than the share meanwhile.
    answered, _ = await asyncio.wait(
        [asyncio.create_task(reader.read(20)) for reader, _ in slow],
        timeout=30,
        return_when=asyncio.FIRST_COMPLETED,
    )
    assert [task.result() for task in answered] == [b"HTTP/1.1 503 Service"]
    assert (await post(collector, b"y" * 99_000, key=keys["greedy"])).status_code == 503
    for _, writer in slow:
        writer.close()


async def test_bodies_still_arriving_are_refused_when_it_stops(launch: Launch) -> None:
    collector = await launch()
    reader, writer = await stalled(collector, b"x", 100_000)
    await until(lambda: collector._ingest.held)
    stopping = asyncio.create_task(collector.stop())
    answer = await asyncio.wait_for(reader.read(), 60)
    assert answer.startswith(b"HTTP/1.1 503")
    assert b"retry-after" in answer
    await stopping
    writer.close()


async def test_decoders_for_others(launch: Launch, tmp_path: Path, keys: dict[str, str]) -> None:
    collector = await launch(keys_file=tmp_path / "keys")
    decoding = collector._ingest._decoding
    for _ in range(2):
        await decoding.take("project greedy")
    large = body_of(*map(str, range(2000)), attributes=20)
    waiting = asyncio.create_task(post(collector, large, key=keys["greedy"]))
    assert (await post(collector, large + body_of("x"), key=keys["modest"])).status_code == 200
    assert not waiting.done()
    for _ in range(2):
        decoding.give_back("project greedy")
    assert (await waiting).status_code == 200


@pytest.mark.parametrize("way", ["plain", "gzip", "grpc"])
async def test_what_is_in_flight_leaves_no_room_by_any_way(launch: Launch, way: str) -> None:
    """A compressed body fits in the beginning, but its content does not."""
    collector = await launch(max_body_bytes=10_000, max_inflight_bytes=10_000)
    body = body_of("x", attributes=20)
    packed = gzip.compress(body)

    async def refused() -> bool:
        if way == "grpc":
            with suppress(grpc.aio.AioRpcError):
                return not isinstance(await call(collector, body), bytes)
            return True
        given = {"content-encoding": "gzip"} if way == "gzip" else {}
        return (await post(collector, packed if given else body, **given)).status_code == 503

    with collector._ingest.holding("another") as memory:
        memory.grow(10_000 - len(packed))
        assert await refused()
    assert refusals(collector, "grpc" if way == "grpc" else "http", "memory_full") == 1
    assert collector._ingest.held == 0
    assert not await refused()


class SlowCall:
    """A gRPC call of which the headers are sent and a part of the message, frame by frame."""

    def __init__(self, address: str, key: str, length: int, sent: bytes) -> None:
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)))
        self.socket.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + self.frame(4, 0, 0, b""))
        headers = {
            ":method": "POST",
            ":scheme": "http",
            ":path": EXPORT,
            ":authority": "x",
            "te": "trailers",
            "content-type": "application/grpc",
            "authorization": f"Bearer {key}",
        }
        block = b"".join(
            b"\0" + bytes([len(k)]) + k.encode() + bytes([len(v)]) + v.encode()
            for k, v in headers.items()
        )
        self.socket.sendall(self.frame(1, 4, 1, block))
        prefix = struct.pack(">BI", 0, length)
        self.socket.sendall(self.frame(0, 0, 1, prefix + sent))

    @staticmethod
    def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
        size = struct.pack(">I", len(payload))[1:]
        return size + bytes([kind, flags]) + struct.pack(">I", stream) + payload


class TestGRPC:
    """Shares over gRPC, where only the library sees the bytes arrive."""

    async def test_slow_calls(self, launch: Launch, tmp_path: Path, keys: dict[str, str]) -> None:
        collector = await launch(keys_file=tmp_path / "keys")
        address = collector.grpc_address
        slow = [SlowCall(address, keys["greedy"], 64 << 20, b"x") for _ in range(100)]
        messages = collector._grpc._messages
        await until(lambda: messages._calls["project greedy"] == 64)
        await call(collector, body_of("innocent"), keys["modest"])
        await until(lambda: refusals(collector, "grpc", "share_full") == 36)
        for one in slow:
            one.socket.close()
        await until(lambda: not messages._calls)

    async def test_a_slow_call_ends(self, launch: Launch) -> None:
        collector = await launch(request_timeout_seconds=0.3)
        slow = SlowCall(collector.grpc_address, "", 64 << 20, b"x")
        await until(lambda: refusals(collector, "grpc", "too_slow"))
        slow.socket.close()

    async def test_without_a_key_nothing_is_read(
        self, launch: Launch, tmp_path: Path, keys: dict[str, str]
    ) -> None:
        assert keys
        collector = await launch(keys_file=tmp_path / "keys")
        slow = SlowCall(collector.grpc_address, "wrong", 64 << 20, b"x" * 1000)
        await until(lambda: refusals(collector, "grpc", "unauthenticated"))
        assert not collector._grpc._messages._calls
        slow.socket.close()

    async def test_metadata_is_bounded(self, launch: Launch) -> None:
        collector = await launch(max_header_bytes=20_000)
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await call(collector, body_of("x"), metadata=(("x", "y" * 30_000),))
        assert error.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        await call(collector, body_of("x"))

    async def test_a_call_without_a_message(self, launch: Launch) -> None:
        collector = await launch()
        async with grpc.aio.insecure_channel(collector.grpc_address) as channel:
            empty = channel.stream_unary(EXPORT)(timeout=30)
            await empty.done_writing()
            with pytest.raises(grpc.aio.AioRpcError) as error:
                await empty
        assert error.value.code() is grpc.StatusCode.INVALID_ARGUMENT


@pytest.mark.parametrize("transport", ["http", "grpc"])
async def test_countless_values_are_refused_before_parsing(launch: Launch, transport: str) -> None:
    """Sixteen megabytes of empty spans would take the parser six gigabytes."""
    collector = await launch(max_values=100_000)
    spans = b"\x12\x00" * (1 << 18)
    for tag in (0x12, 0x0A):
        size = struct.pack("<BBBB", *(len(spans) >> shift & 127 | 128 for shift in (0, 7, 14, 21)))
        spans = bytes([tag]) + size + b"\0" + spans
    if transport == "http":
        answer = await post(collector, gzip.compress(spans), **{"content-encoding": "gzip"})
        assert answer.status_code == 413
        assert b"values" in answer.content
    else:
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await call(collector, spans, compression=grpc.Compression.Gzip)
        assert error.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
