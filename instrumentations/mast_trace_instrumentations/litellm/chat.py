"""A call of LiteLLM, from the request to the last piece of the answer.

Streams of LiteLLM, followed where they are read.

Their steps are methods that Python looks up on the class, not on the instance: the classes are
patched, and an instance that is to be followed carries its call.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from opentelemetry import context as otel_context

from mast_trace import semconv
from mast_trace.content import as_text
from mast_trace.messages import Message
from mast_trace.spans import NO_RESULT, Call, ChatSpan, Inside, Telemetry, attached
from mast_trace_instrumentations.model_calls import (
    Answer,
    Assembly,
    ModelCall,
    field,
    is_to_be_recorded,
)
from mast_trace_instrumentations.openai.requests import chat_messages, responses_messages
from mast_trace_instrumentations.openai.responses import (
    ChatAssembly,
    ResponseAssembly,
    chat_answer,
    response_answer,
)

if TYPE_CHECKING:
    from opentelemetry.context import Context


@dataclass(frozen=True)
class Interface:
    """One of LiteLLM's interfaces.

    Attributes:
        positional: names of the first arguments of its functions.
        messages: reads a request.
        answer: reads a whole answer.
        assembly: assembles a streamed answer.
    """

    positional: tuple[str, ...]
    messages: Callable[[Mapping[str, Any]], list[Message]]
    answer: Callable[[Any], Answer]
    assembly: Callable[[], Assembly]


class TextAssembly(ChatAssembly):
    """Assembles a completed text from its pieces."""

    def add(self, event: Any) -> None:
        """Take the next piece, whose text is in another field than a chat's."""
        self.begin(event)
        for choice in event.choices or ():
            self.finish(field(choice, "finish_reason"))
            self.say(field(choice, "text"))


def _prompt(request: Mapping[str, Any]) -> list[Message]:
    prompt = request.get("prompt")
    texts = prompt if isinstance(prompt, list | tuple) else [prompt]
    return [Message(as_text(text), role="user") for text in texts if text is not None]


def _text_answer(completion: Any) -> Answer:
    assembly = TextAssembly()
    assembly.add(completion)
    return assembly.answer()


CHAT = Interface(("model", "messages"), chat_messages, chat_answer, ChatAssembly)
TEXT = Interface(("prompt", "model"), _prompt, _text_answer, TextAssembly)
RESPONSES = Interface(("input", "model"), responses_messages, response_answer, ResponseAssembly)


_CALL = "_mast_trace_call"

_PROVIDERS = {
    "azure": "azure.ai.openai",
    "azure_ai": "azure.ai.inference",
    "bedrock": "aws.bedrock",
    "gemini": "gcp.gemini",
    "mistral": "mistral_ai",
    "vertex_ai": "gcp.vertex_ai",
    "xai": "x_ai",
}
"""LiteLLM's names for providers, where the conventions use others."""


class StreamedCall(Protocol):
    """The call of a stream, as notified of the stream's pieces and end."""

    context: Context | None
    stepping: bool

    def add(self, piece: Any) -> None:
        """Take the next piece."""

    def finish(self, chunks: Any, error: BaseException | None = None) -> None:
        """Take the end, with the pieces as LiteLLM keeps them."""

    def close(self) -> None:
        """Handle a stream that was garbage collected."""


def mark(stream: Any, call: StreamedCall) -> None:
    """Follow a stream; dropping it ends its call."""
    setattr(stream, _CALL, call)
    weakref.finalize(stream, call.close)


def carried(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a coroutine function that runs in the present context, in any thread."""
    context = otel_context.get_current()

    @functools.wraps(function)
    async def inside(*args: Any, **kwargs: Any) -> Any:
        with attached(context):
            return await function(*args, **kwargs)

    return inside


def step(stream: Any) -> Call | None:
    """Begin one step of a stream, if it is followed."""
    call: StreamedCall | None = vars(stream).get(_CALL)
    if call is None:
        return None
    call.stepping = True

    def end(piece: Any, error: BaseException | None) -> None:
        call.stepping = False
        if isinstance(error, StopIteration | StopAsyncIteration):
            call.finish(getattr(stream, "chunks", None))
        elif error is not None:
            call.finish(getattr(stream, "chunks", None), error)
        elif piece is not NO_RESULT:
            call.add(piece)

    return Inside(call.context, end)


def close(stream: Any) -> None:
    """End the call of a stream that the program closes, with the answer received so far.

    LiteLLM also closes a stream at its end and after an error, but inside of a step, which reports
    either.
    """
    call: StreamedCall | None = vars(stream).get(_CALL)
    if call is not None and not call.stepping:
        call.finish(getattr(stream, "chunks", None))


class LiteLLMCall(ModelCall):
    """A call of one of LiteLLM's interfaces.

    Attributes:
        stepping: whether LiteLLM is making the next piece of a stream.
    """

    stepping = False

    def __init__(self, span: ChatSpan, interface: Interface) -> None:
        super().__init__(span, interface.assembly())
        self._interface = interface
        self._last: Any = None
        self._usage: Any = None

    def read(self, result: Any) -> Answer:
        """Read an answer, with the provider and the cost that LiteLLM reports."""
        if not hasattr(result, "choices") and not hasattr(result, "output"):
            return Answer()
        answer = self._interface.answer(result)
        params = hidden(result)
        self.provided_by(params.get("custom_llm_provider"))
        answer.about.update(_priced(field(result, "usage"), params.get("response_cost")))
        return answer

    def follow(self, result: Any) -> bool:
        """Observe a stream where it is read: it stays the object that LiteLLM has made."""
        if not hasattr(result, "__next__") and not hasattr(result, "__anext__"):
            return False
        self.provided_by(getattr(result, "custom_llm_provider", None))
        mark(result, self)
        return True

    def add(self, piece: Any) -> None:
        """Take the next piece."""
        self._last = piece
        super().add(piece)

    def finish(self, chunks: Any, error: BaseException | None = None) -> None:
        """End the call of a stream.

        Args:
            chunks: the pieces as LiteLLM keeps them; they have the provider's usage even where the
                program has not asked for it. None where it keeps none.
            error: the exception that ended the stream, if any.
        """
        for chunk in chunks or ():
            usage = field(chunk, "usage")
            if usage is not None:
                # Some versions report the input tokens first, and then the output tokens with an
                # input of zero.
                if self._usage is None or field(usage, "prompt_tokens"):
                    self._usage = usage
                super().add(_UsageAlone(chunk, usage))
        self.close(error)

    def provided_by(self, provider: Any) -> None:
        """Record the answering provider, by LiteLLM's name for it."""
        if isinstance(provider, str) and provider:
            self._span.set({semconv.PROVIDER_NAME: _PROVIDERS.get(provider, provider)})

    def _record(self, answer: Answer) -> None:
        if self._usage is not None:
            # Without the provider's usage, LiteLLM guesses one from the texts, and a cost from it.
            params = hidden(self._last)
            cost = params.get("response_cost") or field(params.get("usage"), "cost")
            details = field(self._usage, "prompt_tokens_details")
            answer.about.update(
                _priced(self._usage, cost),
                input_tokens=field(self._usage, "prompt_tokens"),
                cached_tokens=field(details, "cached_tokens"),
            )
        super()._record(answer)


class _UsageAlone:
    """A piece of which only the usage counts: its text has been taken already."""

    choices = ()
    type = ""

    def __init__(self, chunk: Any, usage: Any) -> None:
        self.model = field(chunk, "model")
        self.id = field(chunk, "id")
        self.usage = usage


def _priced(usage: Any, cost: Any) -> dict[str, Any]:
    """Return usage that OpenAI's fields lack: writes to a cache, and the cost of the call."""
    about: dict[str, Any] = {"cache_write_tokens": field(usage, "cache_creation_input_tokens")}
    if isinstance(cost, int | float) and cost:
        about["cost_usd"] = float(cost)
    return about


def hidden(result: Any) -> dict[str, Any]:
    """Return the data that LiteLLM keeps with an answer beside the provider's fields."""
    params = getattr(result, "_hidden_params", None)
    if params is None:
        return {}
    return params if isinstance(params, dict) else dict(vars(params))


def begin(
    telemetry: Telemetry, interface: Interface, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> LiteLLMCall | None:
    """Begin the span of a call; None where it has one already."""
    if not is_to_be_recorded(telemetry):
        return None
    request = {**dict(zip(interface.positional, args, strict=False)), **kwargs}
    model = str(request.get("model") or "unknown")
    span = telemetry.chat(model, input=interface.messages(request))
    call = LiteLLMCall(span, interface)
    prefix = model.partition("/")[0] if "/" in model else None
    call.provided_by(request.get("custom_llm_provider") or prefix)
    return call
