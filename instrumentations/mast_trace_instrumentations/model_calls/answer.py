"""Answers of a model, whole or streamed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from mast_trace.messages import Message


@dataclass
class Answer:
    """An answer, with the fields of `mast_trace.spans.ChatSpan.response`."""

    message: Message | None = None
    about: dict[str, Any] = field(default_factory=dict)


class Assembly(Protocol):
    """Assembles a streamed answer from its pieces."""

    def add(self, event: Any) -> None:
        """Take the next piece."""

    def answer(self) -> Answer:
        """Return the answer received so far."""
