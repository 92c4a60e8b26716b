"""Calls of the Anthropic client: each gives one chat span, if nobody above has made it."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import Any

import pytest

anthropic = pytest.importorskip("anthropic", reason="needs the Anthropic client")

from recorded_calls import ANSWER, a_run, answers, asked_for, chat, shown

pytestmark = pytest.mark.framework("anthropic")

WAYS = ["create", "stream", "helper", "beta", "beta stream", "beta helper"]


def request(text: str = "Hello", **more: Any) -> dict[str, Any]:
    asked = [{"role": "user", "content": text}]
    return {"model": "scripted", "max_tokens": 64, "system": "Be brief.", "messages": asked, **more}


def ask(options: dict[str, Any], way: str, text: str = "Hello") -> str:
    """Make a call; return the text of the answer as the program sees it."""
    with anthropic.Anthropic(**options) as client:
        messages = client.beta.messages if "beta" in way else client.messages
        if "helper" in way:
            with messages.stream(**request(text)) as stream:
                return "".join(stream.text_stream)
        if "stream" in way:
            events = messages.create(**request(text), stream=True)
            return "".join(getattr(getattr(e, "delta", None), "text", "") or "" for e in events)
        answered = messages.create(**request(text)).content
        return "".join(block.text for block in answered if block.type == "text")


async def aask(options: dict[str, Any], way: str, text: str = "Hello") -> str:
    """Make the call asynchronously."""
    async with anthropic.AsyncAnthropic(**options) as client:
        messages = client.beta.messages if "beta" in way else client.messages
        if "helper" in way:
            async with messages.stream(**request(text)) as stream:
                return "".join([piece async for piece in stream.text_stream])
        if "stream" in way:
            events = [e async for e in await messages.create(**request(text), stream=True)]
            return "".join(getattr(getattr(e, "delta", None), "text", "") or "" for e in events)
        answered = (await messages.create(**request(text))).content
        return "".join(block.text for block in answered if block.type == "text")


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> str:
    """A way to ask."""
    return str(request.param)


class TestEveryWay:
    """Whole or streamed, of the stable interface or the beta one."""

    @pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
    async def test_request_answer_and_usage_are_on_the_span(
        self, recorded, options, way, asynchronous
    ):
        """Request, answer and usage are on the span, for every way to ask."""
        with a_run(recorded):
            answered = await aask(options, way) if asynchronous else ask(options, way)

        assert answered == ANSWER
        assert answers(recorded) == [ANSWER]
        assert shown(recorded) == [("system", "Be brief."), ("user", "Hello")]
        about = chat(recorded)
        assert about["gen_ai.request.model"] == "scripted"
        assert about["gen_ai.response.model"] == "scripted-1"
        assert about["gen_ai.response.id"] == "msg_1"
        assert about["gen_ai.provider.name"] == "anthropic"
        assert about["gen_ai.response.finish_reasons"] == ("end_turn",)
        assert about["gen_ai.usage.input_tokens"] == 7
        assert about["gen_ai.usage.output_tokens"] > 1
        recorded.check_shape()

    def test_input_tokens_are_all_tokens(self, recorded, options, way):
        """The client counts what a cache has read or written apart; the conventions add it up."""
        with a_run(recorded):
            ask(options, way, "use the cache")

        about = chat(recorded)
        assert about["gen_ai.usage.input_tokens"] == 127
        assert about["gen_ai.usage.cache_read.input_tokens"] == 100
        assert about["gen_ai.usage.cache_write.input_tokens"] == 20
        assert recorded.trajectory().input_tokens == 127

    def test_calls_of_tools(self, recorded, options, way):
        """Arguments of tool calls come in pieces in a stream."""
        with a_run(recorded):
            assert ask(options, way, "Use a tool") == "Let me see."

        assert answers(recorded) == ["Let me see."]
        arguments = {"key": "x", "more": "y" * 20}
        assert asked_for(recorded) == [{"name": "look_up", "arguments": arguments}]

    def test_thoughts_are_not_what_is_said(self, recorded, options, way):
        """Thoughts count among the tokens."""
        with a_run(recorded):
            assert ask(options, way, "think") == "Thought."

        assert answers(recorded) == ["Thought."]

    @pytest.mark.parametrize("text", ["refuse", "break"])
    def test_errors_pass_through_and_are_on_the_span(self, recorded, options, way, text):
        """The client's own exceptions."""
        kind = anthropic.BadRequestError if text == "refuse" else anthropic.InternalServerError
        with a_run(recorded), pytest.raises(kind, match="scripted failure"):
            ask(options, way, text)

        assert chat(recorded)["error.type"] == kind.__name__

    @pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
    @pytest.mark.parametrize("way", ["stream", "helper", "beta stream", "beta helper"])
    async def test_a_connection_that_is_reset(self, recorded, options, way, asynchronous):
        """The part of a stream before an error is kept, beside the error."""
        with a_run(recorded), pytest.raises(Exception) as raised:
            await aask(options, way, "reset") if asynchronous else ask(options, way, "reset")

        assert chat(recorded)["error.type"] == type(raised.value).__qualname__
        assert answers(recorded) == [ANSWER[:32]]


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

    async def test_asynchronous_raw_answers(self, recorded, options):
        async with anthropic.AsyncAnthropic(**options) as client:
            with a_run(recorded):
                raw = await client.messages.with_raw_response.create(**request())
                parsed = raw.parse()
                parsed = await parsed if asyncio.iscoroutine(parsed) else parsed
                assert parsed.content[0].text == ANSWER

        assert answers(recorded) == [ANSWER]

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


class TestUnderLangGraph:
    """LangGraph and the client, both instrumented."""

    @pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
    def test_each_call_gives_one_span(self, recorded, options, stream):
        """LangChain's calls are its own; what goes around LangChain is recorded here."""
        models = pytest.importorskip("langchain_anthropic", reason="needs langchain-anthropic")
        pytest.importorskip("langgraph.graph", reason="needs LangGraph")
        from langgraph.graph import START, MessagesState, StateGraph

        from mast_trace_instrumentations.langgraph import LangGraphInstrumentor

        model = models.ChatAnthropic(
            model_name="scripted", base_url=options["base_url"], api_key="x", max_retries=0
        )

        def through_langchain(state: Any) -> dict[str, Any]:
            if stream:
                (*_, last) = model.stream(state["messages"])
                assert last is not None
                return {"messages": [("ai", "streamed")]}
            return {"messages": [model.invoke(state["messages"])]}

        def directly(_state: Any) -> dict[str, Any]:
            return {"messages": [("ai", ask(options, "stream" if stream else "create"))]}

        builder = StateGraph(MessagesState)
        builder.add_node("through_langchain", through_langchain)
        builder.add_node("directly", directly)
        builder.add_edge(START, "through_langchain")
        builder.add_edge("through_langchain", "directly")
        langgraph = LangGraphInstrumentor()
        langgraph.instrument(tracer_provider=recorded.provider)
        try:
            builder.compile().invoke({"messages": [("user", "Hello")]})
        finally:
            langgraph.uninstrument()

        recorded.check_shape()
        spans = recorded.named("chat")
        frameworks = [span.attributes["mast.framework"] for span in spans]
        assert frameworks == ["langgraph", "anthropic"]
        assert spans[1].attributes["gen_ai.agent.name"] == "directly"
