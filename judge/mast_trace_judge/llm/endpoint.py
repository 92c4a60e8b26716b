"""An endpoint and one of its models."""

from __future__ import annotations

import asyncio
import json
import re
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from mast_trace.content import well_formed
from mast_trace.exceptions import EndpointUnavailable, JudgeError, VerdictUnreadable
from mast_trace.retry_after import retry_after
from mast_trace.urls import conceal
from mast_trace_judge.llm.answers import ModelAnswer, json_schema, parse_answer
from mast_trace_judge.llm.budget import Tokens
from mast_trace_judge.llm.retry import AdaptiveLimit, Retry, Transient

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from openai import AsyncOpenAI

    from mast_trace_judge.llm.protocols import Protocol

_UNSUPPORTED = {400, 404, 405, 415, 422, 501}
_TRANSIENT = {408, 409, 425, 429}
_TOO_LONG = re.compile(
    r"context[_ ]?(?:length|size|window|limit)|maximum context|exceed_context|too long|too many (?:total text bytes|tokens)"
    r"|too large (?:for model|to process)|request too large|input (?:token|length)|inputs?` (?:must|tokens)|expected maxlength"
    r"|maximum (?:input |prompt )?length|maximum number of tokens|model token limit|longer than the maximum|reduce the length"
    r"|max_model_len|\bn_ctx\b|context shift is disabled|(?:payload size|prompt token count of \d+) exceeds the limit",
    re.IGNORECASE,
)
"""The words of OpenAI, Anthropic, Google, vLLM, llama.cpp, LM Studio, Ollama, TGI, Groq, Mistral, Bedrock and others."""
_OUTPUT_TOO_LONG = re.compile(
    r"(?:max[_ ]?(?:completion_|new_|output_?)?tokens|(?:completion|output) tokens|maximum tokens you requested)[^.]*"
    r"(?:too (?:large|high)|exceed|at most|less than|must be <|[<>]|maximum|(?:valid|supported) range|should be \[)"
    r"|in the (?:completion|output)\)|tokens for the completion|requested \d+ output tokens",
    re.IGNORECASE,
)
_BESIDE_PROMPT = re.compile(r"input|prompt|messages|context", re.IGNORECASE)
"""Words of a complaint about an answer that is too long only beside this prompt."""
_HEARD = 4000
"""Characters of a complaint that are read; a gateway may put its own words before those of the model's server."""
_LEAST_OUTPUT = 1024
"""Tokens that an answer needs: where a server takes fewer beside the prompt, the prompt is shortened."""
_AWAY = 30.0
_LONGEST_AWAY = 600.0
_PATIENCE = 3.0
"""Factor of the slowest answer so far up to which another one is waited for."""
UNKNOWN: Final = 10**9
"""The window of a model that nobody knows: no limit."""
_WINDOWS = (
    *("loaded_context_length", "max_model_len", "n_ctx", "context_window"),
    *("context_length", "max_context_length", "inputTokenLimit", "max_input_tokens"),
)
"""Names under which servers list a model's context window: LM Studio, vLLM, llama.cpp, Groq, OpenRouter, Mistral, Google, Anthropic."""
_WINDOW_WAIT = 5.0
_QUESTION = 4000
"""Tokens of the question and of what is said of the task."""
_RESPONSE_FORMATS = ("json_schema", "json_object", "text")


class PromptTooLong(JudgeError):
    """The model's context window does not hold the prompt."""


@dataclass(frozen=True)
class Completion:
    """A model's answer, not parsed yet.

    Attributes:
        problem: the reason why it is none, where that is plain.
        is_cut: whether the limit of output tokens has ended it.
    """

    text: str
    problem: str
    tokens: Tokens
    retries: int
    is_cut: bool = False


@dataclass(frozen=True)
class Dialect:
    """The API features that an endpoint accepts, learnt from its refusals."""

    response_format: str = "json_schema"
    output_limit: str | None = "max_completion_tokens"
    temperature: bool = True
    effort: bool = False

    def without(self, refusal: str) -> Dialect | None:
        """Return the dialect to try after a refusal with this text; None where none is left."""
        said = refusal.lower()
        if self.temperature and "temperature" in said:
            return replace(self, temperature=False)
        if self.effort and ("reasoning" in said or "output_config" in said):
            return replace(self, effort=False)
        if self.output_limit and self.output_limit in said:
            other = "max_tokens" if self.output_limit == "max_completion_tokens" else None
            return replace(self, output_limit=other)
        place = _RESPONSE_FORMATS.index(self.response_format) + 1
        if place < len(_RESPONSE_FORMATS):
            return replace(self, response_format=_RESPONSE_FORMATS[place])
        return None


class ModelEndpoint:
    """Asks one model, in the dialect that its server accepts, and retries failures that may pass.

    Attributes:
        model: its name.
        limit: number of concurrent calls.
        dialect: the features that the server accepts.
    """

    def __init__(
        self,
        client: AsyncOpenAI,
        model: str,
        *,
        limit: AdaptiveLimit,
        retry: Retry | None = None,
        timeout: float = 60.0,
        temperature: float | None = 0.0,
        effort: str = "",
        max_output_tokens: int = 8192,
        protocol: Protocol | None = None,
    ) -> None:
        """Set up the endpoint; nothing is sent.

        Args:
            client: made with ``max_retries=0``, so that this is the only layer that retries.
            model: its name.
            limit: shared by the models of one server.
            retry: the policy of retries.
            timeout: seconds for a whole answer; longer after one that did not come in time, and for a model that
                was slower before.
            temperature: left out if None, or where the model refuses it.
            effort: of reasoning; left out if empty, or where the model refuses it.
            max_output_tokens: of one answer, reasoning included.
            protocol: of the server; Chat Completions if None.
        """
        self.model = model
        self.limit = limit
        self.dialect = Dialect(temperature=temperature is not None, effort=bool(effort))
        self._client = client
        self._protocol = protocol
        self._headers = protocol.headers(client.api_key) if protocol else {}
        self._retry = retry or Retry()
        self._timeout = timeout
        self._temperature = temperature
        self._effort = effort
        self._max_output_tokens = max_output_tokens
        self._window: int | None = None
        self._answered = 0.0
        self._away_until = 0.0
        self._away_for = 0.0
        self._away_reason = ""

    def given_up(self, reason: str, began: float) -> None:
        """Count calls that were cancelled as the endpoint's failure, unless it has answered any since then."""
        if self._answered < began:
            self._away(reason)

    def check(self) -> None:
        """Check that the endpoint is not known to be down.

        Raises:
            EndpointUnavailable: it failed a moment ago, so that another series of attempts is
                skipped.
        """
        if time.monotonic() < self._away_until:
            raise EndpointUnavailable(self._away_reason)

    async def window(self) -> int:
        """Return the tokens of a record that the model can read, by its server's word; `UNKNOWN` where that gives none.

        The server is asked once. An answer needs room too: of a small window a quarter.
        """
        if self._window is None:
            self._window = UNKNOWN
            if self._client is not None:
                self._window = await self._asked_window()
        return self._window

    async def _asked_window(self) -> int:
        import openai

        try:
            models = await asyncio.wait_for(
                self._client.models.list(extra_headers=self._headers), _WINDOW_WAIT
            )
        except (openai.OpenAIError, ValueError, asyncio.TimeoutError, TimeoutError):
            return UNKNOWN
        told = next(
            (model.model_dump() for model in models.data or () if model.id == self.model), {}
        )
        told = {**(told.get("meta") or {}), **told}
        window = next((told[name] for name in _WINDOWS if isinstance(told.get(name), int)), 0)
        if not window:
            return UNKNOWN
        self._max_output_tokens = min(self._max_output_tokens, window // 4)
        return window - self._max_output_tokens - _QUESTION

    async def complete(
        self,
        messages: Sequence[Mapping[str, str]],
        shape: type[ModelAnswer],
        *,
        longer: bool = False,
    ) -> Completion:
        """Ask for an answer of this schema.

        Args:
            messages: of the conversation so far.
            shape: of the answer.
            longer: whether the answer may be twice as long as usual.

        Raises:
            EndpointUnavailable: no answer is available now.
            PromptTooLong: the prompt exceeds the model's context window.
            JudgeError: the server rejects the request.
        """
        dialect: Dialect | None = self.dialect
        first_refusal: _Refused | None = None
        most = self._max_output_tokens * (2 if longer else 1)
        remembered = False
        while dialect is not None:
            request = self._request(messages, shape, dialect, most)
            try:
                response, retries = await self._retry.call(lambda: self._send(request), self.limit)  # noqa: B023
            except EndpointUnavailable as failure:
                self._away(str(failure))
                raise
            except _OutputTooLong as refused:
                most //= 2
                if most < _LEAST_OUTPUT:
                    raise PromptTooLong(str(refused)[:500]) from refused
                remembered = not _BESIDE_PROMPT.search(str(refused))
                continue
            except _Refused as refused:
                first_refusal = first_refusal or refused
                dialect = dialect.without(str(refused))
                continue
            self._away_for, self._answered = 0.0, time.monotonic()
            self.dialect = dialect
            if remembered:
                self._max_output_tokens = min(self._max_output_tokens, most)
            return _completion(response, retries, shape)
        # Every dialect was refused, so the dialect is not the cause.
        reason = f"the model's endpoint refuses the request: {first_refusal}"
        if first_refusal is not None and first_refusal.status == 404:
            self._away(reason)
            raise EndpointUnavailable(reason)
        raise JudgeError(reason)

    def _request(
        self,
        messages: Sequence[Mapping[str, str]],
        shape: type[ModelAnswer],
        dialect: Dialect,
        most: int,
    ) -> dict[str, Any]:
        request: dict[str, Any] = {"model": self.model, "messages": [dict(m) for m in messages]}
        schema = json_schema(shape)
        if dialect.response_format == "json_schema":
            request["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": shape.__name__, "schema": schema, "strict": True},
            }
        else:
            fence = "" if dialect.response_format == "json_object" else " in a ```json fence"
            request["messages"][-1]["content"] += (
                f"\n\nAnswer with one JSON object{fence} of this JSON schema, and nothing else:\n"
                + json.dumps(schema)
            )
        if dialect.response_format == "json_object":
            request["response_format"] = {"type": "json_object"}
        if dialect.output_limit:
            request[dialect.output_limit] = most
        if dialect.temperature:
            request["temperature"] = self._temperature
        if dialect.effort:
            request["reasoning_effort"] = self._effort
        return request

    async def _send(self, request: Mapping[str, Any]) -> Any:
        """Make one HTTP call; classify errors as transient or final."""
        import openai

        patience, began = self._timeout, time.monotonic()
        try:
            response = await asyncio.wait_for(self._answer(request, patience), patience)
        except (openai.APITimeoutError, TimeoutError, asyncio.TimeoutError):
            # The same wait again would end the same way.
            self._timeout = max(self._timeout, 2 * patience)
            raise Transient(f"no answer within {patience:g} s", overloaded=True) from None
        except openai.APIConnectionError as error:
            said = conceal(str(error.__cause__ or error), str(self._client.base_url))
            raise Transient(f"no connection: {said}") from error
        except openai.APIStatusError as error:
            raise _sorted(error) from error
        except (openai.APIError, ValueError, LookupError, TypeError) as error:
            raise Transient(f"the answer is not the API's: {error}") from error
        if not getattr(response, "choices", None):
            # Some gateways answer 200 with an error of their own in the body.
            fault = getattr(response, "error", None) or ""
            status = fault.get("code") if isinstance(fault, dict) else None
            said = well_formed(str(fault or response))[:_HEARD]
            too_long = (
                _of_length(status if isinstance(status, int) else 400, said) if fault else None
            )
            raise too_long or Transient(f"the answer has no choices: {said[:200]}")
        self._timeout = max(self._timeout, _PATIENCE * (time.monotonic() - began))
        return response

    async def _answer(self, request: Mapping[str, Any], patience: float) -> Any:
        if self._protocol is None:
            return await self._client.chat.completions.create(**request, timeout=patience)
        from openai.types.chat import ChatCompletion

        answer: Any = await self._client.post(
            self._protocol.path,
            cast_to=object,
            body=self._protocol.asked(request),
            options={"timeout": patience, "headers": self._headers},
        )
        return ChatCompletion.model_validate(self._protocol.told(answer))

    def _away(self, reason: str) -> None:
        """Skip the series of attempts for the following runs, for longer after each failure in a row."""
        now = time.monotonic()
        if now < self._away_until:
            return  # concurrent runs report the same failure
        self._away_for = min(_LONGEST_AWAY, 2 * self._away_for or _AWAY)
        self._away_until = now + self._away_for
        self._away_reason = f"{reason} (not asked again for {self._away_for:g} s)"


class _Refused(Exception):
    """The server understood the request and rejects it."""

    def __init__(self, status: int, said: str) -> None:
        super().__init__(f"HTTP {status}: {said}")
        self.status = status


class _OutputTooLong(Exception):
    """The server does not take so large a limit of output tokens."""


def _sorted(error: Any) -> Exception:
    status = int(error.status_code)
    heard = well_formed(_told_by(error))[:_HEARD]
    said = heard[:500]
    code = str(getattr(error, "code", "") or "")
    if code == "insufficient_quota":
        return EndpointUnavailable(f"the account's quota is used up: {said}")
    if (too_long := _of_length(status, f"{code} {heard}")) is not None:
        return too_long
    if status in _TRANSIENT or (status >= 500 and status != 501):
        wait = retry_after(error.response.headers)
        return Transient(
            f"HTTP {status}: {said}", retry_after=wait, overloaded=status in {429, 503, 529}
        )
    if status in {401, 403}:
        return EndpointUnavailable(f"HTTP {status}: {said}")
    return (
        _Refused(status, said) if status in _UNSUPPORTED else JudgeError(f"HTTP {status}: {said}")
    )


def _told_by(error: Any) -> str:
    """Return the words of an error, also of servers whose answer is a text, a list or a `detail`: the client leaves these out."""
    said, body = str(getattr(error, "message", "") or error), getattr(error, "body", None)
    if not body or (isinstance(body, dict) and body.get("message")):
        return said
    return f"{said} - {body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)}"


def _of_length(status: int, said: str) -> Exception | None:
    """Return the complaint of a server about the length of answer or prompt, which some make with a status of 500."""
    too_long = PromptTooLong(f"the prompt exceeds the model's context window: {said[:500]}")
    if status == 413 or "request too large" in said.lower():
        return too_long
    if status in {401, 403, 503, *_TRANSIENT}:
        return None
    if _OUTPUT_TOO_LONG.search(said):
        return _OutputTooLong(f"HTTP {status}: {said}")
    return too_long if _TOO_LONG.search(said) else None


def _completion(response: Any, retries: int, shape: type[ModelAnswer]) -> Completion:
    usage = getattr(response, "usage", None)
    details = getattr(usage, "prompt_tokens_details", None)
    given = int(getattr(usage, "prompt_tokens", 0) or 0)
    tokens = Tokens(
        input=given,
        cached=min(given, int(getattr(details, "cached_tokens", 0) or 0)),
        output=int(getattr(usage, "completion_tokens", 0) or 0),
    )
    choice = response.choices[0]
    text = well_formed(_text_of(choice.message))
    is_cut = choice.finish_reason == "length" and not _has_all(text, shape)
    return Completion(
        text=text, problem=_problem(choice, is_cut), tokens=tokens, retries=retries, is_cut=is_cut
    )


def _has_all(text: str, shape: type[ModelAnswer]) -> bool:
    """Return whether an answer is whole: where the limit has cut blank lines after it, say, nothing is lost."""
    try:
        read = parse_answer(text, shape, repair=False)
    except VerdictUnreadable:
        return False
    return read.model_fields_set >= shape.model_fields.keys()


def _text_of(message: Any) -> str:
    """Return the text of an answer: its content, else the arguments of a tool call, else what it gives as its reasoning."""
    content = message.content
    if isinstance(content, list):
        content = "".join(
            str(part.get("text") or "") if isinstance(part, dict) else str(part) for part in content
        )
    called = [call.function for call in message.tool_calls or ()]
    called.append(getattr(message, "function_call", None))
    calls = [str(getattr(function, "arguments", "") or "") for function in called]
    if parsed := getattr(message, "parsed", None):
        calls.append(json.dumps(parsed, ensure_ascii=False))
    thoughts = [
        str(getattr(message, name, "") or "") for name in ("reasoning_content", "reasoning")
    ]
    details = getattr(message, "reasoning_details", None)
    parts = (
        [each for each in details if isinstance(each, dict)] if isinstance(details, list) else ()
    )
    thoughts.append("".join(str(part.get("text") or "") for part in parts))
    # A sentence may stand beside a call, and blank lines beside a reasoning.
    said = [each for each in (str(content or ""), *calls) if each.strip()]
    objects = (each for each in said if "{" in each)
    return next(objects, next(iter([*said, *filter(None, thoughts)]), ""))


def _problem(choice: Any, is_cut: bool) -> str:
    refusal = getattr(choice.message, "refusal", None)
    if refusal:
        return f"the model refused: {well_formed(str(refusal))[:200]}"
    if choice.finish_reason == "content_filter":
        return "a content filter stopped the model"
    if is_cut:
        return "the answer was cut at the limit of output tokens"
    return ""
