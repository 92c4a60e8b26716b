"""Calls after a change reach the model, by every interface and way of calling of the client."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import openai
import pytest
from live_replays import going_live, read_tokens, served
from scripted_llm import Reply, ScriptedLLM, last_text

import mast_trace
from mast_trace.messages import Message
from mast_trace.replay.intervention import Intervention
from mast_trace.testing import capture_spans

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.framework("openai")

HAS_RESPONSES = "responses" in dir(openai.OpenAI(api_key="x"))
FIXED = Intervention("answer", 0, 1, Message("fixed"))
Ask = "Callable[[str], str]"


def continued(request: dict[str, Any]) -> str:
    """Answer with the words of the request, so that a correction reaches the end."""
    return f"[{last_text(request)}]"


@pytest.fixture
def model() -> Iterator[ScriptedLLM]:
    """A model that reads its input."""
    with ScriptedLLM(continued) as serving:
        yield serving


def chat(options: dict[str, Any]) -> Ask:
    client = openai.OpenAI(**options)
    return lambda text: _said(client.chat.completions.create(**_chat(text)))


def chat_raw(options: dict[str, Any]) -> Ask:
    create = openai.OpenAI(**options).chat.completions.with_raw_response.create
    return lambda text: _said(create(**_chat(text)).parse())


def chat_streamed(options: dict[str, Any]) -> Ask:
    client = openai.OpenAI(**options)
    more: Any = {"stream": True, "stream_options": {"include_usage": True}}
    return lambda text: _joined(list(client.chat.completions.create(**_chat(text), **more)))


def chat_async(options: dict[str, Any]) -> Ask:
    async def ask(text: str) -> str:
        async with openai.AsyncOpenAI(**options) as client:
            return _said(await client.chat.completions.create(**_chat(text)))

    return lambda text: asyncio.run(ask(text))


def chat_async_streamed(options: dict[str, Any]) -> Ask:
    more: Any = {"stream": True, "stream_options": {"include_usage": True}}

    async def ask(text: str) -> str:
        async with openai.AsyncOpenAI(**options) as client:
            pieces = await client.chat.completions.create(**_chat(text), **more)
            return _joined([piece async for piece in pieces])

    return lambda text: asyncio.run(ask(text))


def responses(options: dict[str, Any]) -> Ask:
    client = openai.OpenAI(**options)
    return lambda text: client.responses.create(model="m", input=text).output_text


def responses_streamed(options: dict[str, Any]) -> Ask:
    client = openai.OpenAI(**options)

    def ask(text: str) -> str:
        events = list(client.responses.create(model="m", input=text, stream=True))
        return str(events[-1].response.output_text)

    return ask


def responses_async(options: dict[str, Any]) -> Ask:
    async def ask(text: str) -> str:
        async with openai.AsyncOpenAI(**options) as client:
            return str((await client.responses.create(model="m", input=text)).output_text)

    return lambda text: asyncio.run(ask(text))


def responses_async_streamed(options: dict[str, Any]) -> Ask:
    async def ask(text: str) -> str:
        async with openai.AsyncOpenAI(**options) as client:
            events = await client.responses.create(model="m", input=text, stream=True)
            return str([event async for event in events][-1].response.output_text)

    return lambda text: asyncio.run(ask(text))


WAYS: list[Callable[[dict[str, Any]], Ask]] = [
    *(chat, chat_raw, chat_streamed, chat_async, chat_async_streamed),
    *((responses, responses_streamed) if HAS_RESPONSES else ()),
    *((responses_async, responses_async_streamed) if HAS_RESPONSES else ()),
]


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
    model: ScriptedLLM,
    options: dict[str, Any],
    tmp_path: Path,
    way: Callable[[dict[str, Any]], Ask],
    change: Intervention,
) -> None:
    """They are sent as the program asks for them, counted, and recorded with their tokens."""
    options = {**options, "base_url": model.url}
    with capture_spans(["openai"]) as captured:
        assert program(way(options)) == ["[begin]", "[[begin]]", "[[[begin]]]"]
    run, asked = captured.trajectory(), len(model.requests)
    with going_live(run, change, tmp_path, frameworks=["openai"]) as (player, live, again):
        said = program(way(options))
    fixed = change is FIXED
    assert said == (
        ["fixed", "[fixed]", "[[fixed]]"] if fixed else ["[begin]", "[[begin]]", "[[[begin]]]"]
    )
    sent = model.requests[asked:]
    assert [each["model"] for each in sent] == (["m", "m"] if fixed else ["large", "m"])
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

    def busy(request: dict[str, Any]) -> Reply | str:
        if "fixed" in last_text(request) and failures:
            failures.pop()
            return Reply("busy", status=503)
        return continued(request)

    with ScriptedLLM(busy) as server:
        options = {**options, "base_url": server.url, "max_retries": 1}
        with capture_spans(["openai"]) as captured:
            program(way(options))
        run = captured.trajectory()
        with going_live(run, FIXED, tmp_path, frameworks=["openai"]) as (_, live, _spans):
            assert program(way(options))[-1] == "[[fixed]]"
    assert [call.status for call in live.calls()] == [503, 200, 200]


@pytest.mark.parametrize("is_async", [False, True])
def test_embeddings_after_a_change_are_live(
    model: ScriptedLLM,
    options: dict[str, Any],
    tmp_path: Path,
    is_async: bool,
) -> None:
    """Before the change no tape can answer them; after it they are sent and counted."""
    options = {**options, "base_url": model.url}
    asking: Any = {"model": "vectors", "input": "x", "encoding_format": "float"}

    def embed() -> None:
        if not is_async:
            openai.OpenAI(**options).embeddings.create(**asking)
            return

        async def ask() -> None:
            async with openai.AsyncOpenAI(**options) as client:
                await client.embeddings.create(**asking)

        asyncio.run(ask())

    def work() -> None:
        with mast_trace.run("work"), mast_trace.agent("worker"):
            chat(options)("begin")
            embed()

    with capture_spans(["openai"]) as captured, mast_trace.run("work"), mast_trace.agent("worker"):
        chat(options)("begin")
    run, asked = captured.trajectory(), len(model.requests)
    with going_live(run, FIXED, tmp_path, frameworks=["openai"]) as (player, live, _):
        work()
    assert [(call.model, call.status) for call in live.calls()] == [("vectors", 200)]
    assert len(model.requests) == asked + 1
    assert player.report().divergence is None
    (tmp_path / "live.jsonl").unlink()
    early = Intervention("keep", 1, 2)
    with (
        going_live(run, early, tmp_path, frameworks=["openai"]) as (player, live, _),
        pytest.raises(openai.BadRequestError, match="cannot be answered"),
    ):
        work()
    assert live.calls() == ()
    assert len(model.requests) == asked + 1


def _chat(text: str) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": text}]}


def _said(completion: Any) -> str:
    return completion.choices[0].message.content or ""


def _joined(pieces: list[Any]) -> str:
    return "".join(piece.choices[0].delta.content or "" for piece in pieces if piece.choices)
