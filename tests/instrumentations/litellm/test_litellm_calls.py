"""Calls of LiteLLM: each gives one chat span, whatever client or protocol it takes."""

from __future__ import annotations

import gc
from typing import Any

import pytest

litellm = pytest.importorskip("litellm", reason="needs LiteLLM")

from litellm_ways import IS_OLD, ROUTES, asking, atell, tell
from recorded_calls import ANSWER, a_run, answers, chat, shown

pytestmark = [pytest.mark.framework("litellm"), pytest.mark.usefixtures("clients")]

WRITTEN = 0 if IS_OLD else 20
"""Tokens written to a cache that LiteLLM counts as input."""


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

    async def test_tokens_and_costs(self, recorded, routes, stream, asynchronous):
        """Tokens are those of the provider; LiteLLM's estimates for others' streams are not recorded."""
        with a_run(recorded):
            for route, text in (("anthropic", "use the cache"), ("openai", "Hello")):
                way = f"{route} stream" if stream else route
                if asynchronous:
                    await atell(routes, way, text)
                else:
                    tell(routes, way, text)

        native, through_client = [span.attributes for span in recorded.named("chat")]
        assert native["gen_ai.usage.input_tokens"] == 107 + WRITTEN
        assert native["gen_ai.usage.cache_read.input_tokens"] == 100
        assert native["gen_ai.usage.cache_write.input_tokens"] == 20
        assert native["gen_ai.usage.output_tokens"] > 1
        assert ("gen_ai.usage.input_tokens" in through_client) is not stream
        assert ("mast.usage.cost_usd" in through_client) is not stream
        if not IS_OLD:  # than the model, whose price it does not know
            assert 0 < native["mast.usage.cost_usd"] < 0.01


class TestStreams:
    """The program keeps LiteLLM's own objects."""

    def test_types_and_pieces_are_litellms(self, recorded, route):
        plain = litellm.completion(**route, messages=asking(), stream=True)
        expected = [chunk.choices[0].delta.content for chunk in plain]
        recorded.exporter.clear()
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
            asked = {"messages": asking(), "fallbacks": [routes["anthropic"]], "num_retries": 1}
            result = litellm.completion(**failing, **asked)

        assert result.choices[0].message.content == ANSWER
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
