"""A hub in one process, an agent in another: their spans are one trace."""

from __future__ import annotations

import asyncio
import json
import sys
import textwrap
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("ag2.network", reason="needs AG2 1.x (`import ag2`)")
pytest.importorskip("websockets", reason="needs AG2's WebSocket transport")

import ag2_programs as programs
from ag2.network.transport.ws import serve_ws
from scripted_llm import ScriptedLLM

if TYPE_CHECKING:
    from recorded_spans import RecordedSpans

pytestmark = pytest.mark.framework("ag2")

TENANT = """
import asyncio, json, sys
from recorded_spans import RecordedSpans
from mast_trace_instrumentations.ag2 import AG2Instrumentor
import ag2_programs as programs
from ag2.network import HubClient
from ag2.network.transport.ws import WsLink

async def main(hub_url, model_url):
    client = HubClient(WsLink(hub_url))
    await client.register(programs.person("bob", model_url, (programs.add,)))
    print("ready", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
    await client.close()

spans = RecordedSpans.of(AG2Instrumentor())
asyncio.run(main(*sys.argv[1:]))
print(json.dumps([
    [s.name, f"{s.context.trace_id:032x}", f"{s.parent.span_id:016x}" if s.parent else ""]
    for s in spans.all
]))
"""


async def test_a_turn_in_another_process_is_in_the_run_of_its_channel(
    spans: RecordedSpans,
) -> None:
    """The envelope carries the run over the wire, in AG2's own field for it."""
    with ScriptedLLM(lambda _request: "It is 5.") as server:
        async with (
            programs.network(programs.person("alice", server.url)) as (hub, (alice,)),
            serve_ws(hub, "127.0.0.1", 0) as listener,
        ):
            port = listener.sockets[0].getsockname()[1]
            tenant = await asyncio.create_subprocess_exec(
                sys.executable,
                "-c",
                textwrap.dedent(TENANT),
                f"ws://127.0.0.1:{port}",
                server.url,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                env={"PYTHONPATH": ":".join(sys.path)},
            )
            assert await tenant.stdout.readline() == b"ready\n"
            channel = await alice.open(type="consulting", target="bob")
            await channel.send("What is 2 + 3?")
            await programs.closed(hub, channel.channel_id)
            output, _ = await tenant.communicate(b"done\n")
    spans.check_shape()
    assert spans.sent_messages() == [
        ("alice", ("bob",), "What is 2 + 3?"),
        ("bob", ("alice",), "It is 5."),
    ]
    (root,) = spans.named("invoke_workflow")
    turn, call = json.loads(output.splitlines()[-1])
    trace = f"{root.context.trace_id:032x}"
    assert turn == ["invoke_agent bob", trace, f"{root.context.span_id:016x}"]
    assert call[:2] == ["chat scripted", trace]
