"""HTTP responses that hold recorded answers."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any


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


def event(data: dict[str, Any], *, named: bool = False) -> str:
    """Return one server-sent event; ``named`` adds the data's type as the event's name."""
    name = f"event: {data['type']}\n" if named else ""
    return f"{name}data: {json.dumps(data)}\n\n"


def failure(text: str, status: int) -> Encoded:
    """Return an error in the shape that both OpenAI's and Anthropic's clients read."""
    error = {"type": "error", "error": {"type": "replay", "message": text}}
    return Encoded(json.dumps(error), status=status)
