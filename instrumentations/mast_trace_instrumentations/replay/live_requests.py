"""Model requests that a replay sends to a model, after the change of an intervention."""

from __future__ import annotations

import json
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from opentelemetry import trace

from mast_trace import semconv
from mast_trace.replay.live import UNANSWERED, in_live_call
from mast_trace.spans import open_chat
from mast_trace_instrumentations.replay.other_requests import with_other_messages

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mast_trace.replay.player import Live, Player

PAUSE: Final = 0.005
"""Seconds between two questions of a request that waits for the change."""
_PATIENCE: Final = 10.0
"""Seconds that a request of a parallel branch waits for the change."""
_OF_BODIES: Final = {"content-length", "transfer-encoding"}


class Patience:
    """The time that a request of a parallel branch waits, from its first question."""

    def __init__(self) -> None:
        self._end = time.monotonic() + _PATIENCE

    def lasts(self) -> bool:
        """Return whether there is time left."""
        return time.monotonic() < self._end


@dataclass
class _Sent:
    """A live call; ``response`` is set when the client has received one."""

    response: Any = None


@contextmanager
def live_call(player: Player, call: Live) -> Iterator[_Sent]:
    """Let the code of the block connect to the model, and report the response's status to the player."""
    sent = _Sent()
    token = in_live_call.set(True)
    try:
        yield sent
    finally:
        in_live_call.reset(token)
        received = sent.response is not None
        player.answered(call, sent.response.status_code if received else UNANSWERED)


def as_changed(call: Live, library: Any, request: Any, body: bytes) -> Any:
    """Return a request to another model or with other messages, if the change says so.

    Args:
        call: the live call.
        library: ``httpx`` or ``httpx2``.
        request: the request.
        body: its body, a JSON object.
    """
    if not call.model and call.request is None:
        return request
    asked = json.loads(body)
    if call.request is not None:
        asked = with_other_messages(asked, call.request)
    headers = [(k, v) for k, v in request.headers.multi_items() if k.lower() not in _OF_BODIES]
    return library.Request(
        request.method,
        request.url,
        headers=headers,
        content=json.dumps({**asked, "model": call.model or asked.get("model")}).encode(),
        extensions=request.extensions,
    )


def mark_served() -> None:
    """Mark the span of the model call that is answered from the tape."""
    span = open_chat() or trace.get_current_span()
    attributes = getattr(span, "attributes", None) or {}
    if attributes.get(semconv.OPERATION_NAME) == semconv.CHAT:
        span.set_attribute(semconv.REPLAY_SERVED, True)
