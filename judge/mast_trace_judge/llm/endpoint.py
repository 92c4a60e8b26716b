"""An OpenAI-compatible endpoint and one of its models."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from mast_trace.content import well_formed
from mast_trace.exceptions import EndpointUnavailable, JudgeError
from mast_trace.retry_after import retry_after
from mast_trace.urls import conceal
from mast_trace_judge.llm.answers import json_schema
from mast_trace_judge.llm.budget import Tokens
from mast_trace_judge.llm.retry import AdaptiveLimit, Retry, Transient

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from openai import AsyncOpenAI

    from mast_trace_judge.llm.answers import ModelAnswer

_UNSUPPORTED = {400, 404, 405, 415, 422, 501}
_TRANSIENT = {408, 409, 425, 429}
_TOO_LONG = ("context_length", "context length", "maximum context", "too long", "too many tokens")
_AWAY = 30.0
_LONGEST_AWAY = 600.0
_RESPONSE_FORMATS = ("json_schema", "json_object", "text")


class PromptTooLong(JudgeError):
    """The model's context window does not hold the prompt."""


@dataclass(frozen=True)
class Completion:
    """A model's answer, not parsed yet; ``problem`` is the reason why it is none, where that is plain."""

    text: str
    problem: str
    tokens: Tokens
    retries: int
    seconds: float


@dataclass(frozen=True)
class Dialect:
    """The API features that an endpoint accepts, learnt from its refusals."""

    response_format: str = "json_schema"
    output_limit: str | None = "max_completion_tokens"
    temperature: bool = True

    def without(self, refusal: str) -> Dialect | None:
        """Return the dialect to try after a refusal with this text; None where none is left."""
        said = refusal.lower()
        if self.temperature and "temperature" in said:
            return replace(self, temperature=False)
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
        max_output_tokens: int = 8192,
    ) -> None:
        """Set up the endpoint; nothing is sent.

        Args:
            client: made with ``max_retries=0``, so that this is the only layer that retries.
            model: its name.
            limit: shared by the models of one server.
            retry: the policy of retries.
            timeout: seconds for a whole answer.
            temperature: left out if None, or where the model refuses it.
            max_output_tokens: of one answer, reasoning included.
        """
        self.model = model
        self.limit = limit
        self.dialect = Dialect(temperature=temperature is not None)
        self._client = client
        self._retry = retry or Retry()
        self._timeout = timeout
        self._temperature = temperature
        self._max_output_tokens = max_output_tokens
        self._learning = asyncio.Lock()
        self._learnt = False
        self._away_until = 0.0
        self._away_for = 0.0
        self._away_reason = ""

    def check(self) -> None:
        """Check that the endpoint is not known to be down.

        Raises:
            EndpointUnavailable: it failed a moment ago, so that another series of attempts is
                skipped.
        """
        if time.monotonic() < self._away_until:
            raise EndpointUnavailable(self._away_reason)

    async def complete(
        self, messages: Sequence[Mapping[str, str]], shape: type[ModelAnswer]
    ) -> Completion:
        """Ask for an answer of this schema.

        Raises:
            EndpointUnavailable: no answer is available now.
            PromptTooLong: the prompt exceeds the model's context window.
            JudgeError: the server rejects the request.
        """
        if self._learnt:
            return await self._speak(messages, shape)
        async with self._learning:  # the first call determines the dialect for all others
            return await self._speak(messages, shape)

    async def _speak(
        self, messages: Sequence[Mapping[str, str]], shape: type[ModelAnswer]
    ) -> Completion:
        dialect: Dialect | None = self.dialect
        first_refusal: _Refused | None = None
        started = time.monotonic()
        while dialect is not None:
            request = self._request(messages, shape, dialect)
            try:
                response, retries = await self._retry.call(lambda: self._send(request), self.limit)  # noqa: B023
            except EndpointUnavailable as failure:
                self._away(str(failure))
                raise
            except _Refused as refused:
                first_refusal = first_refusal or refused
                dialect = dialect.without(str(refused))
                continue
            self._away_for = 0.0
            if not self._learnt:
                self.dialect, self._learnt = dialect, True
            return _completion(response, retries, time.monotonic() - started)
        # Every dialect was refused, so the dialect is not the cause.
        reason = f"the model's endpoint refuses the request: {first_refusal}"
        if first_refusal is not None and first_refusal.status == 404:
            self._away(reason)
            raise EndpointUnavailable(reason)
        raise JudgeError(reason)

    def _request(
        self, messages: Sequence[Mapping[str, str]], shape: type[ModelAnswer], dialect: Dialect
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
            request[dialect.output_limit] = self._max_output_tokens
        if dialect.temperature:
            request["temperature"] = self._temperature
        return request

    async def _send(self, request: Mapping[str, Any]) -> Any:
        """Make one HTTP call; classify errors as transient or final."""
        import openai

        try:
            response = await asyncio.wait_for(
                self._client.chat.completions.create(**request), self._timeout
            )
        except (openai.APITimeoutError, TimeoutError, asyncio.TimeoutError):
            raise Transient(f"no answer within {self._timeout:g} s", overloaded=True) from None
        except openai.APIConnectionError as error:
            said = conceal(str(error.__cause__ or error), str(self._client.base_url))
            raise Transient(f"no connection: {said}") from error
        except openai.APIStatusError as error:
            raise _sorted(error) from error
        except (openai.APIError, ValueError) as error:
            raise Transient(f"the answer is not the API's: {error}") from error
        if not getattr(response, "choices", None):
            # Some gateways answer 200 with an error of their own in the body.
            raise Transient(f"the answer has no choices: {str(response)[:200]}")
        return response

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


def _sorted(error: Any) -> Exception:
    status = int(error.status_code)
    said = well_formed(str(getattr(error, "message", "") or error))[:500]
    code = str(getattr(error, "code", "") or "")
    if code == "insufficient_quota":
        return EndpointUnavailable(f"the account's quota is used up: {said}")
    if status in _TRANSIENT or (status >= 500 and status != 501):
        wait = retry_after(error.response.headers)
        return Transient(
            f"HTTP {status}: {said}", retry_after=wait, overloaded=status in {429, 503}
        )
    if status in {401, 403}:
        return EndpointUnavailable(f"HTTP {status}: {said}")
    if status == 413 or any(sign in f"{code} {said}".lower() for sign in _TOO_LONG):
        return PromptTooLong(f"the prompt exceeds the model's context window: {said}")
    if status in _UNSUPPORTED:
        return _Refused(status, said)
    return JudgeError(f"HTTP {status}: {said}")


def _completion(response: Any, retries: int, seconds: float) -> Completion:
    usage = getattr(response, "usage", None)
    details = getattr(usage, "prompt_tokens_details", None)
    given = int(getattr(usage, "prompt_tokens", 0) or 0)
    tokens = Tokens(
        input=given,
        cached=min(given, int(getattr(details, "cached_tokens", 0) or 0)),
        output=int(getattr(usage, "completion_tokens", 0) or 0),
    )
    choice = response.choices[0]
    return Completion(
        text=well_formed(str(choice.message.content or "")),
        problem=_problem(choice),
        tokens=tokens,
        retries=retries,
        seconds=seconds,
    )


def _problem(choice: Any) -> str:
    refusal = getattr(choice.message, "refusal", None)
    if refusal:
        return f"the model refused: {well_formed(str(refusal))[:200]}"
    if choice.finish_reason == "content_filter":
        return "a content filter stopped the model"
    if choice.finish_reason == "length":
        return "the answer was cut at the limit of output tokens"
    return ""
