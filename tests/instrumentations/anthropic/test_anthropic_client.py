"""Calls of the Anthropic client: each gives one chat span, if nobody above has made it."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

anthropic = pytest.importorskip("anthropic", reason="needs the Anthropic client")

from anthropic_ways import request, tell
from recorded_calls import ANSWER, a_run, answers, chat, shown, under_langgraph

pytestmark = pytest.mark.framework("anthropic")


class TestRequests:
    """The texts in them."""

    def test_results_of_tools_are_messages_that_say_which_call_they_answer(self, recorded, options):
        """The client has them among the blocks of a user's message."""
        history = [
            {"role": "user", "content": "Look it up."},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "s"},
                    {"type": "text", "text": "So."},
                    {"type": "tool_use", "id": "a", "name": "f", "input": {"n": 1}},
                    {"type": "tool_use", "id": "b", "name": "f", "input": {"n": 2}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "a", "content": "one"},
                    {
                        "type": "tool_result",
                        "tool_use_id": "b",
                        "content": [{"type": "text", "text": "two"}],
                    },
                    {"type": "text", "text": "And now?"},
                ],
            },
        ]
        with a_run(recorded), anthropic.Anthropic(**options) as client:
            client.messages.create(model="scripted", max_tokens=9, messages=history)

        run = recorded.trajectory()
        (model,) = [i for i in run.invocations if i.kind == "model"]
        seen = run.seen_by(model)
        assert [(m.role, m.content, m.tool_call_id) for m in seen] == [
            ("user", "Look it up.", None),
            ("assistant", "So.", None),
            ("tool", "one", "a"),
            ("tool", "two", "b"),
            ("user", "And now?", None),
        ]
        assert [(c.name, c.arguments, c.id) for c in seen[1].tool_calls] == [
            ("f", {"n": 1}, "a"),
            ("f", {"n": 2}, "b"),
        ]

    def test_pictures_are_marks(self, recorded, options):
        """Pictures are recorded as marks, never as bytes; two pictures are two messages."""

        def picture(data: str) -> dict[str, Any]:
            source = {"type": "base64", "media_type": "image/png", "data": data}
            return {"role": "user", "content": [{"type": "image", "source": source}]}

        link = {"type": "url", "url": "https://example.org/a.pdf"}
        document = {"role": "user", "content": [{"type": "document", "source": link}]}
        with a_run(recorded), anthropic.Anthropic(**options) as client:
            client.messages.create(
                model="scripted",
                max_tokens=9,
                messages=[picture("A" * 500_000), picture("B" * 500_000), document],
            )

        first, second, third = [text for _, text in shown(recorded)]
        assert first.startswith("[image/png, 500000 characters of base64, ")
        assert second.startswith("[image/png, 500000 characters of base64, ")
        assert first != second
        assert third == "[document https://example.org/a.pdf]"
        assert "AAAA" not in str(dict(chat(recorded)))

    def test_the_clients_own_answer_in_the_history(self, recorded, options):
        """Programs put its blocks there as they are."""
        with a_run(recorded), anthropic.Anthropic(**options) as client:
            first = client.messages.create(**request("Use a tool"))
            client.messages.create(
                model="scripted",
                max_tokens=9,
                messages=[
                    {"role": "assistant", "content": first.content},
                    {
                        "role": "user",
                        "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "x"}],
                    },
                ],
            )

        run = recorded.trajectory()
        second = [i for i in run.invocations if i.kind == "model"][1]
        answered, result = run.seen_by(second)
        assert (answered.content, answered.tool_calls[0].name) == ("Let me see.", "look_up")
        assert (result.role, result.tool_call_id) == ("tool", "t1")


class TestStreams:
    """The program keeps the client's own objects."""

    def test_types_events_and_attributes_are_the_clients(self, recorded, options):
        with anthropic.Anthropic(**options) as client:
            plain = [e.type for e in client.messages.create(**request(), stream=True)]
            with client.messages.stream(**request()) as stream:
                helped = [e.type for e in stream]
            recorded.exporter.clear()
            with a_run(recorded):
                ours = client.messages.create(**request(), stream=True)
                assert type(ours) is anthropic.Stream
                assert ours.response.status_code == 200
                assert [e.type for e in ours] == plain
                manager = client.messages.stream(**request())
                assert type(manager) is anthropic.MessageStreamManager
                with manager as stream:
                    assert type(stream) is anthropic.MessageStream
                    assert [e.type for e in stream] == helped
                    assert stream.get_final_message().content[0].text == ANSWER
                    assert stream.get_final_text() == ANSWER
        assert answers(recorded) == [ANSWER, ANSWER]

    @pytest.mark.parametrize("leave", ["close", "with", "drop"])
    def test_leaving_early_ends_the_span(self, recorded, options, leave):
        """By closing, by leaving a block, by dropping the stream: what had come is kept."""
        with a_run(recorded), anthropic.Anthropic(**options) as client:
            stream = client.messages.create(**request(), stream=True)
            if leave == "with":
                with stream:
                    [next(stream) for _ in range(4)]
            else:
                [next(stream) for _ in range(4)]
            if leave == "close":
                stream.close()
            del stream
            gc.collect()

        assert answers(recorded) in ([ANSWER[:16]], [ANSWER[:32]])
        (span,) = recorded.named("chat")
        assert span.status.is_ok

    def test_leaving_a_helper_early(self, recorded, options):
        with a_run(recorded), anthropic.Anthropic(**options) as client:
            with client.messages.stream(**request()) as stream:
                next(iter(stream.text_stream))
            assert recorded.counts()["chat"] == 1

        assert answers(recorded) == [ANSWER[:16]]

    async def test_leaving_an_asynchronous_stream_early(self, recorded, options):
        async with anthropic.AsyncAnthropic(**options) as client:
            with a_run(recorded):
                async with await client.messages.create(**request(), stream=True) as stream:
                    async for event in stream:
                        if event.type == "content_block_delta":
                            break
                assert recorded.counts()["chat"] == 1

        assert answers(recorded) == [ANSWER[:16]]

    @pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
    async def test_a_stream_that_is_never_read(self, recorded, options, asynchronous):
        """A stream that is never read has no answer; its span ends when it is freed, as without us."""
        with a_run(recorded):
            if asynchronous:
                async with anthropic.AsyncAnthropic(**options) as client:
                    stream = await client.messages.create(**request(), stream=True)
                    gone = weakref.ref(stream)
                    del stream
            else:
                with anthropic.Anthropic(**options) as client:
                    stream = client.messages.create(**request(), stream=True)
                    gone = weakref.ref(stream)
                    del stream
            gc.collect()
            assert gone() is None

        assert "gen_ai.output.messages" not in chat(recorded)
        assert chat(recorded)["gen_ai.request.model"] == "scripted"

    def test_a_helper_that_is_never_entered_is_no_call(self, recorded, options, server):
        with a_run(recorded), anthropic.Anthropic(**options) as client:
            client.messages.stream(**request())

        assert recorded.named("chat") == []
        assert server.requests == []

    def test_raw_answers(self, recorded, options):
        """`with_raw_response`: what the program parses is its own object, read once."""
        with a_run(recorded), anthropic.Anthropic(**options) as client:
            raw = client.messages.with_raw_response.create(**request())
            assert raw.parse() is raw.parse()
            assert raw.parse().content[0].text == ANSWER
            list(client.messages.with_raw_response.create(**request(), stream=True).parse())

        assert answers(recorded) == [ANSWER, ANSWER]

    def test_bodies_that_the_program_reads_are_left_to_it(self, recorded, options):
        """`with_streaming_response`: the call is recorded, without the answer."""
        with a_run(recorded), anthropic.Anthropic(**options) as client:
            streaming = client.messages.with_streaming_response
            with streaming.create(**request()) as raw:
                body = b"".join(raw.iter_bytes())

        assert ANSWER in body.decode()
        assert shown(recorded)[1] == ("user", "Hello")
        assert "gen_ai.output.messages" not in chat(recorded)


class TestOtherClients:
    """The classes of the same package for other providers."""

    def test_bedrock(self, recorded, server):
        pytest.importorskip("boto3", reason="needs boto3")
        client = anthropic.AnthropicBedrock(
            base_url=server.url,
            aws_access_key="a",
            aws_secret_key="b",
            aws_region="eu-west-1",
            max_retries=0,
        )
        with a_run(recorded), client:
            client.messages.create(**request())
            client.beta.messages.create(**request())

        assert answers(recorded) == [ANSWER, ANSWER]
        providers = {span.attributes["gen_ai.provider.name"] for span in recorded.named("chat")}
        assert providers == {"aws.bedrock"}

    def test_vertex(self, recorded, server):
        pytest.importorskip("google.auth", reason="needs google-auth")
        client = anthropic.AnthropicVertex(
            base_url=server.url, region="eu", project_id="p", access_token="t", max_retries=0
        )
        with a_run(recorded), client:
            client.messages.create(**request())
            with client.messages.stream(**request()) as stream:
                stream.until_done()
            client.beta.messages.create(**request())

        assert answers(recorded) == [ANSWER, ANSWER, ANSWER]
        providers = {span.attributes["gen_ai.provider.name"] for span in recorded.named("chat")}
        assert providers == {"gcp.vertex_ai"}


class TestWhose:
    """Calls that are somebody else's, or none of a model."""

    def test_counting_tokens_is_no_call_of_a_model(self, recorded, options):
        with a_run(recorded), anthropic.Anthropic(**options) as client:
            counted = client.messages.count_tokens(
                model="scripted", messages=[{"role": "user", "content": "Hello"}]
            )

        assert counted.input_tokens == 7
        assert recorded.named("chat") == []


@pytest.mark.parametrize(("text", "chats"), [("Hello", 1), ("stream", 2)])
def test_each_call_under_langgraph_gives_one_span(recorded, options, text, chats):
    """LangChain's calls are its own; what goes around LangChain is recorded here."""
    models = pytest.importorskip("langchain_anthropic", reason="needs langchain-anthropic")
    address = {"base_url": options["base_url"], "api_key": "x", "max_retries": 0}
    model = models.ChatAnthropic(model_name="scripted", **address)
    way = "stream" if text == "stream" else "create"
    found = under_langgraph(recorded, model, lambda: tell(options, way).text, text)
    assert found == [("langgraph", "through_langchain")] * chats + [("anthropic", "directly")]
