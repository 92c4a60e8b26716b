"""HTTP responses that hold recorded answers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mast_trace.replay.tape import Exchange


@dataclass(frozen=True)
class Encoded:
    """An HTTP response.

    Attributes:
        body: JSON, or server-sent events.
        stream: whether the body is server-sent events.
        status: HTTP status.
    """

    body: str
    stream: bool = False
    status: int = 200

    @property
    def headers(self) -> dict[str, str]:
        """The HTTP headers; they also tell clients not to retry."""
        kind = "text/event-stream" if self.stream else "application/json"
        return {"content-type": kind, "x-should-retry": "false"}


def extra_of(exchange: Exchange) -> dict[str, Any]:
    """Return the parts of a recorded answer beside its text and its calls; empty if none can be read.

    ``NaN`` and ``Infinity`` stay numbers, as the program had them.
    """
    try:
        found = json.loads(exchange.extra) if exchange.extra else None
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def cut(text: str, lengths: Sequence[Any]) -> list[str] | None:
    """Return a text in pieces of these lengths; None if they are no lengths, or others than the text's."""
    if not all(isinstance(each, int) and each >= 0 for each in lengths):
        return None
    ends = [*accumulate(lengths)]
    if (ends[-1] if ends else 0) != len(text):
        return None
    return [text[end - length : end] for end, length in zip(ends, lengths, strict=True)]


def event(data: dict[str, Any], *, named: bool = False) -> str:
    """Return one server-sent event; ``named`` adds the data's type as the event's name."""
    name = f"event: {data['type']}\n" if named else ""
    return f"{name}data: {json.dumps(data)}\n\n"


def failure(text: str, status: int) -> Encoded:
    """Return an error in the shape that both OpenAI's and Anthropic's clients read."""
    error = {"type": "error", "error": {"type": "replay", "message": text}}
    return Encoded(json.dumps(error), status=status)
