"""Calls of LiteLLM: each gives one chat span, whatever client or protocol it takes."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

import pytest

litellm = pytest.importorskip("litellm", reason="needs LiteLLM")

from opentelemetry import context as otel_context
from recorded_calls import ANSWER, a_run, answers, asked_for, chat, check_apart, shown, targets

from mast_trace.spans import with_chat
from mast_trace_instrumentations.anthropic import AnthropicInstrumentor
from mast_trace_instrumentations.litellm import LiteLLMInstrumentor
from mast_trace_instrumentations.openai import OpenAIInstrumentor

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.framework("litellm")

ROUTES = ["openai", "anthropic"]
IS_OLD = not hasattr(litellm.CustomStreamWrapper, "close")
WRITTEN = 0 if IS_OLD else 20
"""Tokens written to a cache that LiteLLM counts as input."""


@pytest.fixture(autouse=True)
def clients(request: pytest.FixtureRequest) -> Iterator[None]:
    """Record the clients that LiteLLM may go through as well: they have to be silent."""
    provider = request.getfixturevalue("recorded").provider
    below = [OpenAIInstrumentor(), AnthropicInstrumentor()]
    for each in below:
        each.instrument(tracer_provider=provider)
    yield
    for each in below:
        each.uninstrument()


def asking(text: str = "Hello") -> list[dict[str, Any]]:
    return [{"role": "system", "content": "Be brief."}, {"role": "user", "content": text}]


def ask(route: dict[str, Any], text: str = "Hello", *, stream: bool = False, **more: Any) -> str:
    """Make a call; return the text of the answer as the program sees it."""
    result = litellm.completion(**route, messages=asking(text), stream=stream, **more)
    if stream:
        return "".join(chunk.choices[0].delta.content or "" for chunk in result if chunk.choices)
    return str(result.choices[0].message.content)


async def aask(route: dict[str, Any], text: str = "Hello", *, stream: bool = False) -> str:
    """Make the call asynchronously."""
    result = await litellm.acompletion(**route, messages=asking(text), stream=stream)
    if stream:
        pieces = [chunk.choices[0].delta.content or "" async for chunk in result if chunk.choices]
        return "".join(pieces)
    return str(result.choices[0].message.content)


@pytest.fixture(params=ROUTES)
def name(request: pytest.FixtureRequest) -> str:
    """A way to a model: through OpenAI's client, or LiteLLM's own."""
    return str(request.param)


@pytest.fixture
def route(routes: dict[str, dict[str, Any]], name: str) -> dict[str, Any]:
    """The arguments that lead there."""
    return routes[name]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
class TestChat:
    """`completion` and `acompletion`."""

    @staticmethod
    async def ask(route: Any, stream: bool, asynchronous: bool, *more: Any) -> str:
        if asynchronous:
            return await aask(route, *more, stream=stream)
        return ask(route, *more, stream=stream)

    async def test_request_and_answer_are_on_the_span(
        self, recorded, route, name, stream, asynchronous
    ):
        with a_run(recorded):
            answer_text = await self.ask(route, stream, asynchronous)

        assert answer_text == ANSWER
        assert answers(recorded) == [ANSWER]
        assert shown(recorded) == [("system", "Be brief."), ("user", "Hello")]
        about = chat(recorded)
        assert about["mast.framework"] == "litellm"
        assert about["gen_ai.request.model"] == route["model"]
        assert about["gen_ai.response.model"].startswith(route["model"].split("/")[1])
        assert about["gen_ai.provider.name"] == name
        assert about["gen_ai.response.finish_reasons"] == ("stop",)
        recorded.check_shape()

    async def test_tokens_and_costs(self, recorded, routes, stream, asynchronous):
        """Tokens are those of the provider; LiteLLM's estimates for others' streams are not recorded."""
        with a_run(recorded):
            await self.ask(routes["anthropic"], stream, asynchronous, "use the cache")
            await self.ask(routes["openai"], stream, asynchronous)

        native, through_client = [span.attributes for span in recorded.named("chat")]
        assert native["gen_ai.usage.input_tokens"] == 107 + WRITTEN
        assert native["gen_ai.usage.cache_read.input_tokens"] == 100
        assert native["gen_ai.usage.cache_write.input_tokens"] == 20
        assert native["gen_ai.usage.output_tokens"] > 1
        assert ("gen_ai.usage.input_tokens" in through_client) is not stream
        assert ("mast.usage.cost_usd" in through_client) is not stream
        if not IS_OLD:  # than the model, whose price it does not know
            assert 0 < native["mast.usage.cost_usd"] < 0.01

    async def test_calls_of_tools(self, recorded, route, stream, asynchronous):
        with a_run(recorded):
            assert await self.ask(route, stream, asynchronous, "Use a tool") == "Let me see."

        assert asked_for(recorded) == [{"name": "look_up", "arguments": {"key": "x"}}]

    async def test_errors_pass_through_and_are_on_the_span(
        self, recorded, route, stream, asynchronous
    ):
        with a_run(recorded), pytest.raises(litellm.BadRequestError, match="scripted failure"):
            await self.ask(route, stream, asynchronous, "refuse")

        assert chat(recorded)["error.type"] == "BadRequestError"

    async def test_a_call_that_has_its_span_gets_no_second_one(
        self, recorded, route, stream, asynchronous
    ):
        with a_run(recorded):
            token = otel_context.attach(with_chat(otel_context.get_current()))
            assert await self.ask(route, stream, asynchronous) == ANSWER
            otel_context.detach(token)

        assert recorded.named("chat") == []

    async def test_outside_of_runs_nothing_is_recorded(self, recorded, route, stream, asynchronous):
        assert await self.ask(route, stream, asynchronous) == ANSWER
        assert recorded.all == []


class TestStreams:
    """The program keeps LiteLLM's own objects."""

    def test_types_and_pieces_are_litellms(self, recorded, route):
        plain = litellm.completion(**route, messages=asking(), stream=True)
        expected = [chunk.choices[0].delta.content for chunk in plain]
        with a_run(recorded):
            ours = litellm.completion(**route, messages=asking(), stream=True)
            assert type(ours) is type(plain)
            assert [chunk.choices[0].delta.content for chunk in ours] == expected
        assert answers(recorded) == [ANSWER]

    def test_usage_that_the_program_asks_for(self, recorded, routes):
        with a_run(recorded):
            *_, last = litellm.completion(
                **routes["openai"],
                messages=asking(),
                stream=True,
                stream_options={"include_usage": True},
            )

        about = chat(recorded)
        assert about["gen_ai.usage.input_tokens"] == last.usage.prompt_tokens
        assert about["gen_ai.usage.output_tokens"] == last.usage.completion_tokens

    def test_a_connection_that_is_reset(self, recorded, routes):
        """The part before the error is kept, beside the error."""
        with a_run(recorded), pytest.raises(Exception) as raised:
            ask(routes["anthropic"], "reset", stream=True)

        assert chat(recorded)["error.type"] == type(raised.value).__qualname__
        assert answers(recorded)[0] in {ANSWER[:16], ANSWER[:32]}

    @pytest.mark.skipif(IS_OLD, reason="streams cannot be closed")
    def test_closing_early_ends_the_span(self, recorded, route):
        with a_run(recorded):
            stream = litellm.completion(**route, messages=asking(), stream=True)
            next(stream)
            next(stream)
            stream.close()
            (span,) = recorded.named("chat")
            assert span.status.is_ok

        (answer_text,) = answers(recorded)
        assert ANSWER.startswith(answer_text)
        assert 0 < len(answer_text) < len(ANSWER)

    @pytest.mark.skipif(IS_OLD, reason="LiteLLM keeps the stream")
    def test_a_stream_that_is_never_read(self, recorded, route):
        with a_run(recorded):
            litellm.completion(**route, messages=asking(), stream=True)
            gc.collect()
            assert "gen_ai.output.messages" not in chat(recorded)


class TestOtherInterfaces:
    """Texts, and Responses."""

    async def test_texts(self, recorded, routes):
        with a_run(recorded):
            whole = litellm.text_completion(**routes["anthropic"], prompt="Hello")
            assert whole.choices[0].text == ANSWER
            assert (await litellm.atext_completion(**routes["anthropic"], prompt="Hello")).choices[
                0
            ].text == ANSWER

        assert answers(recorded) == [ANSWER, ANSWER]
        spans = recorded.named("chat")
        assert [s.attributes["gen_ai.usage.input_tokens"] for s in spans] == [7, 7]

    @pytest.mark.skipif(IS_OLD, reason="LiteLLM asks for fields that the scripted server lacks")
    @pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
    def test_responses(self, recorded, route, stream):
        """Models of OpenAI itself, and those of other providers whose names LiteLLM does not know."""
        with a_run(recorded):
            result = litellm.responses(
                **route, instructions="Be brief.", input="Hello", stream=stream
            )
            events = list(result) if stream else []

        assert bool(events) is stream
        assert answers(recorded) == [ANSWER]
        assert shown(recorded) == [("system", "Be brief."), ("user", "Hello")]

    @pytest.mark.skipif(IS_OLD, reason="LiteLLM asks for fields that the scripted server lacks")
    async def test_responses_asynchronously(self, recorded, route):
        with a_run(recorded):
            await litellm.aresponses(**route, input="Hello")
            async for _event in await litellm.aresponses(**route, input="Hello", stream=True):
                pass

        assert answers(recorded) == [ANSWER, ANSWER]


class TestSeveralAttempts:
    """Calls that LiteLLM retries."""

    def test_retries_and_fallbacks_inside_of_a_call_are_part_of_it(self, recorded, routes):
        failing = {**routes["openai"], "api_base": "http://127.0.0.1:1/v1"}
        with a_run(recorded):
            answer_text = ask(failing, fallbacks=[routes["anthropic"]], num_retries=1)

        assert answer_text == ANSWER
        assert answers(recorded) == [ANSWER]
        assert chat(recorded)["gen_ai.response.model"].startswith("claude")

    @pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
    async def test_a_routers_attempts_are_calls_of_their_own(self, recorded, routes, asynchronous):
        """A call that fails, and the one that replaces it."""
        broken = {**routes["openai"], "api_base": "http://127.0.0.1:1/v1"}
        router = litellm.Router(
            model_list=[
                {"model_name": "first", "litellm_params": broken},
                {"model_name": "second", "litellm_params": routes["anthropic"]},
            ],
            fallbacks=[{"first": ["second"]}],
            num_retries=0,
        )
        with a_run(recorded):
            if asynchronous:
                result = await router.acompletion(model="first", messages=asking())
            else:
                result = router.completion(model="first", messages=asking())

        assert result.choices[0].message.content == ANSWER
        failed, answered = recorded.named("chat")
        assert not failed.status.is_ok
        assert answered.status.is_ok
        recorded.check_shape()

    @pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
    async def test_a_routers_stream(self, recorded, routes, asynchronous):
        router = litellm.Router(
            model_list=[{"model_name": "only", "litellm_params": routes["anthropic"]}]
        )
        asked = {"model": "only", "messages": asking(), "stream": True}
        with a_run(recorded):
            if asynchronous:
                async for _chunk in await router.acompletion(**asked):
                    pass
            else:
                list(router.completion(**asked))

        assert answers(recorded) == [ANSWER]


class TestManyAtOnce:
    """Threads and tasks."""

    def test_fifty_threads(self, recorded, routes):
        with a_run(recorded), ThreadPoolExecutor(50) as pool:
            waiting = [
                pool.submit(
                    copy_context().run, ask, routes[ROUTES[n % 2]], f"Hello {n}", stream=n % 3 == 0
                )
                for n in range(50)
            ]
            assert {each.result() for each in waiting} == {ANSWER}

        check_apart(recorded, 50)

    async def test_twenty_tasks(self, recorded, routes):
        with a_run(recorded):
            await asyncio.gather(
                *(aask(routes[ROUTES[n % 2]], stream=n % 3 == 0) for n in range(20))
            )

        assert answers(recorded) == [ANSWER] * 20


class TestInstrumenting:
    """On and off."""

    def test_before_the_program_imports_it(self):
        """Nothing is imported by us, folders without modules of their own included."""
        program = """
import sys
from mast_trace_instrumentations.litellm import LiteLLMInstrumentor
instrumentor = LiteLLMInstrumentor()
state = instrumentor.instrument()
assert "litellm" not in sys.modules and state.active and state.waiting
import litellm
assert not state.missing and len(state.patched) >= 8, state
"""
        subprocess.run([sys.executable, "-c", program], check=True)

    def test_uninstrumenting_puts_back_the_very_objects(self, recorded):
        recorded.instrumentor.uninstrument()
        before = targets(LiteLLMInstrumentor)
        instrumentor = LiteLLMInstrumentor()
        instrumentor.instrument()
        during = targets(LiteLLMInstrumentor)
        assert instrumentor.state.missing == []
        instrumentor.uninstrument()

        after = targets(LiteLLMInstrumentor)
        assert all(after[path] is before[path] for path in before)
        assert sum(during[path] is not before[path] for path in before) >= 8
