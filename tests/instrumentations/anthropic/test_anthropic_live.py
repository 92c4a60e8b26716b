"""Calls after a change reach Anthropic's model, by every way of calling of the client."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from live_replays import going_live, read_tokens, served
from scripted_protocols.anthropic_messages import AnthropicMessages
from scripted_protocols.server import ScriptedAnswer, ScriptedProvider

anthropic = pytest.importorskip("anthropic", reason="needs the Anthropic client")

import mast_trace
from mast_trace.messages import Message
from mast_trace.replay.intervention import Intervention
from mast_trace.testing import capture_spans

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.framework("anthropic")

FIXED = Intervention("answer", 0, 1, Message("fixed"))
Ask = "Callable[[str], str]"


def continued(request: dict[str, Any]) -> str:
    """Answer with the words of the request, so that a correction reaches the end."""
    return f"[{request['messages'][-1]['content']}]"


@pytest.fixture
def model() -> Iterator[ScriptedProvider]:
    """A model that reads its input."""
    with ScriptedProvider(AnthropicMessages(), continued) as serving:
        yield serving


def whole(options: dict[str, Any]) -> Ask:
    client = anthropic.Anthropic(**options)
    return lambda text: _said(client.messages.create(**_request(text)))


def raw(options: dict[str, Any]) -> Ask:
    create = anthropic.Anthropic(**options).messages.with_raw_response.create
    return lambda text: _said(create(**_request(text)).parse())


def streamed(options: dict[str, Any]) -> Ask:
    client = anthropic.Anthropic(**options)

    def ask(text: str) -> str:
        with client.messages.stream(**_request(text)) as stream:
            return _said(stream.get_final_message())

    return ask


def as_events(options: dict[str, Any]) -> Ask:
    client = anthropic.Anthropic(**options)

    def ask(text: str) -> str:
        events = list(client.messages.create(**_request(text), stream=True))
        deltas = [event.delta for event in events if event.type == "content_block_delta"]
        return "".join(delta.text for delta in deltas)

    return ask


def asynchronous(options: dict[str, Any]) -> Ask:
    async def ask(text: str) -> str:
        async with anthropic.AsyncAnthropic(**options) as client:
            return _said(await client.messages.create(**_request(text)))

    return lambda text: asyncio.run(ask(text))


def asynchronously_streamed(options: dict[str, Any]) -> Ask:
    async def ask(text: str) -> str:
        async with (
            anthropic.AsyncAnthropic(**options) as client,
            client.messages.stream(**_request(text)) as stream,
        ):
            return _said(await stream.get_final_message())

    return lambda text: asyncio.run(ask(text))


WAYS = [whole, raw, streamed, as_events, asynchronous, asynchronously_streamed]


def program(ask: Ask) -> list[str]:
    """Ask three times, each time with the answer before."""
    said = ["begin"]
    with mast_trace.run("work"), mast_trace.agent("worker"):
        for _ in range(3):
            said.append(ask(said[-1]))
    return said[1:]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("change", [FIXED, Intervention("ask", 1, 1, model="large")])
def test_calls_after_a_change_are_live(
    model: ScriptedProvider,
    options: dict[str, Any],
    tmp_path: Path,
    way: Callable[[dict[str, Any]], Ask],
    change: Intervention,
) -> None:
    """They are sent as the program asks for them, counted, and recorded with their tokens."""
    options = {**options, "base_url": model.url}
    with capture_spans(["anthropic"]) as captured:
        assert program(way(options)) == ["[begin]", "[[begin]]", "[[[begin]]]"]
    run, asked = captured.trajectory(), len(model.requests)
    with going_live(run, change, tmp_path, frameworks=["anthropic"]) as (player, live, again):
        said = program(way(options))
    fixed = change is FIXED
    assert said == (
        ["fixed", "[fixed]", "[[fixed]]"] if fixed else ["[begin]", "[[begin]]", "[[[begin]]]"]
    )
    sent = model.requests[asked:]
    assert [each["model"] for each in sent] == (["small", "small"] if fixed else ["large", "small"])
    assert [call.status for call in live.calls()] == [200, 200]
    report = player.report()
    assert (report.divergence, report.served_exchanges, report.live_exchanges) == (None, 1, 2)
    assert served(again) == [True, False, False]
    assert read_tokens(again) == [False, True, True]


@pytest.mark.parametrize("way", WAYS)
def test_a_failed_live_call_is_tried_again_and_counted(
    options: dict[str, Any], tmp_path: Path, way: Callable[[dict[str, Any]], Ask]
) -> None:
    """The client's attempts are live calls of their own, each with its status."""
    failures = [True]

    def busy(request: dict[str, Any]) -> ScriptedAnswer | str:
        if "fixed" in request["messages"][-1]["content"] and failures:
            failures.pop()
            return ScriptedAnswer("busy", status=529)
        return continued(request)

    with ScriptedProvider(AnthropicMessages(), busy) as server:
        options = {**options, "base_url": server.url, "max_retries": 1}
        with capture_spans(["anthropic"]) as captured:
            program(way(options))
        run = captured.trajectory()
        with going_live(run, FIXED, tmp_path, frameworks=["anthropic"]) as (_, live, _spans):
            assert program(way(options))[-1] == "[[fixed]]"
    assert [call.status for call in live.calls()] == [529, 200, 200]


def _request(text: str) -> dict[str, Any]:
    asked = [{"role": "user", "content": text}]
    return {"model": "small", "max_tokens": 64, "messages": asked}


def _said(message: Any) -> str:
    return "".join(block.text for block in message.content if block.type == "text")
