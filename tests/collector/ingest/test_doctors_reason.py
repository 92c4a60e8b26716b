"""The doctor's words on a collector that takes nothing for the moment: the collector's own reason."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from ingest_support import get

from mast_trace import doctor

if TYPE_CHECKING:
    from ingest_support import Launch


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
async def test_a_collector_without_room_gives_its_reason(
    launch: Launch, monkeypatch: pytest.MonkeyPatch, protocol: str
) -> None:
    """The reason is that of /readyz; no advice speaks of a log, or of a collector that is missing."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
    collector = await launch(spool_min_free_bytes=1 << 60)
    state = (await get(collector, "/readyz")).json()
    address = collector.http_address
    if protocol == "grpc":
        address = f"http://{collector.grpc_address}"
    (problem,) = (await asyncio.to_thread(doctor.examine, endpoint=address)).problems
    assert not state["ready"]
    assert state["reason"] in problem
    assert "disk" in state["reason"]
    assert "log" not in problem
    assert "mast-trace up" not in problem
    assert problem.count(state["reason"]) == 1
