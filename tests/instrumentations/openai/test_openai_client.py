"""Calls of the OpenAI client: each gives one chat span, if nobody above has made it."""

from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import openai
import pytest
from openai_ways import messages, tell
from recorded_calls import ANSWER, a_run, answers, chat, shown, under_langgraph

from mast_trace.spans import carried, current_run

pytestmark = pytest.mark.framework("openai")

ASKED = messages()
RUNS = 60


class TestRawResponses:
    """Answers that the program parses, or reads, itself."""

    def test_raw_responses(self, recorded, options):
        """`with_raw_response`, which other libraries use for the headers."""
        client = openai.OpenAI(**options)
        with a_run(recorded):
            raw = client.chat.completions.with_raw_response.create(model="scripted", messages=ASKED)
            parsed = raw.parse()

        assert raw.headers["content-type"] == "application/json"
        assert parsed.choices[0].message.content == ANSWER
        assert raw.parse() is parsed
        assert answers(recorded) == [ANSWER]

    def test_streamed_raw_responses_are_left_to_the_program(self, recorded, options):
        """The program reads the body of a streamed raw response: the call is recorded, without the answer."""
        client = openai.OpenAI(**options)
        with a_run(recorded):
            streaming = client.chat.completions.with_streaming_response
            with streaming.create(model="scripted", messages=ASKED) as raw:
                body = b"".join(raw.iter_bytes())

        assert ANSWER in body.decode()
        assert shown(recorded)[1] == ("user", "Hello")


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
        recorded.exporter.clear()
        with a_run(recorded):
            stream = self.stream(client)
            assert isinstance(stream, openai.Stream)
            assert stream.response.status_code == 200
            chunks = [chunk.choices for chunk in stream]

        assert chunks == plain
        assert answers(recorded) == [ANSWER]
        assert chat(recorded)["gen_ai.usage.output_tokens"] > 0
        assert chat(recorded)["gen_ai.response.finish_reasons"] == ("stop",)

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

        assert answers(recorded) == [ANSWER[:16]]
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
        assert answers(recorded) == [ANSWER]

    def test_a_raw_stream(self, recorded, options):
        """`with_raw_response` of a stream: parsing it gives the stream that is recorded."""
        client = openai.OpenAI(**options)
        with a_run(recorded):
            raw = client.chat.completions.with_raw_response.create(
                model="scripted", messages=ASKED, stream=True
            )
            list(raw.parse())

        assert answers(recorded) == [ANSWER]

    async def test_leaving_an_async_stream_early(self, recorded, options):
        """`async with` closes it."""
        async with openai.AsyncOpenAI(**options) as client:
            with a_run(recorded):
                async with await self.stream(client) as stream:
                    assert isinstance(stream, openai.AsyncStream)
                    await anext(stream)
                    await anext(stream)

        assert answers(recorded) == [ANSWER[:16]]


@pytest.mark.parametrize(("text", "chats"), [("Hello", 1), ("stream", 2)])
def test_each_call_under_langgraph_gives_one_span(recorded, options, text, chats):
    """LangChain's calls are its own; what goes around LangChain is recorded here."""
    pytest.importorskip("langgraph.graph", reason="needs LangGraph")
    models = pytest.importorskip("langchain_openai", reason="needs langchain-openai")
    model = models.ChatOpenAI(model="scripted", **options)
    found = under_langgraph(recorded, model, lambda: tell(options, "chat").text, text)
    assert found == [("langgraph", "through_langchain")] * chats + [("openai", "directly")]


def test_runs_that_share_a_client_and_a_pool_stay_apart(recorded, options):
    """A client and a pool that live longer than the runs; each call is in the run that has asked for it."""
    carried.carry_runs()
    client = openai.OpenAI(**options)

    def ask(number: int) -> None:
        client.chat.completions.create(model="scripted", messages=messages(f"Hello {number}"))

    with ThreadPoolExecutor(4) as pool, ThreadPoolExecutor(8) as requests:

        def request(number: int) -> None:
            with recorded.instrumentor.telemetry.run(f"run{number}").attached():
                asked = [pool.submit(ask, number), pool.submit(ask, number)]
                list(pool.map(ask, [number]))
                [each.result() for each in asked]
                current_run().root.end()

        list(requests.map(request, range(RUNS)))
        pool.submit(ask, RUNS).result()
    carried.carry_no_runs()
    found = {}
    for run in recorded.trajectories():
        calls = [i for i in run.invocations if i.kind == "model"]
        found[run.name] = {(len(calls), run.seen_by(call)[-1].content) for call in calls}
    expected = {f"run{n}": {(3, f"Hello {n}")} for n in range(RUNS)}
    assert {name: found.pop(name, None) for name in expected} == expected
    assert [*found.values()] == [{(1, f"Hello {RUNS}")}]
