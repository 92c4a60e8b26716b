"""LiteLLM's interfaces to models: they follow OpenAI's, for every provider."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mast_trace.content import as_text
from mast_trace.messages import Message
from mast_trace_instrumentations.model_calls import Answer, field
from mast_trace_instrumentations.openai.requests import chat_messages, responses_messages
from mast_trace_instrumentations.openai.responses import (
    ChatAssembly,
    ResponseAssembly,
    chat_answer,
    response_answer,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mast_trace_instrumentations.model_calls import Assembly


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
