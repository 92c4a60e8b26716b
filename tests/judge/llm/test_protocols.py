"""Models behind Responses and Messages read runs as those behind Chat Completions do."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any

import httpx
import openai
import pytest
from judge.builders import RunBuilder
from judge.llm.scripted_judge import GOOD, JudgeScript, config_for, run_of, trip
from scripted_llm import Call, Reply, ScriptedLLM
from scripted_protocols.anthropic_messages import AnthropicMessages
from scripted_protocols.server import ScriptedAnswer, ScriptedProvider

from mast_trace.exceptions import EndpointUnavailable
from mast_trace_judge.config import JudgeConfig
from mast_trace_judge.judge import Judge
from mast_trace_judge.llm.answers import Correction
from mast_trace_judge.llm.endpoint import UNKNOWN, ModelEndpoint
from mast_trace_judge.llm.protocols import client_options, protocol_of
from mast_trace_judge.llm.retry import AdaptiveLimit, Retry
from mast_trace_judge.store.ledger import MemoryLedger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mast_trace.trajectory import Trajectory
    from mast_trace_judge.verdict import Verdict

PROTOCOLS = ("responses", "messages")
TOKENS = 20_000
"""The length of a prompt, as the server reports it."""


class Messages(AnthropicMessages):
    """The provider, whose answers may be given whole."""

    @staticmethod
    def whole(path: str, request: dict[str, Any], answer: ScriptedAnswer, number: int) -> Any:
        """The given body, or a message."""
        if answer.body is not None:
            return json.loads(answer.body)
        return AnthropicMessages.whole(path, request, answer, number)


@contextlib.contextmanager
def serving(protocol: str, script: Any) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Serve a script; yield the address of the endpoint and what it is asked."""
    if protocol == "responses":
        with ScriptedLLM(script) as server:
            yield f"{server.url}/responses", server.requests
    else:
        with ScriptedProvider(Messages(), script) as provider:
            yield f"{provider.url}/v1/messages/", provider.requests


def called(script: Callable[[dict[str, Any]], Any]) -> Callable[[dict[str, Any]], Any]:
    """Answer by the tool that the request demands, as Anthropic's models do."""

    def answer(request: dict[str, Any]) -> Any:
        reply = script(request)
        if "max_tokens" not in request or not isinstance(reply, str):
            return reply
        if "tool_choice" not in request:
            return ScriptedAnswer(reply, stored=TOKENS)
        name = request["tool_choice"]["name"]
        assert [tool["name"] for tool in request["tools"]] == [name]
        calls = (Call(name, json.loads(reply)),)
        return ScriptedAnswer("Let me see.", calls, cached=5, stored=TOKENS)

    return answer


async def judged(
    protocol: str, script: Any, run: Trajectory | None = None, **settings: Any
) -> tuple[Verdict, list[Any], Any]:
    ledger, run = MemoryLedger(), run or trip(outcome="failure")
    with serving(protocol, called(script)) as (address, requests), ScriptedLLM(script) as unused:
        judge = Judge(config_for(unused, judge_base_url=address, **settings), ledger=ledger)
        verdict = await judge.judge(run_of(run), run)
        await judge.aclose()
        assert unused.requests == []
    return verdict, requests, ledger


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_model_reads_a_run(protocol: str) -> None:
    verdict, (request,), ledger = await judged(
        protocol, JudgeScript(), judge_reasoning_effort="low", judge_max_output_tokens=5000
    )
    assert (verdict.method, verdict.model, ledger.calls[0].status) == ("fused", "scripted", "ok")
    assert verdict.input_tokens > 0 < verdict.output_tokens
    if protocol == "responses":
        assert (request["store"], request["reasoning"]) == (False, {"effort": "low"})
        assert request["max_output_tokens"] == 5000
        assert (request["text"]["format"]["type"], request["text"]["format"]["strict"]) == (
            "json_schema",
            True,
        )
    else:
        assert {each["role"] for each in request["messages"]} == {"user"}
        assert request["system"]
        assert (request["max_tokens"], request["output_config"]) == (5000, {"effort": "low"})


@pytest.mark.parametrize(
    ("protocol", "refused", "said"),
    [
        ("responses", "text", "text.format is not supported"),
        ("responses", "temperature", "Unsupported parameter: 'temperature'"),
        ("responses", "reasoning", "Unsupported parameter: 'reasoning.effort'"),
        (
            "messages",
            "tool_choice",
            "Thinking may not be enabled when tool_choice forces tool use.",
        ),
        ("messages", "temperature", "temperature: is deprecated for this model"),
        ("messages", "output_config", "output_config: Extra inputs are not permitted"),
    ],
)
async def test_what_the_server_does_not_take_is_left_out(
    protocol: str, refused: str, said: str
) -> None:
    script = JudgeScript()

    def picky(request: dict[str, Any]) -> Any:
        return Reply(status=400, text=said) if refused in request else script(request)

    verdict, requests, _ = await judged(protocol, picky, judge_reasoning_effort="low")
    assert verdict.method == "fused"
    assert refused not in requests[-1]


@pytest.mark.parametrize(
    ("protocol", "said"),
    [
        ("responses", "Your input exceeds the context window of this model."),
        ("messages", "prompt is too long: 210000 tokens > 200000 maximum"),
    ],
)
async def test_a_prompt_that_is_too_long_is_shortened(protocol: str, said: str) -> None:
    script = JudgeScript()

    def small(request: dict[str, Any]) -> Any:
        return (
            Reply(status=400, text=said) if len(json.dumps(request)) > 28_000 else script(request)
        )

    run = RunBuilder("Count.", outcome="failure")
    for number in range(60):
        # A passage that comes again is shown once.
        counted = " and ".join(str(number * 1000 + each) for each in range(50))
        run.says("counter", counted, to="boss")
    verdict, requests, _ = await judged(protocol, small, run.build())
    assert (verdict.method, len(requests) > 1) == ("fused", True)


async def test_a_failed_answer_may_say_that_the_prompt_is_too_long() -> None:
    script = JudgeScript()
    failed = {
        "status": "failed",
        "error": {"code": "context_length_exceeded", "message": "Shorten it, please."},
        "output": [],
    }

    def small(request: dict[str, Any]) -> Any:
        return (
            Reply(body=json.dumps(failed)) if len(json.dumps(request)) > 28_000 else script(request)
        )

    run = RunBuilder("Count.", outcome="failure")
    for number in range(60):
        counted = " and ".join(str(number * 1000 + each) for each in range(50))
        run.says("counter", counted, to="boss")
    verdict, requests, _ = await judged("responses", small, run.build())
    assert (verdict.method, len(requests) > 1) == ("fused", True)


def ended(protocol: str, reason: str) -> Reply:
    """An answer that was broken off, as the API says it."""
    cut = json.dumps(GOOD["read"])[:40]
    if protocol == "responses":
        content = [{"type": "output_text", "text": cut}]
        body: dict[str, Any] = {
            "status": "incomplete",
            "incomplete_details": {"reason": reason},
            "output": [{"type": "reasoning"}, {"type": "message", "content": content}],
            "usage": {"input_tokens": TOKENS},
        }
    else:
        body = {"stop_reason": reason, "content": [{"type": "text", "text": cut}]}
        body["usage"] = {"input_tokens": TOKENS}
    return Reply(body=json.dumps(body))


@pytest.mark.parametrize(
    ("protocol", "reason", "asked", "said"),
    [
        ("responses", "max_output_tokens", 2, "limit of output tokens"),
        ("responses", "content_filter", 1, "content filter"),
        ("messages", "max_tokens", 2, "limit of output tokens"),
        ("messages", "refusal", 1, "content filter"),
    ],
)
async def test_an_answer_that_was_broken_off_is_told(
    protocol: str, reason: str, asked: int, said: str
) -> None:
    verdict, requests, _ = await judged(protocol, lambda _: ended(protocol, reason))
    assert (verdict.method, len(requests) >= asked) == ("local", True)
    assert said in verdict.status_reason


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("body", ["[]", "{}", '{"output": 3, "content": [7]}', '"no object"'])
async def test_an_answer_of_another_form_leaves_the_local_verdict(protocol: str, body: str) -> None:
    verdict, _, _ = await judged(protocol, lambda _: Reply(body=body), judge_attempts=1)
    assert (verdict.method, verdict.status) == ("local", "ok")
    assert "without the model" in verdict.status_reason


@pytest.mark.parametrize(
    ("address", "to", "sent"),
    [
        ("https://api.anthropic.com/v1/messages", "/v1/messages", {"x-api-key": "secret"}),
        (
            "https://api.openai.com/v1/responses/",
            "/v1/responses",
            {"authorization": "Bearer secret"},
        ),
    ],
)
async def test_the_key_goes_as_the_protocol_wants_it(address: str, to: str, sent: Any) -> None:
    config = JudgeConfig(judge_model="m", judge_base_url=address, judge_api_key="secret")
    asked: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(200, json={})

    http = httpx.AsyncClient(transport=httpx.MockTransport(answer))
    async with openai.AsyncOpenAI(**{**client_options(config), "http_client": http}) as client:
        endpoint = ModelEndpoint(
            client,
            "m",
            limit=AdaptiveLimit(1),
            retry=Retry(attempts=1),
            protocol=protocol_of(address),
        )
        assert await endpoint.window() == UNKNOWN
        with pytest.raises(EndpointUnavailable):
            await endpoint.complete([{"role": "user", "content": "Well?"}], Correction)
    assert [request.url.path for request in asked] == ["/v1/models", to]
    for request in asked:
        keys = {name: request.headers.get(name) for name in ("x-api-key", "authorization")}
        assert {name: key for name, key in keys.items() if key} == sent
