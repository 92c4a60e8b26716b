"""Calls of the Google Gen AI client: each request gives one chat span, if nobody above made it."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Iterator

import pytest

pytest.importorskip("google.genai", reason="needs the Google Gen AI client")

from google import genai
from google.genai import types
from recorded_calls import ANSWER, a_run, answers, chat

pytestmark = pytest.mark.framework("google_genai")


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
