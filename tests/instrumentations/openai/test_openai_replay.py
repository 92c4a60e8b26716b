"""Calls of the OpenAI client that are answered from a recorded run return the recorded values."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import openai
import pytest

import mast_trace
from mast_trace.replay.recording import NotReplayable
from mast_trace.testing import capture_spans, replayed

if TYPE_CHECKING:
    from collections.abc import Callable

    from scripted_llm import ScriptedLLM

pytestmark = pytest.mark.framework("openai")

HAS_RESPONSES = "responses" in dir(openai.OpenAI(api_key="x"))
TOOL = {"type": "function", "function": {"name": "look_up", "parameters": {"type": "object"}}}
Told = tuple[str, list[tuple[str, str, str]], str]
"""Text, calls (id, name, arguments) and finish reason, as the client returns them."""


def whole(options: dict[str, Any], text: str) -> Told:
    """Call without streaming."""
    return _told(openai.OpenAI(**options).chat.completions.create(**_request(text)))


def raw(options: dict[str, Any], text: str) -> Told:
    """Call for the raw HTTP response, and parse it."""
    create = openai.OpenAI(**options).chat.completions.with_raw_response.create
    return _told(create(**_request(text)).parse())


def asynchronous(options: dict[str, Any], text: str) -> Told:
    """Call with the asynchronous client."""

    async def ask() -> Told:
        async with openai.AsyncOpenAI(**options) as client:
            return _told(await client.chat.completions.create(**_request(text)))

    return asyncio.run(ask())


def streamed(options: dict[str, Any], text: str) -> Told:
    """Call with streaming."""
    pieces = openai.OpenAI(**options).chat.completions.create(**_request(text), stream=True)
    return _assembled(list(pieces))


def asynchronously_streamed(options: dict[str, Any], text: str) -> Told:
    """Call with streaming and the asynchronous client."""

    async def ask() -> Told:
        async with openai.AsyncOpenAI(**options) as client:
            pieces = await client.chat.completions.create(**_request(text), stream=True)
            return _assembled([piece async for piece in pieces])

    return asyncio.run(ask())


def responses(options: dict[str, Any], text: str) -> Told:
    """Call the Responses API."""
    response = openai.OpenAI(**options).responses.create(model="m", input=text)
    return _response(response)


def responses_streamed(options: dict[str, Any], text: str) -> Told:
    """Call the Responses API with streaming."""
    events = list(openai.OpenAI(**options).responses.create(model="m", input=text, stream=True))
    return _response(events[-1].response)


WAYS = [whole, raw, asynchronous, streamed, asynchronously_streamed]
WAYS += [responses, responses_streamed] if HAS_RESPONSES else []


@pytest.mark.parametrize("way", WAYS)
def test_every_way_gets_the_same_from_the_record(
    server: ScriptedLLM, options: dict[str, Any], way: Callable[[dict[str, Any], str], Told]
) -> None:
    """Recorded texts, tool calls and errors are returned, without retries or requests to the server."""

    def program() -> list[Any]:
        told: list[Any] = []
        with mast_trace.run("work"), mast_trace.agent("worker"):
            for text in ("Hello", "Call a tool", "fail"):
                try:
                    told.append(way({**options, "max_retries": 2}, text))
                except openai.OpenAIError as error:
                    told.append((type(error).__name__, getattr(error, "status_code", None)))
        return told

    with capture_spans(["openai"]) as captured:
        first = program()
    asked = len(server.requests)
    with replayed(captured.trajectory(), frameworks=["openai"]) as replay:
        second = program()

    assert first[0][0] == "An answer that comes in several pieces."
    assert first[1][1] == [("call_1", "look_up", '{"key": "x"}')]
    assert first[2] == ("BadRequestError", 400)
    assert second == first
    replay.assert_identical()
    assert len(server.requests) == asked


def test_one_recorded_way_answers_another(server: ScriptedLLM, options: dict[str, Any]) -> None:
    """A recorded call without streaming answers a call with streaming."""

    def program(way: Callable[[dict[str, Any], str], Told]) -> Told:
        with mast_trace.run("work"), mast_trace.agent("worker"):
            return way(options, "Call a tool")

    with capture_spans(["openai"]) as captured:
        first = program(whole)
    with replayed(captured.trajectory(), frameworks=["openai"]) as replay:
        assert program(streamed) == first
    replay.assert_identical()


def test_another_parameter_is_a_difference(options: dict[str, Any]) -> None:
    """A changed temperature, tool or model is named, though the messages are the recorded ones."""

    def program(**more: Any) -> None:
        client = openai.OpenAI(**options)
        with mast_trace.run("work"), mast_trace.agent("worker"):
            client.chat.completions.create(**{**_request("Hello"), "temperature": 0.2, **more})

    with capture_spans(["openai"]) as captured:
        program()
    run = captured.trajectory()
    for more, text in (
        ({}, ""),
        (
            {"temperature": 0.7},
            "worker asks the model with other parameters: temperature was 0.2, is 0.7.",
        ),
        ({"tools": [{**TOOL, "function": {"name": "other"}}]}, "tools has changed"),
        ({"seed": 1}, "seed was absent, is 1"),
        ({"model": "n"}, "model was m, is n"),
    ):
        with replayed(run, frameworks=["openai"]) as replay:
            program(**more)
        if not text:
            replay.assert_identical()
            continue
        assert text in replay.report.other_parameters
        with pytest.raises(AssertionError, match="other parameters"):
            replay.assert_identical()


@mast_trace.tool
def price(item: str):
    """Return a number, its text, nothing, or a tuple; the return type is not annotated."""
    executed.append(item)
    return {"kettle": 750.0, "pot": "750.0", "pan": None, "lid": (1, 2)}[item]


executed: list[str] = []


class TestTypes:
    """Results of hand-made tools come back as the values that they were."""

    def program(self, options: dict[str, Any], *items: str) -> list[Any]:
        executed.clear()
        with mast_trace.run("work"), mast_trace.agent("worker"):
            whole(options, "Hello")
            return [price(item) for item in items]

    def test_values_are_told_apart(self, options: dict[str, Any]) -> None:
        items = ("kettle", "pot", "pan")
        with capture_spans(["openai"]) as captured:
            self.program(options, *items)
        with replayed(captured.trajectory(), frameworks=["openai"]) as replay:
            assert self.program(options, *items) == [750.0, "750.0", None]
        replay.assert_identical()
        assert executed == []

    def test_a_value_that_no_text_holds_is_said_before(self, options: dict[str, Any]) -> None:
        with capture_spans(["openai"]) as captured:
            self.program(options, "kettle", "lid")
        run = captured.trajectory()
        reason = "price returned a value of tuple, which no text can stand for. --live-tools price"
        with pytest.raises(NotReplayable, match=reason), replayed(run):
            pass
        with replayed(run, live_tools=["price"], frameworks=["openai"]) as replay:
            assert self.program(options, "kettle", "lid") == [750.0, (1, 2)]
        assert executed == ["lid"]
        replay.assert_identical()


class TestRedaction:
    """Runs whose texts were redacted are refused; a redaction that changed nothing leaves no trace."""

    def program(self, options: dict[str, Any]) -> None:
        with mast_trace.run("work", input="The key is 4242."), mast_trace.agent("worker"):
            whole(options, "Hello")
            price("kettle")

    @pytest.mark.parametrize(
        ("word", "reason"),
        [
            ("Hello", "the input of a model call of worker"),
            ("750", "the result of a call of price"),
            ("kettle", "the arguments of a call of price"),
        ],
    )
    def test_a_changed_text_is_said_before(
        self, options: dict[str, Any], word: str, reason: str
    ) -> None:
        with capture_spans(["openai"], redact=lambda text: text.replace(word, "*")) as captured:
            self.program(options)
        assert word not in str([record.attributes for record in captured.records])
        run = captured.trajectory()
        with (
            pytest.raises(NotReplayable, match=f"redaction has changed {reason}"),
            replayed(run),
        ):
            pass

    def test_texts_that_stay_are_replayed(self, options: dict[str, Any]) -> None:
        """The run's own input is redacted, which no model was shown."""
        with capture_spans(["openai"], redact=lambda text: text.replace("4242", "*")) as captured:
            self.program(options)
        run = captured.trajectory()
        assert run.redacted == ("gen_ai.input.messages",)
        with replayed(run, frameworks=["openai"]) as replay:
            self.program(options)
        assert replay.report.divergence is None
        assert replay.report.served_exchanges == 1


def test_other_requests_are_not_touched(server: ScriptedLLM, options: dict[str, Any]) -> None:
    """Requests to other paths reach the network; model APIs that are not recorded are refused by name."""
    client = openai.OpenAI(**options)
    with capture_spans(["openai"]) as captured, mast_trace.run("work"), mast_trace.agent("worker"):
        whole(options, "Hello")
    with replayed(captured.trajectory(), frameworks=["openai"]) as replay:
        assert client.models.list().data
        with pytest.raises(openai.BadRequestError, match="cannot be answered"):
            client.embeddings.create(model="m", input="x")
    assert replay.report.divergence is not None
    assert replay.report.divergence.kind == "unsupported"
    with pytest.raises(AssertionError, match="embeddings"):
        replay.assert_identical()


def test_embeddings_are_let_through_by_name(server: ScriptedLLM, options: dict[str, Any]) -> None:
    """Requests for embeddings reach their server as a live tool, and are counted."""
    client = openai.OpenAI(**options)
    asked: Any = [{"role": "user", "content": "Hello"}]
    with capture_spans(["openai"]) as captured, mast_trace.run("work"), mast_trace.agent("worker"):
        client.chat.completions.create(model="m", messages=asked)
    run, sent = captured.trajectory(), len(server.requests)
    with replayed(run, live_tools=["embeddings"], frameworks=["openai"]) as replay:
        client.embeddings.create(model="m", input="x", encoding_format="float")
    assert len(server.requests) == sent + 1
    assert replay.report.divergence is None
    assert replay.report.live_executions == 1


def test_afterwards_the_client_is_as_it_was(options: dict[str, Any]) -> None:
    """The original functions of the HTTP client are restored."""
    import httpx

    before = (vars(httpx.Client)["send"], vars(httpx.AsyncClient)["send"])
    with capture_spans(["openai"]) as captured, mast_trace.run("work"), mast_trace.agent("worker"):
        whole(options, "Hello")
    with replayed(captured.trajectory(), frameworks=["openai"]):
        assert vars(httpx.Client)["send"] is not before[0]
    assert vars(httpx.Client)["send"] is before[0]
    assert vars(httpx.AsyncClient)["send"] is before[1]


def _request(text: str) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": text}], "tools": [TOOL]}


def _told(completion: Any) -> Told:
    choice = completion.choices[0]
    calls = [
        (call.id, call.function.name, call.function.arguments)
        for call in choice.message.tool_calls or ()
    ]
    return choice.message.content or "", calls, choice.finish_reason


def _assembled(pieces: list[Any]) -> Told:
    choices = [piece.choices[0] for piece in pieces if piece.choices]
    text = "".join(choice.delta.content or "" for choice in choices)
    parts = [call for choice in choices for call in choice.delta.tool_calls or ()]
    calls = [(part.id, part.function.name, part.function.arguments) for part in parts]
    return text, calls, next(c.finish_reason for c in reversed(choices) if c.finish_reason)


def _response(response: Any) -> Told:
    calls = [
        (item.call_id, item.name, item.arguments)
        for item in response.output
        if item.type == "function_call"
    ]
    return response.output_text, calls, response.status
