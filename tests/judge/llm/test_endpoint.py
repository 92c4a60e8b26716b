"""Servers that are busy, broken, slow, or speak another dialect of the API."""

import asyncio
import json
import threading
import time

import httpx
import openai
import pytest
from judge.builders import RunBuilder
from judge.llm.scripted_judge import (
    GOOD,
    OPINION,
    JudgeScript,
    completion,
    config_for,
    judged,
    run_of,
    trip,
)
from scripted_llm import Reply, ScriptedLLM

from mast_trace.exceptions import EndpointUnavailable, JudgeError
from mast_trace_judge.judge import Judge
from mast_trace_judge.llm.answers import Correction
from mast_trace_judge.llm.endpoint import (
    UNKNOWN,
    Dialect,
    ModelEndpoint,
    PromptTooLong,
    _OutputTooLong,
    _Refused,
    _sorted,
)
from mast_trace_judge.llm.retry import AdaptiveLimit, Retry, Transient
from mast_trace_judge.store.ledger import MemoryLedger

BUSY = Reply(status=429, text="slow down", headers={"Retry-After": "0"})


class Dialects:
    """A server that knows only some of the API, in front of a script.

    Attributes:
        refused: number of refused requests.
    """

    def __init__(self, script, *, formats=("json_schema", "json_object"), unknown=(), status=400):
        self.script = script
        self.formats = formats
        self.unknown = unknown
        self.status = status
        self.refused = 0

    def __call__(self, request):
        for name in self.unknown:
            if name in request:
                return self._refuse(f"Unsupported parameter: '{name}' is not supported")
        wished = request.get("response_format", {}).get("type")
        if wished and wished not in self.formats:
            return self._refuse(f"response_format {wished} is not available for this model")
        return self.script(request)

    def _refuse(self, why):
        self.refused += 1
        return Reply(status=self.status, text=why)


@pytest.mark.parametrize(
    "reply",
    # Some gateways answer 200 with an error of their own in the body.
    [BUSY, Reply(body="{cut"), Reply(body=json.dumps({"error": {"message": "upstream"}}))],
)
async def test_passing_failures_are_retried(reply):
    script = JudgeScript(first=[reply, reply])
    result = await judged(script)
    assert (result.verdict.method, result.verdict.status_reason) == ("fused", OPINION)
    assert sum(call.retries for call in result.ledger.calls) == 2
    assert len(result.ledger.calls) == len(result.requests) - 2


@pytest.mark.parametrize(
    ("statuses", "said", "kind", "overloaded"),
    [
        ((408, 409, 425, 500, 502, 504), "later", Transient, False),
        ((429, 503, 529), "later", Transient, True),
        ((401, 403), "no", EndpointUnavailable, False),
        ((429, 400), "insufficient_quota", EndpointUnavailable, False),
        ((413,), "no", PromptTooLong, False),
        ((400, 422), "This is TOO LONG.", PromptTooLong, False),
        ((400,), "context_length_exceeded", PromptTooLong, False),
        ((400, 404, 405, 415, 422, 501), "no", _Refused, False),
        ((402, 451), "no", JudgeError, False),
    ],
)
def test_every_status_is_what_it_says(statuses, said, kind, overloaded):
    """A failure passes, or is the key's, the prompt's, the dialect's or the request's."""
    for status in statuses:
        response = httpx.Response(status, request=httpx.Request("POST", "http://x"))
        body = {"message": said, "code": said}
        found = _sorted(openai.APIStatusError(said, response=response, body=body))
        assert (type(found), getattr(found, "overloaded", False)) == (kind, overloaded), status
        assert said in str(found)


async def test_a_stalled_answer_is_given_up_and_asked_again():
    script = JudgeScript(first=[Reply(text="too late", delay=3.0)])
    result = await judged(script, judge_timeout_seconds=0.5)
    assert (result.verdict.method, result.ledger.calls[0].retries) == ("fused", 1)


LATE = Reply(text="too late", delay=1.5)


@pytest.mark.parametrize(
    ("read", "settings", "most", "said"),
    [
        (LATE, {"judge_timeout_seconds": 0.2, "judge_attempts": 2}, 2, "no answer within 0.4 s"),
        (LATE, {"judge_run_timeout_seconds": 0.3}, 1, "longer than 0.3 s"),
        (Reply(status=429, headers={"Retry-After": "3600"}), {}, 1, "HTTP 429"),
        (Reply(status=400, text="this text breaks our policy"), {}, 3, "breaks our policy"),
        (Reply(body=" " * (17 << 20)), {"judge_attempts": 2}, 2, "more than 16,777,216 bytes"),
    ],
    ids=["stalls always", "longer than a run may take", "asks for an hour", "refuses", "endless"],
)
async def test_a_server_that_fails_leaves_the_local_verdict(read, settings, most, said):
    script = JudgeScript({**GOOD, "read": read})
    verdict = (await judged(script, trip(outcome="failure"), **settings)).verdict
    assert (verdict.status, verdict.method, verdict.outcome) == ("ok", "local", "failure")
    assert said in verdict.status_reason
    assert 1 <= len(script.asked) <= most


@pytest.mark.parametrize(
    ("formats", "status", "expected"),
    [
        (("json_schema", "json_object"), 400, "json_schema"),
        (("json_object",), 400, "json_object"),
        (("json_object",), 422, "json_object"),
        ((), 400, "text"),
        ((), 404, "text"),
    ],
)
async def test_falls_back_to_the_format_that_the_server_takes(formats, status, expected):
    server = Dialects(JudgeScript(), formats=formats, status=status)
    result = await judged(server)
    assert (result.verdict.method, result.verdict.status_reason) == ("fused", OPINION)
    assert server.refused == ("json_schema", "json_object", "text").index(expected)
    answered = result.requests[server.refused :]
    used = {request.get("response_format", {"type": "text"})["type"] for request in answered}
    assert used == {expected}
    if expected != "json_schema":
        asked = answered[0]["messages"][-1]["content"]
        fence = " in a ```json fence" if expected == "text" else ""
        assert f"Answer with one JSON object{fence} of this JSON schema" in asked


async def test_leaves_out_parameters_that_the_model_does_not_take():
    server = Dialects(JudgeScript(), unknown=("temperature", "max_completion_tokens"))
    result = await judged(server)
    assert result.verdict.method == "fused"
    assert server.refused == 2
    sent = result.requests[-1]
    assert "temperature" not in sent
    assert (sent["max_tokens"], sent["response_format"]["type"]) == (8192, "json_schema")


def test_every_dialect_is_tried_before_giving_up():
    dialect, seen = Dialect(), []
    while dialect is not None:
        seen.append(dialect)
        dialect = dialect.without("no")
    assert [d.response_format for d in seen] == ["json_schema", "json_object", "text"]


@pytest.mark.parametrize("status", [401, 403, 404])
async def test_an_endpoint_that_cannot_work_is_not_asked_for_every_run(status):
    script = JudgeScript(dict.fromkeys(GOOD, Reply(status=status, text="no such model or key")))
    ledger = MemoryLedger()
    with ScriptedLLM(script) as server:
        judge = Judge(config_for(server), ledger=ledger)
        for number in range(5):
            run = trip(outcome="failure")
            verdict = await judge.judge(run_of(run, f"{number:032x}"), run)
            assert "no such model or key" in verdict.status_reason
            assert verdict.outcome == "failure"
        await judge.aclose()
    assert len(script.asked) <= 3
    assert len(ledger.calls) == 1


def test_a_dead_endpoint_is_asked_more_and_more_seldom(monkeypatch):
    """Each row of failures makes the next pause longer; a success ends that."""
    now = 1000.0
    monkeypatch.setattr("mast_trace_judge.llm.endpoint.time.monotonic", lambda: now)
    endpoint = ModelEndpoint(None, "m", limit=AdaptiveLimit(1))
    pauses = []
    for _ in range(7):
        endpoint._away("gone")
        endpoint._away("gone")
        with pytest.raises(EndpointUnavailable, match="gone"):
            endpoint.check()
        pauses.append(endpoint._away_until - now)
        now = endpoint._away_until
        endpoint.check()
    assert pauses == [30, 60, 120, 240, 480, 600, 600]


async def test_a_prompt_that_is_too_long_is_shortened():
    script = JudgeScript()

    def small(request):
        if len(request["messages"][1]["content"]) > 20_000:
            return Reply(status=400, text="maximum context length is 5000 tokens")
        return script(request)

    run = RunBuilder("Count.", outcome="failure")
    for number in range(60):
        run.says("counter", " ".join(f"{number}-{each}" for each in range(60)), to="boss")
    result = await judged(small, run.build())
    assert "segment" in script.asked
    assert result.verdict.method == "fused"


USED = {"prompt_tokens": 900, "completion_tokens": 50, "total_tokens": 950}


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        (USED, (900, 0, 50)),
        ({**USED, "prompt_tokens_details": {"cached_tokens": 300}}, (900, 300, 50)),
        # No more can be cached than was given.
        ({**USED, "prompt_tokens_details": {"cached_tokens": 1000}}, (900, 900, 50)),
        (None, None),
        ({**USED, "prompt_tokens": 0, "completion_tokens": 0}, None),
    ],
)
async def test_tokens_are_those_of_the_server_or_estimated(usage, tokens):
    answer = completion({"content": json.dumps(GOOD["read"])}, usage=usage)
    call = (await judged(JudgeScript({**GOOD, "read": answer}))).ledger.calls[0]
    found = (call.input_tokens, call.cached_tokens, call.output_tokens)
    if tokens is None:
        assert found[0] > 100
        assert found[1] == 0
        assert found[2] > 10
    else:
        assert found == tokens


async def test_calls_stay_within_the_limit_and_halve_under_overload():
    script, lock, now, most = JudgeScript(), threading.Lock(), 0, 0
    refused = iter([True, False, True] + [False] * 1000)

    def counting(request):
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        time.sleep(0.01)
        with lock:
            now -= 1
        return BUSY if next(refused) else script(request)

    with ScriptedLLM(counting) as server:
        judge = Judge(config_for(server, judge_concurrency=3), ledger=MemoryLedger())
        runs = [(run_of(trip(), f"{number:032x}"), trip()) for number in range(12)]
        verdicts = await asyncio.gather(*(judge.judge(*run) for run in runs))
        await judge.aclose()
    assert most <= 3
    assert {verdict.method for verdict in verdicts} == {"fused"}


async def test_the_limit_falls_by_half_and_rises_by_little(monkeypatch):
    """AIMD: an overload halves the calls at a time, once for all that report it; a success adds less than one."""
    now, pauses, limit = 1000.0, [], AdaptiveLimit(8)

    async def sleep(seconds):
        nonlocal now
        pauses.append(seconds)
        now += seconds
        if seconds == 9.0:  # another call is told to wait longer
            limit.overloaded(3.0)

    monkeypatch.setattr("mast_trace_judge.llm.retry.time.monotonic", lambda: now)
    monkeypatch.setattr("mast_trace_judge.llm.retry.asyncio.sleep", sleep)
    limit.overloaded(60.0)
    limit.overloaded(5.0)
    assert limit.limit == 4.0
    async with limit.slot():
        assert pauses == [60.0]
    limit.overloaded(5.0)
    limit.overloaded(9.0)
    assert limit.limit == 2.0
    async with limit.slot():
        assert pauses == [60.0, 9.0, 3.0]
    limit.limit = 2.0
    limit.succeeded()
    assert limit.limit == 2.5
    for _ in range(100):
        limit.succeeded()
    assert limit.limit == 8.0


@pytest.mark.parametrize(
    ("failures", "retries", "calls_at_a_time"),
    [
        ([], 0, 4.0),
        ([{}, {}], 2, 4.0),
        ([{"overloaded": True}], 1, 2.5),
        ([{"retry_after": 50.0, "overloaded": True}], 1, 2.5),
        ([{"retry_after": 61.0}], None, 4.0),
        ([{"retry_after": 61.0, "overloaded": True}], None, 2.0),
        ([{}, {}, {}], None, 4.0),
    ],
)
async def test_a_call_is_made_until_it_works(monkeypatch, failures, retries, calls_at_a_time):
    now, left, limit = 0.0, list(failures), AdaptiveLimit(4)

    async def sleep(seconds):
        nonlocal now
        now += seconds

    async def send():
        if left:
            raise Transient("busy", **left.pop(0))
        return "answer"

    monkeypatch.setattr("mast_trace_judge.llm.retry.time.monotonic", lambda: now)
    monkeypatch.setattr("mast_trace_judge.llm.retry.asyncio.sleep", sleep)
    call = Retry(attempts=3).call(send, limit)
    if retries is None:
        with pytest.raises(EndpointUnavailable, match="busy"):
            await call
    else:
        assert await call == ("answer", retries)
    assert left == []
    assert limit.limit == calls_at_a_time


async def test_a_waiting_call_that_is_cancelled_takes_no_place():
    limit = AdaptiveLimit(1)
    async with limit.slot():
        waiting = asyncio.create_task(limit.slot().__aenter__())
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
    async with limit.slot():
        pass


async def test_pauses_grow_and_keep_to_what_the_server_says():
    retry = Retry(first_pause=1.0)
    pauses = [retry._pause(attempt, Transient("busy")) for attempt in range(4)]
    assert all(0.5 * 2**n <= pause <= 2**n for n, pause in enumerate(pauses))
    assert 7.0 <= retry._pause(0, Transient("busy", retry_after=7.0)) <= 7.2


OUTPUT = "max_tokens is too large: 8192. This model supports at most 4096 completion tokens."
PROMPT = (
    "This model's maximum context length is 4096 tokens. Please reduce the length of the messages."
)


@pytest.mark.parametrize(
    ("status", "said", "kind"),
    [
        # OpenAI
        (400, PROMPT, PromptTooLong),
        (400, "Input tokens exceed the configured limit of 272000 tokens.", PromptTooLong),
        (400, OUTPUT, _OutputTooLong),
        (429, "Request too large for gpt-4 on tokens per min (TPM): Limit 30000", PromptTooLong),
        (429, "Rate limit reached: too many tokens per minute", Transient),
        # Anthropic
        (400, "prompt is too long: 210000 tokens > 200000 maximum", PromptTooLong),
        (400, "input length and `max_tokens` exceed context limit: 195000 + 8192 > 200000", _OutputTooLong),
        (400, "max_tokens: 90000 > 64000, which is the maximum allowed number", _OutputTooLong),
        # Google
        (400, "The input token count (12) exceeds the maximum number of tokens allowed (10).", PromptTooLong),
        (400, "It has a maxOutputTokens value of 100000 but the supported range is from 1 to 65537.", _OutputTooLong),
        # vLLM
        (400, "you requested 12192 tokens (4000 in the messages, 8192 in the completion)", _OutputTooLong),
        (400, "'max_completion_tokens' is too large: 8192 (8192 > 4096 - 3000)", _OutputTooLong),
        (400, "The decoder prompt (length 50) is longer than the maximum model length of 40.", PromptTooLong),
        (400, "You passed 9000 input tokens and requested 8192 output tokens.", _OutputTooLong),
        # llama.cpp, LM Studio, Ollama
        (500, "input is too large to process. increase the physical batch size", PromptTooLong),
        (500, "request (9000 tokens) exceeds the available context size (4096 tokens)", PromptTooLong),
        (400, "the model is loaded with context length of only 4096 tokens", PromptTooLong),
        (400, "the input length exceeds the context length", PromptTooLong),
        (400, "prompt too long; exceeded max context length by 12 tokens", PromptTooLong),
        (500, "context shift is disabled", PromptTooLong),
        (500, "the prompt has more tokens than n_ctx", PromptTooLong),
        (400, "The prompt needs 9000 tokens, which is above max_model_len", PromptTooLong),
        (400, "Request payload size exceeds the limit: 20971520 bytes.", PromptTooLong),
        (400, "prompt token count of 130000 exceeds the limit of 128000", PromptTooLong),
        (400, f"{'The gateway found no other model. ' * 40} maximum context length", PromptTooLong),
        # TGI
        (422, "`inputs` must have less than 1024 tokens. Given: 5000", PromptTooLong),
        (422, "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000", _OutputTooLong),
        # Groq
        (400, "Please reduce the length of the messages or completion.", PromptTooLong),
        (413, "Request too large for model `llama`", PromptTooLong),
        (400, "`max_tokens` must be less than or equal to `8192`", _OutputTooLong),
        # Mistral
        (400, "Prompt contains 40000 tokens, too large for model with 32768", PromptTooLong),
        # Bedrock
        (400, "Input is too long for requested model.", PromptTooLong),
        (400, "Malformed input request: too many total text bytes: 30 > 25", PromptTooLong),
        (400, "The maximum tokens you requested exceeds the model limit of 4096.", _OutputTooLong),
        (400, "Malformed input request: expected maxLength: 51200, actual: 60000", PromptTooLong),
        # SGLang, xAI, Moonshot, DashScope, LiteLLM, Cohere
        (400, "You requested a total of 9 tokens: 4 from the messages and 5 tokens for the completion.", _OutputTooLong),
        (400, "This model's maximum prompt length is 131072 but the request has 150000.", PromptTooLong),
        (400, "Your request exceeded model token limit: 8192 (requested: 9000)", PromptTooLong),
        (400, "Range of input length should be [1, 129024]", PromptTooLong),
        (400, "Range of max_tokens should be [1, 8192]", _OutputTooLong),
        (400, "litellm.ContextWindowExceededError", PromptTooLong),
        (400, "max tokens must be less than or equal to 4096, received 8192", _OutputTooLong),
        # DeepSeek
        (400, "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", _OutputTooLong),
        (400, "Unsupported parameter: 'max_tokens' is not supported with this model.", _Refused),
        (400, "Invalid schema for response_format: 'maxLength' is not permitted.", _Refused),
    ],
)  # fmt: skip
def test_the_words_for_too_long_a_prompt_or_answer(status, said, kind):
    response = httpx.Response(status, request=httpx.Request("POST", "http://x"))
    assert type(_sorted(openai.APIStatusError(said, response=response, body=None))) is kind


SAID = "the input length exceeds the context length"


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, {"error": {"message": SAID}}),
        (400, {"error": {"code": 400, "message": SAID}}),
        (422, {"error": SAID, "error_type": "validation"}),
        (400, {"detail": SAID}),
        (400, [{"error": {"code": 400, "message": SAID}}]),
        (400, SAID),
        (200, {"error": {"code": 400, "message": SAID}}),
    ],
)
async def test_a_complaint_is_understood_wherever_the_body_has_it(status, body):
    """The window is halved, so that a run of this length is read in parts, or its texts are shortened."""
    script = JudgeScript()

    def small(request):
        if len(request["messages"][1]["content"]) > 20_000:
            return Reply(status=status, body=json.dumps(body))
        return script(request)

    run = RunBuilder("Count.", outcome="failure")
    for number in range(60):
        run.says("counter", " ".join(f"{number}-{each}" for each in range(60)), to="boss")
    assert (await judged(small, run.build())).verdict.method == "fused"


async def test_an_error_in_a_good_answer_is_told_in_its_words():
    script = JudgeScript(dict.fromkeys(GOOD, Reply(body=json.dumps({"error": "no room at all"}))))
    told = (await judged(script, trip(outcome="failure"), judge_attempts=1)).verdict.status_reason
    assert "the answer has no choices: no room at all" in told


async def test_a_server_that_takes_shorter_answers_is_asked_for_them():
    script = JudgeScript()

    def small(request):
        most = request["max_completion_tokens"]
        return Reply(status=400, text=OUTPUT) if most > 4096 else script(request)

    result = await judged(small)
    assert result.verdict.method == "fused"
    assert [r["max_completion_tokens"] for r in result.requests] == [8192, 4096]


@pytest.mark.parametrize(
    ("said", "limits"),
    [
        ("`max_tokens` must be less than or equal to `4096`", [8192, 4096, 4096]),
        ("input length and `max_tokens` exceed context limit", [8192, 4096, 8192, 4096]),
    ],
)
async def test_a_limit_of_output_is_remembered_unless_it_is_this_prompts(said, limits):
    asked = []

    def answer(request):
        asked.append(json.loads(request.content)["max_completion_tokens"])
        if asked[-1] > 4096:
            return httpx.Response(400, json={"error": {"message": said}})
        return httpx.Response(200, content=completion({"content": "{}"}).body)

    http = httpx.AsyncClient(transport=httpx.MockTransport(answer))
    client = openai.AsyncOpenAI(
        api_key="k", base_url="http://x/v1", http_client=http, max_retries=0
    )
    endpoint = ModelEndpoint(client, "m", limit=AdaptiveLimit(1))
    endpoint._away_for = 600.0
    for _ in range(2):
        await endpoint.complete([{"role": "user", "content": "Well?"}], Correction)
    assert asked == limits
    assert endpoint._away_for == 0  # a success ends the series of failures


async def test_a_prompt_is_shortened_where_a_shorter_answer_is_not_enough():
    script = JudgeScript()

    def small(request):
        prompt = sum(len(m["content"]) for m in request["messages"]) // 4
        return Reply(status=400, text=OUTPUT) if prompt > 7000 else script(request)

    run = RunBuilder("Count.", outcome="failure")
    for number in range(60):
        run.says("counter", f"{number} " + "and so on, and so forth, " * 20, to="boss")
    assert (await judged(small, run.build())).verdict.method == "fused"


@pytest.mark.parametrize(
    ("tokens", "cached", "method"), [(2000, 0, "fused"), (300, 0, "local"), (300, 100, "fused")]
)
async def test_a_prompt_that_the_server_has_cut_without_a_word_is_noticed(tokens, cached, method):
    """There are about 1,400 words in it, and no token is more than a word; cached ones may not be among the count."""
    usage = {"prompt_tokens": tokens, "completion_tokens": 50, "total_tokens": tokens + 50}
    usage["prompt_tokens_details"] = {"cached_tokens": cached}
    answer = completion({"content": json.dumps(GOOD["read"])}, usage=usage)
    verdict = (await judged(JudgeScript({**GOOD, "read": answer}), trip(outcome="failure"))).verdict
    assert verdict.method == method
    assert ("has cut the prompt" in verdict.status_reason) is (method == "local")
    assert verdict.input_tokens == tokens


async def test_a_cut_prompt_is_noticed_in_a_record_without_spaces():
    """A model that leaves out the marks has read the end of it, for all that it says."""
    run = RunBuilder("Count.", outcome="failure")
    for number in range(30):
        figures = {f"k{each}": number + each for each in range(120)}
        run.calls("clerk", "figures", {"page": number}, json.dumps(figures, separators=(",", ":")))
    usage = {"prompt_tokens": 4096, "completion_tokens": 50, "total_tokens": 4146}
    answer = completion({"content": json.dumps(GOOD["read"])}, usage=usage)
    verdict = (await judged(JudgeScript({**GOOD, "read": answer}), run.build())).verdict
    assert "has cut the prompt: it reports 4096 tokens" in verdict.status_reason


@pytest.mark.parametrize(
    ("listed", "window"),
    [
        ({}, UNKNOWN),
        ({"max_model_len": 40_000}, 40_000 - 8192 - 4000),
        ({"context_window": 16_000}, 16_000 - 4000 - 4000),
        ({"meta": {"n_ctx": 40_000, "n_ctx_train": 131_072}}, 40_000 - 8192 - 4000),
        ({"max_context_length": 131_072, "loaded_context_length": 40_000}, 40_000 - 8192 - 4000),
        ({"context_length": "large"}, UNKNOWN),
    ],
)
async def test_the_window_is_asked_of_the_server(listed, window):
    """A quarter of it at most is the answer's."""
    asked = []

    def answer(request):
        asked.append(request.url.path)
        models = [{"id": "other", "max_model_len": 9}, {"id": "m", **listed}]
        return httpx.Response(200, json={"object": "list", "data": models})

    http = httpx.AsyncClient(transport=httpx.MockTransport(answer))
    client = openai.AsyncOpenAI(api_key="k", base_url="http://x/v1", http_client=http)
    endpoint = ModelEndpoint(client, "m", limit=AdaptiveLimit(1))
    assert [await endpoint.window() for _ in range(2)] == [window, window]
    assert asked == ["/v1/models"]


async def test_a_server_without_a_list_of_models_is_asked_all_the_same():
    client = openai.AsyncOpenAI(api_key="k", base_url="http://127.0.0.1:9/v1", max_retries=0)
    endpoint = ModelEndpoint(client, "m", limit=AdaptiveLimit(1))
    assert await endpoint.window() == UNKNOWN


async def test_a_slow_model_is_waited_for_longer_each_time():
    """At equal waits it would never answer in time."""
    script = JudgeScript()

    def slow(request):
        return Reply(text=script(request), delay=1.0)

    result = await judged(slow, judge_timeout_seconds=0.4, judge_attempts=5)
    assert result.verdict.method == "fused"
    assert result.ledger.calls[0].retries > 0


@pytest.mark.parametrize(("models", "others", "asked"), [("a", 0, 1), ("a", 1, 3), ("a,b", 0, 2)])
async def test_a_model_that_never_answers_is_not_waited_for_by_the_next_run(models, others, asked):
    """One that has answered another run meanwhile is asked again."""
    started, release, script = threading.Event(), threading.Event(), JudgeScript()
    hanging = iter(models.split(","))

    def first_hangs(request):
        if next(hanging, ""):
            started.set()
            release.wait(20)
        return script(request)

    async def judge_one(number):
        return await judge.judge(run_of(trip(), f"{number:032x}"), trip())

    with ScriptedLLM(first_hangs) as server:
        config = config_for(server, judge_run_timeout_seconds=1.0, judge_model=models)
        judge = Judge(config, ledger=MemoryLedger())
        first = asyncio.create_task(judge_one(1))
        await asyncio.to_thread(started.wait)
        told = [await judge_one(2) for _ in range(others)]
        assert "longer than 1 s" in (await first).status_reason
        last = await judge_one(3)
        release.set()
        await judge.aclose()
    assert len(server.requests) == asked
    assert [each.method for each in [*told, last]] == (["fused"] * 2 if others else ["local"])
    assert ("not asked again" in last.status_reason) is not bool(others)


async def test_the_effort_of_reasoning_is_sent_and_left_out_where_it_is_refused():
    server = Dialects(JudgeScript(), unknown=("reasoning_effort",))
    result = await judged(server, judge_reasoning_effort="low")
    assert result.verdict.method == "fused"
    assert [r.get("reasoning_effort") for r in result.requests] == ["low", None]


async def test_no_run_waits_for_the_first_call_of_another():
    started, release = threading.Event(), threading.Event()
    script = JudgeScript()

    def first_hangs(request):
        if not started.is_set():
            started.set()
            release.wait(20)
        return script(request)

    with ScriptedLLM(first_hangs) as server:
        judge = Judge(config_for(server, judge_timeout_seconds=30.0), ledger=MemoryLedger())
        slow = asyncio.create_task(judge.judge(run_of(trip(), f"{1:032x}"), trip()))
        await asyncio.to_thread(started.wait)
        verdict = await judge.judge(run_of(trip(), f"{2:032x}"), trip())
        assert (verdict.method, slow.done()) == ("fused", False)
        release.set()
        assert (await slow).method == "fused"
        await judge.aclose()
