"""Calls of models, through LangChain's public callback hook.

This module imports LangChain: it is imported once the program has done so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from langchain_core.callbacks import BaseCallbackHandler

from mast_trace.messages import Message, parsed
from mast_trace.spans import ChatSpan, Telemetry, current_agent, guarded
from mast_trace.untrusted_json import read_json
from mast_trace_instrumentations.langgraph.model_calls import begin, end_with_call, show_span
from mast_trace_instrumentations.langgraph.reading import leaf_texts
from mast_trace_instrumentations.langgraph.routing import note_named
from mast_trace_instrumentations.langgraph.state import Memory, memory_of

if TYPE_CHECKING:
    from uuid import UUID

    from opentelemetry.context import Context


_FORMAT = "ls_structured_output_format"
"""Key under which LangChain's callbacks receive the options of `with_structured_output`."""
_PROVIDERS = {
    "amazon_bedrock": "aws.bedrock",
    "azure": "azure.ai.openai",
    "google_genai": "gcp.gemini",
    "google_vertexai": "gcp.vertex_ai",
    "mistral": "mistral_ai",
    "xai": "x_ai",
}
"""LangChain's names for providers, where the conventions use others."""


def is_structured(options: Mapping[str, Any]) -> bool:
    """Return whether a model is to answer in a given structure.

    Args:
        options: the keyword arguments of LangChain's callback.
    """
    params = options.get("invocation_params") or {}
    if (options.get("options") or {}).get(_FORMAT) or params.get(_FORMAT):
        return True
    if params.get("response_format"):
        return True
    # The model is forced to call one certain function: its arguments are the answer.
    forced = params.get("tool_choice")
    return isinstance(forced, dict) and bool(forced.get("name") or forced.get("function"))


def named_in(answer: Message) -> list[str]:
    """Return the texts in a structured answer, at any depth."""
    if answer.tool_calls:
        return leaf_texts([parsed(call.arguments) for call in answer.tool_calls])
    try:
        return leaf_texts(read_json(answer.content))
    except ValueError:
        return []


@dataclass(eq=False)
class _OpenChat:
    span: ChatSpan
    context: Context
    memory: Memory
    agent: str
    structured: bool
    """True if the model was instructed to answer in a given structure."""


class ChatRecorder(BaseCallbackHandler):
    """Makes the `chat` span of each model call inside of a run."""

    run_inline = True  # in the caller's thread and context, where the current span is the parent
    raise_error = True  # errors are guarded here: swallowed in production, shown in tests
    ignore_agent = True
    ignore_chain = True
    ignore_custom_event = True
    ignore_retriever = True
    ignore_retry = True

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry
        self._open: dict[UUID, _OpenChat] = {}

    def on_chat_model_start(
        self,
        serialized: dict[str, Any],  # noqa: ARG002  # LangChain's signature
        messages: list[list[Any]],
        *,
        run_id: UUID,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Begin the span, on the messages of the request."""
        with guarded("beginning a model call"):
            context = begin()
            if context is None:
                return
            memory = memory_of(context)
            shown = memory.read_all(messages[0]) if messages else []
            self._begin(run_id, context, memory, shown, metadata or {}, kwargs)

    def on_llm_start(
        self,
        serialized: dict[str, Any],  # noqa: ARG002  # LangChain's signature
        prompts: list[str],
        *,
        run_id: UUID,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Begin the span of a text completion model."""
        with guarded("beginning a model call"):
            context = begin()
            if context is not None:
                shown = [Message(prompt, role="user") for prompt in prompts[:1]]
                self._begin(run_id, context, memory_of(context), shown, metadata or {}, kwargs)

    def on_llm_end(self, response: Any, *, run_id: UUID, **_kwargs: Any) -> None:
        """End the span with the model's answer and its usage."""
        with guarded("ending a model call"):
            chat = self._open.pop(run_id, None)
            if chat is None:
                return
            generation = next((each[0] for each in response.generations if each), None)
            if generation is not None:
                self._answer(chat, generation, response.llm_output or {})
            chat.span.end()

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **_kwargs: Any) -> None:
        """End the span as failed; a consumer that stops reading a stream is no failure."""
        with guarded("ending a model call"):
            self._end(run_id, error)

    def _end(self, run_id: UUID, error: BaseException | None) -> None:
        chat = self._open.pop(run_id, None)
        if chat is not None:
            chat.span.end(None if isinstance(error, GeneratorExit) else error)

    def _begin(
        self,
        run_id: UUID,
        context: Context,
        memory: Memory,
        shown: Sequence[Message],
        metadata: dict[str, Any],
        kwargs: dict[str, Any],
    ) -> None:
        params = kwargs.get("invocation_params") or {}
        model = metadata.get("ls_model_name") or params.get("model") or params.get("model_name")
        provider = str(metadata.get("ls_provider") or params.get("_type") or "") or None
        span = self._telemetry.chat(
            str(model or "unknown"),
            parent=context,
            provider=_PROVIDERS.get(provider, provider) if provider else None,
            input=shown,
        )
        self._end(run_id, None)  # a program may give one id to several calls
        show_span(span)
        end_with_call(partial(self._end, run_id))
        self._open[run_id] = _OpenChat(
            span, context, memory, current_agent(context) or "", is_structured(kwargs)
        )

    def _answer(self, chat: _OpenChat, generation: Any, llm_output: dict[str, Any]) -> None:
        raw = getattr(generation, "message", None)
        if raw is None:
            chat.span.response(Message(generation.text), **_usage({}, llm_output))
            return
        message = chat.memory.read(raw)
        chat.memory.ask(message, chat.agent)
        if chat.structured:
            note_named(named_in(message), chat.context)
        about = {**(generation.generation_info or {}), **raw.response_metadata}
        finish = about.get("finish_reason") or about.get("stop_reason") or about.get("status")
        chat.span.response(
            message,
            model=_text(about.get("model_name") or about.get("model")),
            response_id=_text(about.get("id") or llm_output.get("id")),
            finish_reason=_text(finish),
            **_usage(getattr(raw, "usage_metadata", None) or {}, llm_output),
        )
        self._refuse(chat, raw)

    def _refuse(self, chat: _OpenChat, raw: Any) -> None:
        """A call whose arguments are no JSON is dropped by LangChain: it fails here, unexecuted."""
        for call in getattr(raw, "invalid_tool_calls", None) or ():
            span = self._telemetry.tool(
                _text(call.get("name")) or "unknown",
                parent=chat.context,
                arguments=call.get("args"),
                call_id=call.get("id"),
                agent=chat.agent or None,
            )
            span.end(_text(call.get("error")) or "The arguments are not valid JSON.")


def _usage(usage: dict[str, Any], llm_output: dict[str, Any]) -> dict[str, Any]:
    if usage:
        details = usage.get("input_token_details") or {}
        return {
            "input_tokens": usage.get("input_tokens"),
            "output_tokens": usage.get("output_tokens"),
            "cached_tokens": details.get("cache_read"),
        }
    counted = llm_output.get("token_usage") or llm_output.get("usage") or {}
    return {
        "input_tokens": counted.get("prompt_tokens", counted.get("input_tokens")),
        "output_tokens": counted.get("completion_tokens", counted.get("output_tokens")),
    }


def _text(value: Any) -> str | None:
    return str(value) if value else None
