"""Calls of the OpenAI client: each gives one chat span, if nobody above has made it."""

from __future__ import annotations

import gc
import json
from typing import TYPE_CHECKING, Any

import openai
import pytest
from recorded_calls import ANSWER, a_run

if TYPE_CHECKING:
    from recorded_spans import RecordedSpans

pytestmark = pytest.mark.framework("openai")

ASKED = [
    {"role": "system", "content": "Be brief."},
    {
        "role": "user",
        "content": [{"type": "text", "text": "Hello "}, {"type": "text", "text": "you"}],
    },
]
needs_responses = pytest.mark.skipif(
    not hasattr(openai.OpenAI, "responses") and "responses" not in dir(openai.OpenAI(api_key="x")),
    reason="this version has no Responses",
)


def chat(recorded: RecordedSpans) -> Any:
    (span,) = recorded.named("chat")
    return span.attributes


def answer(recorded: RecordedSpans) -> str:
    (call,) = [i for i in recorded.trajectory().invocations if i.kind == "model"]
    return call.output_text


def shown(recorded: RecordedSpans) -> list[tuple[str, str]]:
    run = recorded.trajectory()
    (call,) = [i for i in run.invocations if i.kind == "model"]
    return [(m.role, m.content) for m in run.seen_by(call)]


class TestChatCompletions:
    """`client.chat.completions`."""

    def test_create(self, recorded, options):
        """Request, answer, usage and agent are on the span."""
        client = openai.OpenAI(**options)
        with a_run(recorded):
            result = client.chat.completions.create(model="scripted", messages=ASKED)

        assert result.choices[0].message.content == ANSWER
        assert shown(recorded) == [("system", "Be brief."), ("user", "Hello you")]
        assert answer(recorded) == ANSWER
        about = chat(recorded)
        assert about["gen_ai.agent.name"] == "worker"
        assert about["gen_ai.request.model"] == "scripted"
        assert about["gen_ai.provider.name"] == "openai"
        assert about["gen_ai.response.id"] == result.id
        assert about["gen_ai.response.finish_reasons"] == ("stop",)
        assert about["gen_ai.usage.input_tokens"] == result.usage.prompt_tokens
        assert about["gen_ai.usage.output_tokens"] == result.usage.completion_tokens
        recorded.check_shape()

    async def test_create_asynchronously(self, recorded, options):
        """The asynchronous client."""
        async with openai.AsyncOpenAI(**options) as client:
            with a_run(recorded):
                await client.chat.completions.create(model="scripted", messages=ASKED)

        assert answer(recorded) == ANSWER

    def test_calls_and_results_of_tools(self, recorded, options):
        """The model's request, and a history with a tool's result."""
        client = openai.OpenAI(**options)
        call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
        history = [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "content": "42"},
            {"role": "user", "content": "Use a tool"},
        ]
        with a_run(recorded):
            client.chat.completions.create(model="scripted", messages=history)

        run = recorded.trajectory()
        (model,) = [i for i in run.invocations if i.kind == "model"]
        seen = run.seen_by(model)
        assert [(m.role, m.content) for m in seen] == [
            ("assistant", ""),
            ("tool", "42"),
            ("user", "Use a tool"),
        ]
        assert seen[0].tool_calls[0].arguments == {"a": 1}
        (step,) = run.steps
        assert step.text == "Let me see."
        assert json.loads(step.arguments) == [{"name": "look_up", "arguments": {"key": "x"}}]

    def test_an_object_of_the_client_in_the_history_is_read(self, recorded, options):
        """Programs append the answer itself to their history."""
        client = openai.OpenAI(**options)
        with a_run(recorded):
            create = client.chat.completions.create
            asked = create(model="scripted", messages=[{"role": "user", "content": "Use a tool"}])
            choice = asked.choices[0].message
            told = {"role": "tool", "tool_call_id": "call_1", "content": "found"}
            create(model="scripted", messages=[choice, told])

        run = recorded.trajectory()
        second = [i for i in run.invocations if i.kind == "model"][1]
        first, result = run.seen_by(second)
        assert (first.role, first.content) == ("assistant", "Let me see.")
        assert first.tool_calls[0].name == "look_up"
        assert result.content == "found"

    def test_errors_pass_through_and_are_on_the_span(self, recorded, options):
        """The client's own exception."""
        client = openai.OpenAI(**options)
        with a_run(recorded), pytest.raises(openai.BadRequestError, match="scripted failure"):
            client.chat.completions.create(
                model="scripted", messages=[{"role": "user", "content": "fail"}]
            )

        assert chat(recorded)["error.type"] == "BadRequestError"

    def test_raw_responses(self, recorded, options):
        """`with_raw_response`, which other libraries use for the headers."""
        client = openai.OpenAI(**options)
        with a_run(recorded):
            raw = client.chat.completions.with_raw_response.create(model="scripted", messages=ASKED)
            parsed = raw.parse()

        assert raw.headers["content-type"] == "application/json"
        assert parsed.choices[0].message.content == ANSWER
        assert raw.parse() is parsed
        assert answer(recorded) == ANSWER

    def test_streamed_raw_responses_are_left_to_the_program(self, recorded, options):
        """The program reads the body of a streamed raw response: the call is recorded, without the answer."""
        client = openai.OpenAI(**options)
        with a_run(recorded):
            streaming = client.chat.completions.with_streaming_response
            with streaming.create(model="scripted", messages=ASKED) as raw:
                body = b"".join(raw.iter_bytes())

        assert ANSWER in body.decode()
        assert shown(recorded)[1] == ("user", "Hello you")


class TestStreams:
    """Answers in pieces."""

    def stream(self, client: Any, text: str = "Hello") -> Any:
        return client.chat.completions.create(
            model="scripted",
            messages=[{"role": "user", "content": text}],
            stream=True,
            stream_options={"include_usage": True},
        )

    def test_the_program_gets_the_clients_own_stream(self, recorded, options):
        """Same type, same chunks, same attributes; the answer and the usage are on the span."""
        client = openai.OpenAI(**options)
        plain = [chunk.choices for chunk in self.stream(client)]
        with a_run(recorded):
            stream = self.stream(client)
            assert isinstance(stream, openai.Stream)
            assert stream.response.status_code == 200
            chunks = [chunk.choices for chunk in stream]

        assert chunks == plain
        assert answer(recorded) == ANSWER
        assert chat(recorded)["gen_ai.usage.output_tokens"] > 0
        assert chat(recorded)["gen_ai.response.finish_reasons"] == ("stop",)

    def test_next_works_too(self, recorded, options):
        """Programs may take chunks one by one."""
        client = openai.OpenAI(**options)
        with a_run(recorded):
            stream = self.stream(client)
            next(stream)
            list(stream)

        assert answer(recorded) == ANSWER

    def test_a_tool_call_in_pieces(self, recorded, options):
        """Names and arguments come in different chunks."""
        client = openai.OpenAI(**options)
        with a_run(recorded):
            list(self.stream(client, "Use a tool"))

        (step,) = recorded.trajectory().steps
        assert json.loads(step.arguments) == [{"name": "look_up", "arguments": {"key": "x"}}]

    @pytest.mark.parametrize("leave", ["close", "with", "drop"])
    def test_leaving_early_ends_the_span(self, recorded, options, leave):
        """By closing, by leaving a block, by dropping the stream: what had come is kept."""
        client = openai.OpenAI(**options)
        with a_run(recorded):
            stream = self.stream(client)
            if leave == "with":
                with stream:
                    next(stream)
                    next(stream)
            else:
                next(stream)
                next(stream)
            if leave == "close":
                stream.close()
            del stream
            gc.collect()  # the client's streams refer to themselves

        assert answer(recorded) == ANSWER[:16]
        (span,) = recorded.named("chat")
        assert span.status.is_ok

    def test_the_helper_for_streams(self, recorded, options):
        """`client.chat.completions.stream`, where the client has it."""
        client = openai.OpenAI(**options)
        helper = getattr(client.chat.completions, "stream", None) or (
            client.beta.chat.completions.stream
        )
        with a_run(recorded), helper(model="scripted", messages=ASKED) as stream:
            final = stream.get_final_completion()

        assert final.choices[0].message.content == ANSWER
        assert answer(recorded) == ANSWER

    def test_a_raw_stream(self, recorded, options):
        """`with_raw_response` of a stream: parsing it gives the stream that is recorded."""
        client = openai.OpenAI(**options)
        with a_run(recorded):
            raw = client.chat.completions.with_raw_response.create(
                model="scripted", messages=ASKED, stream=True
            )
            list(raw.parse())

        assert answer(recorded) == ANSWER

    async def test_an_async_stream(self, recorded, options):
        """`async for` over the client's own object."""
        async with openai.AsyncOpenAI(**options) as client:
            with a_run(recorded):
                stream = await self.stream(client)
                assert isinstance(stream, openai.AsyncStream)
                async for _chunk in stream:
                    pass

        assert answer(recorded) == ANSWER

    async def test_leaving_an_async_stream_early(self, recorded, options):
        """`async with` closes it."""
        async with openai.AsyncOpenAI(**options) as client:
            with a_run(recorded):
                async with await self.stream(client) as stream:
                    await anext(stream)
                    await anext(stream)

        assert answer(recorded) == ANSWER[:16]


@needs_responses
class TestResponses:
    """`client.responses`."""

    def test_create(self, recorded, options):
        """Instructions, input, answer and usage."""
        client = openai.OpenAI(**options)
        with a_run(recorded):
            result = client.responses.create(
                model="scripted", instructions="Be brief.", input="Hello"
            )

        assert result.output_text == ANSWER
        assert shown(recorded) == [("system", "Be brief."), ("user", "Hello")]
        assert answer(recorded) == ANSWER
        assert chat(recorded)["gen_ai.usage.input_tokens"] == result.usage.input_tokens
        assert chat(recorded)["gen_ai.response.finish_reasons"] == ("stop",)

    def test_items(self, recorded, options):
        """A history of items: messages, calls and outputs of tools."""
        client = openai.OpenAI(**options)
        with a_run(recorded):
            client.responses.create(
                model="scripted",
                input=[
                    {"role": "user", "content": [{"type": "input_text", "text": "Hello"}]},
                    {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
                    {"type": "function_call_output", "call_id": "c", "output": "42"},
                    {"role": "user", "content": "Use a tool"},
                ],
            )

        assert shown(recorded) == [
            ("user", "Hello"),
            ("assistant", ""),
            ("tool", "42"),
            ("user", "Use a tool"),
        ]
        assert chat(recorded)["gen_ai.response.finish_reasons"] == ("tool_calls",)

    def test_stream(self, recorded, options):
        """The last event holds the whole response."""
        client = openai.OpenAI(**options)
        with a_run(recorded):
            for _event in client.responses.create(model="scripted", input="Hello", stream=True):
                pass

        assert answer(recorded) == ANSWER
        assert chat(recorded)["gen_ai.usage.output_tokens"] > 0

    async def test_async_stream(self, recorded, options):
        """Asynchronously."""
        async with openai.AsyncOpenAI(**options) as client:
            with a_run(recorded):
                stream = await client.responses.create(model="scripted", input="Hello", stream=True)
                async for _event in stream:
                    pass

        assert answer(recorded) == ANSWER

    async def test_create_asynchronously(self, recorded, options):
        """The asynchronous client."""
        async with openai.AsyncOpenAI(**options) as client:
            with a_run(recorded):
                await client.responses.create(model="scripted", input="Hello")

        assert answer(recorded) == ANSWER


class TestUnderLangGraph:
    """LangGraph and the client, both instrumented."""

    @pytest.fixture
    def graph_and_client(self, options: Any) -> Any:
        pytest.importorskip("langgraph.graph", reason="needs LangGraph")
        langchain_openai = pytest.importorskip("langchain_openai", reason="needs langchain-openai")
        from langgraph.graph import START, MessagesState, StateGraph

        model = langchain_openai.ChatOpenAI(model="scripted", **options)
        client = openai.OpenAI(**options)

        def through_langchain(state: Any) -> dict[str, Any]:
            if state["messages"][-1].content == "stream":
                list(model.stream(state["messages"]))
            return {"messages": [model.invoke(state["messages"])]}

        def directly(_state: Any) -> dict[str, Any]:
            result = client.chat.completions.create(model="scripted", messages=ASKED)
            return {"messages": [("ai", f"It says: {result.choices[0].message.content}")]}

        builder = StateGraph(MessagesState)
        builder.add_node("through_langchain", through_langchain)
        builder.add_node("directly", directly)
        builder.add_edge(START, "through_langchain")
        builder.add_edge("through_langchain", "directly")
        return builder.compile()

    @pytest.mark.parametrize(("text", "chats"), [("Hello", 2), ("stream", 3)])
    def test_each_call_gives_one_span(self, recorded, graph_and_client, text, chats):
        """LangChain's calls are its own; what goes around LangChain is recorded here."""
        from mast_trace_instrumentations.langgraph import LangGraphInstrumentor

        langgraph = LangGraphInstrumentor()
        langgraph.instrument(tracer_provider=recorded.provider)
        try:
            graph_and_client.invoke({"messages": [("user", text)]})
        finally:
            langgraph.uninstrument()

        recorded.check_shape()
        spans = recorded.named("chat")
        assert len(spans) == chats
        frameworks = [span.attributes["mast.framework"] for span in spans]
        assert frameworks == ["langgraph"] * (chats - 1) + ["openai"]
        assert [span.attributes["gen_ai.agent.name"] for span in spans] == [
            *["through_langchain"] * (chats - 1),
            "directly",
        ]
