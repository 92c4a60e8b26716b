"""Calls of the Google Gen AI client: each request gives one chat span, if nobody above made it."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

pytest.importorskip("google.genai", reason="needs the Google Gen AI client")

from google import genai
from google.genai import errors, types
from recorded_calls import ANSWER, a_run, answers, asked_for, chat, shown

pytestmark = pytest.mark.framework("google_genai")

WAYS = ["whole", "stream", "chat", "chat stream"]
CONFIG = {"system_instruction": "Be brief."}


def ask(options: dict[str, Any], way: str, text: str = "Hello", **config: Any) -> str:
    """Make a call; return the text of the answer as the program sees it."""
    client = genai.Client(**options)
    asked = {"model": "scripted", "config": {**CONFIG, **config}}
    if "chat" in way:
        talk = client.chats.create(**asked)
        if "stream" in way:
            return "".join(piece.text or "" for piece in talk.send_message_stream(text))
        return talk.send_message(text).text or ""
    if "stream" in way:
        pieces = client.models.generate_content_stream(**asked, contents=text)
        return "".join(piece.text or "" for piece in pieces)
    return client.models.generate_content(**asked, contents=text).text or ""


async def aask(options: dict[str, Any], way: str, text: str = "Hello", **config: Any) -> str:
    """Make the call asynchronously."""
    client = genai.Client(**options).aio
    asked = {"model": "scripted", "config": {**CONFIG, **config}}
    if "chat" in way:
        talk = client.chats.create(**asked)
        if "stream" in way:
            pieces = await talk.send_message_stream(text)
            return "".join([piece.text or "" async for piece in pieces])
        return (await talk.send_message(text)).text or ""
    if "stream" in way:
        pieces = await client.models.generate_content_stream(**asked, contents=text)
        return "".join([piece.text or "" async for piece in pieces])
    return (await client.models.generate_content(**asked, contents=text)).text or ""


def look_up(key: str) -> int:
    """Look a number up."""
    assert key == "x"
    return 42


def fail(key: str) -> int:
    """Find nothing."""
    raise LookupError(f"no {key} here")


# Older versions do not know annotations that are texts.
look_up.__annotations__ = fail.__annotations__ = {"key": str, "return": int}


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> str:
    """A way to ask."""
    return str(request.param)


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
class TestEveryWay:
    """Whole or streamed, alone or in a chat."""

    @staticmethod
    async def ask(options: Any, way: str, asynchronous: bool, *more: Any, **config: Any) -> str:
        if asynchronous:
            return await aask(options, way, *more, **config)
        return ask(options, way, *more, **config)

    async def test_request_answer_and_usage_are_on_the_span(
        self, recorded, options, way, asynchronous
    ):
        with a_run(recorded):
            answered = await self.ask(options, way, asynchronous)

        assert answered == ANSWER
        assert answers(recorded) == [ANSWER]
        assert shown(recorded) == [("system", "Be brief."), ("user", "Hello")]
        about = chat(recorded)
        assert about["gen_ai.request.model"] == "scripted"
        assert about["gen_ai.response.model"] == "scripted-1"
        assert about["gen_ai.response.id"] == "response_1"
        assert about["gen_ai.provider.name"] == "gcp.gemini"
        assert about["gen_ai.response.finish_reasons"] == ("STOP",)
        assert about["gen_ai.usage.input_tokens"] > 7
        assert about["gen_ai.usage.output_tokens"] > 7
        recorded.check_shape()

    async def test_tokens_of_caches_and_thoughts(self, recorded, options, way, asynchronous):
        """Cached tokens are among the input, those of thoughts among the output."""
        with a_run(recorded):
            await self.ask(options, way, asynchronous, "use the cache")
            assert await self.ask(options, way, asynchronous, "think") == "Thought."

        cached, thought = [span.attributes for span in recorded.named("chat")]
        assert cached["gen_ai.usage.cache_read.input_tokens"] == 100
        assert cached["gen_ai.usage.input_tokens"] > 100
        assert "gen_ai.usage.cache_read.input_tokens" not in thought
        parts = len('[{"text": "First this, then that.", "thought": true}, {"text": "Thought."}]')
        assert thought["gen_ai.usage.output_tokens"] == parts // 4 + 1 + 5
        assert answers(recorded) == ["Cached.", "Thought."]

    async def test_calls_of_functions(self, recorded, options, way, asynchronous):
        """Functions that the program executes itself."""
        with a_run(recorded):
            await self.ask(options, way, asynchronous, "Use a tool")

        assert answers(recorded) == ["Let me see."]
        assert asked_for(recorded) == [{"name": "look_up", "arguments": {"key": "x"}}]

    async def test_functions_that_the_client_executes(
        self, recorded, options, way, asynchronous, server
    ):
        """Two calls of the model and the executions between them, one of which fails."""
        with a_run(recorded):
            answered = await self.ask(options, way, asynchronous, "Use both", tools=[look_up, fail])

        assert answered == "It is 42."
        assert len(server.requests) == 2
        assert recorded.counts() == {
            "invoke_workflow": 1,
            "invoke_agent": 1,
            "chat": 2,
            "execute_tool": 2,
        }
        found, failed = [span.attributes for span in recorded.named("execute_tool")]
        assert found["gen_ai.tool.name"] == "look_up"
        assert found["gen_ai.tool.call.arguments"] == '{"key": "x"}'
        assert found["gen_ai.tool.call.result"] == "42"
        assert found["gen_ai.agent.name"] == "worker"
        assert failed["gen_ai.tool.name"] == "fail"
        assert failed["error.type"] == "FunctionInvocationError"
        recorded.check_shape()

    @pytest.mark.parametrize("text", ["refuse", "break"])
    async def test_errors_pass_through_and_are_on_the_span(
        self, recorded, options, way, asynchronous, text
    ):
        kind = errors.ClientError if text == "refuse" else errors.ServerError
        with a_run(recorded), pytest.raises(kind, match="scripted failure"):
            await self.ask(options, way, asynchronous, text)

        assert chat(recorded)["error.type"] == kind.__name__

    async def test_a_connection_that_is_reset(self, recorded, options, way, asynchronous):
        """The part of a stream before an error is kept, beside the error."""
        if "stream" in way:
            with a_run(recorded), pytest.raises(Exception) as raised:
                await self.ask(options, way, asynchronous, "reset")

            assert chat(recorded)["error.type"] == type(raised.value).__qualname__
            assert answers(recorded) == [ANSWER[:32]]


class TestRequests:
    """The texts in them."""

    def test_contents_in_every_shape(self, recorded, options):
        """Texts, parts, contents and mappings in either spelling; media are marks."""
        picture = types.Part.from_bytes(data=b"\x89PNG" * 1000, mime_type="image/png")
        linked = types.Part.from_uri(file_uri="gs://bucket/a.pdf", mime_type="application/pdf")
        call = types.Part.from_function_call(name="look_up", args={"key": "x"})
        told = {"functionResponse": {"name": "look_up", "response": {"result": 42}, "id": "c"}}
        contents = [
            types.UserContent("Look."),
            types.Content(role="model", parts=[types.Part(text="So."), call]),
            {"role": "user", "parts": [told]},
            "What is ",
            types.Part(text="this?"),
            picture,
            linked,
        ]
        client = genai.Client(**options)  # it closes when it is dropped
        with a_run(recorded):
            client.models.generate_content(model="scripted", contents=contents)

        run = recorded.trajectory()
        (model,) = [i for i in run.invocations if i.kind == "model"]
        seen = run.seen_by(model)
        assert [(m.role, m.content) for m in seen[:3]] == [
            ("user", "Look."),
            ("assistant", "So."),
            ("tool", "42"),
        ]
        assert seen[1].tool_calls[0].name == "look_up"
        assert seen[2].tool_call_id == "c"
        assert seen[3].role == "user"
        assert seen[3].content.startswith("What is this?[image/png, 4000 bytes, ")
        assert seen[3].content.endswith("][application/pdf gs://bucket/a.pdf]")


class TestStreams:
    """Iterators as the client has them."""

    def test_leaving_early_ends_the_span(self, recorded, options):
        client = genai.Client(**options)
        with a_run(recorded):
            pieces = client.models.generate_content_stream(model="scripted", contents="Hello")
            assert isinstance(pieces, Iterator)
            assert isinstance(next(pieces), types.GenerateContentResponse)
            pieces.close()
            assert recorded.counts()["chat"] == 1

        assert answers(recorded) == [ANSWER[:16]]
        (span,) = recorded.named("chat")
        assert span.status.is_ok

    async def test_leaving_an_asynchronous_stream_early(self, recorded, options):
        client = genai.Client(**options)
        with a_run(recorded):
            pieces = await client.aio.models.generate_content_stream(
                model="scripted", contents="Hello"
            )
            assert isinstance(pieces, AsyncIterator)
            async for _piece in pieces:
                break
            await pieces.aclose()
            del pieces
            gc.collect()
            for _ in range(100):  # the event loop closes the generators inside, one by one
                await asyncio.sleep(0)

        assert answers(recorded) == [ANSWER[:16]]

    def test_a_stream_that_is_never_read_is_no_call(self, recorded, options, server):
        """The client sends the request with the first step."""
        with a_run(recorded):
            genai.Client(**options).models.generate_content_stream(model="m", contents="Hello")

        assert recorded.named("chat") == []
        assert server.requests == []


class TestWhose:
    """Calls that are somebody else's, or none of a model."""

    def test_outside_of_runs_nothing_is_recorded(self, recorded, options, way):
        assert ask(options, way, "Use both", tools=[look_up, fail]) == "It is 42."
        assert recorded.all == []

    def test_counting_tokens_is_no_call_of_a_model(self, recorded, options):
        with a_run(recorded):
            client = genai.Client(**options)
            assert client.models.count_tokens(model="scripted", contents="a").total_tokens == 7

        assert recorded.named("chat") == []

    def test_vertex(self, recorded, server):
        """The client with the credentials of Vertex."""
        google_auth = pytest.importorskip("google.oauth2.credentials")
        client = genai.Client(
            vertexai=True,
            project="p",
            location="eu",
            credentials=google_auth.Credentials(token="t"),
            http_options={"base_url": server.url},
        )
        with a_run(recorded):
            client.models.generate_content(model="scripted", contents="Hello")

        assert chat(recorded)["gen_ai.provider.name"] == "gcp.vertex_ai"
        assert answers(recorded) == [ANSWER]
