"""Answers of the model, whole or streamed."""

from __future__ import annotations

from typing import Any

from mast_trace.messages import Message
from mast_trace_instrumentations.google_genai.requests import text_of, tool_calls
from mast_trace_instrumentations.model_calls import Answer, field


def response_answer(response: Any) -> Answer:
    """Read a `GenerateContentResponse`; the first of several candidates counts."""
    assembly = ResponseAssembly()
    assembly.add(response)
    return assembly.answer()


def tokens(usage: Any) -> dict[str, Any]:
    """Read token counts: those of thoughts are output, those of the client's own tools input."""
    shown = _sum(usage, "prompt_token_count", "tool_use_prompt_token_count")
    output_tokens = _sum(usage, "candidates_token_count", "thoughts_token_count")
    counts = {
        "input_tokens": shown,
        "output_tokens": output_tokens,
        "cached_tokens": field(usage, "cached_content_token_count"),
    }
    return {name: count for name, count in counts.items() if count is not None}


class ResponseAssembly:
    """Assembles a streamed response from its pieces, each of which has parts of its own."""

    def __init__(self) -> None:
        self._about: dict[str, Any] = {}
        self._parts: list[Any] = []
        self._has_answer = False

    def add(self, event: Any) -> None:
        """Take the next piece."""
        about = {
            "model": field(event, "model_version"),
            "response_id": field(event, "response_id"),
            **tokens(field(event, "usage_metadata")),
        }
        self._about.update({name: value for name, value in about.items() if value is not None})
        for candidate in (field(event, "candidates") or ())[:1]:
            self._has_answer = True
            reason = field(candidate, "finish_reason")
            if reason is not None:
                self._about["finish_reason"] = str(getattr(reason, "value", reason))
            self._parts.extend(field(field(candidate, "content"), "parts") or ())

    def answer(self) -> Answer:
        """Return the answer received so far."""
        if not self._has_answer:  # blocked, or nothing has come
            return Answer(None, self._about)
        message = Message(text_of(self._parts), tool_calls=tool_calls(self._parts))
        return Answer(message, self._about)


def _sum(usage: Any, *names: str) -> int | None:
    counts = [count for name in names if (count := field(usage, name)) is not None]
    return sum(counts) if counts else None
