"""Calls of the Anthropic client that are answered from a recorded run return the recorded values."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

anthropic = pytest.importorskip("anthropic", reason="needs the Anthropic client")

import mast_trace
from mast_trace.testing import capture_spans, replayed
from mast_trace_judge.replay import replay

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from scripted_protocols.server import ScriptedProvider

pytestmark = pytest.mark.framework("anthropic")


def whole(options: dict[str, Any], text: str) -> Any:
    """Call without streaming."""
    return _told(anthropic.Anthropic(**options).messages.create(**_request(text)))


def streamed(options: dict[str, Any], text: str) -> Any:
    """Call with streaming, and let the client assemble the message."""
    with anthropic.Anthropic(**options).messages.stream(**_request(text)) as stream:
        return _told(stream.get_final_message())


def asynchronous(options: dict[str, Any], text: str) -> Any:
    """Call with the asynchronous client."""

    async def ask() -> Any:
        async with anthropic.AsyncAnthropic(**options) as client:
            return _told(await client.messages.create(**_request(text)))

    return asyncio.run(ask())


def asynchronously_streamed(options: dict[str, Any], text: str) -> Any:
    """Call with streaming and the asynchronous client."""

    async def ask() -> Any:
        async with (
            anthropic.AsyncAnthropic(**options) as client,
            client.messages.stream(**_request(text)) as stream,
        ):
            return _told(await stream.get_final_message())

    return asyncio.run(ask())


def as_events(options: dict[str, Any], text: str) -> Any:
    """Call for the events themselves, and assemble the message from them."""
    events = list(anthropic.Anthropic(**options).messages.create(**_request(text), stream=True))
    blocks: dict[int, Any] = {}
    stop = ""
    for event in events:
        if event.type == "content_block_start":
            blocks[event.index] = [event.content_block, ""]
        elif event.type == "content_block_delta":
            delta = event.delta
            blocks[event.index][1] += getattr(delta, "text", "") or getattr(
                delta, "partial_json", ""
            )
        elif event.type == "message_delta":
            stop = event.delta.stop_reason
    said = "".join(text for block, text in blocks.values() if block.type == "text")
    calls = [
        (block.id, block.name, json.loads(text))
        for block, text in blocks.values()
        if block.type == "tool_use"
    ]
    return said, calls, stop


@pytest.mark.parametrize("way", [whole, streamed, asynchronous, asynchronously_streamed, as_events])
def test_every_way_gets_the_same_from_the_record(
    server: ScriptedProvider, options: dict[str, Any], way: Callable[[dict[str, Any], str], Any]
) -> None:
    """Recorded texts, tool calls and errors are returned, without retries or requests to the server."""

    def program() -> list[Any]:
        told: list[Any] = []
        with mast_trace.run("work"), mast_trace.agent("worker"):
            for text in ("Hello", "Call a tool", "think", "refuse"):
                try:
                    told.append(way({**options, "max_retries": 2}, text))
                except anthropic.APIStatusError as error:
                    told.append((type(error).__name__, error.status_code))
        return told

    with capture_spans(["anthropic"]) as captured:
        first = program()
    asked = len(server.requests)
    with replayed(captured.trajectory(), frameworks=["anthropic"]) as replay:
        second = program()

    assert first[1][1] == [("t1", "look_up", {"key": "x", "more": "y" * 20})]
    assert first[3] == ("BadRequestError", 400)
    assert second == first
    replay.assert_identical()
    assert len(server.requests) == asked


def test_another_parameter_is_a_difference(options: dict[str, Any]) -> None:
    """A changed limit is named, though the messages are the recorded ones."""

    def program(limit: int) -> None:
        with mast_trace.run("work"), mast_trace.agent("worker"):
            request = {**_request("Hello"), "max_tokens": limit}
            anthropic.Anthropic(**options).messages.create(**request)

    with capture_spans(["anthropic"]) as captured:
        program(20)
    with replayed(captured.trajectory(), frameworks=["anthropic"]) as replay:
        program(70)
    with pytest.raises(AssertionError, match="max_tokens was 20, is 70"):
        replay.assert_identical()


BEDROCK = """
import boto3
import mast_trace
mast_trace.instrument(frameworks=["anthropic"])
keys = {"aws_access_key_id": "a", "aws_secret_access_key": "b"}
client = boto3.client("bedrock-runtime", region_name="eu-west-1", **keys)
with mast_trace.run("work"), mast_trace.agent("worker"):
    asked = [{"role": "user", "content": [{"text": "Hello"}]}]
    client.converse(modelId="anthropic.claude-x", messages=asked)
"""


def test_a_program_on_botocore_is_refused_by_name(options: dict[str, Any], tmp_path: Path) -> None:
    """The host is secure and cannot be looked up, so that no request is ever written to it."""
    pytest.importorskip("boto3", reason="needs boto3")
    frameworks = ["anthropic"]
    with capture_spans(frameworks) as captured, mast_trace.run("work"), mast_trace.agent("worker"):
        whole(options, "Hello")
    program = tmp_path / "program.py"
    program.write_text(BEDROCK, "utf-8")
    done = replay(captured.trajectory(), [sys.executable, str(program)], quiet=True)
    assert (done.status, done.exit_status) == ("diverged", 1)
    assert done.text.startswith("The program asks a model by botocore (Bedrock).")
    assert done.report is not None
    assert done.report.divergence is not None
    assert done.report.divergence.agent == "worker"


def _request(text: str) -> dict[str, Any]:
    asked = [{"role": "user", "content": text}]
    return {"model": "scripted", "max_tokens": 64, "system": "Be brief.", "messages": asked}


def _told(message: Any) -> tuple[str, list[tuple[str, str, Any]], str]:
    text = "".join(block.text for block in message.content if block.type == "text")
    calls = [(b.id, b.name, b.input) for b in message.content if b.type == "tool_use"]
    return text, calls, message.stop_reason
