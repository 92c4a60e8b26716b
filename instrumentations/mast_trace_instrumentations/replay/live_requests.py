"""Model requests that a replay sends to a model, after the change of an intervention.

Requests whose messages a planted fault has changed, before they are sent to a model.

A change is a mapping: ``system`` (text of another system prompt), ``oldest`` and ``latest`` (numbers of
messages that are left out), ``restart`` (everything but system prompt and task is left out) and ``sent`` with
``received`` (a message of another agent, wherever its text stands, and the text in its place). A tool's
result without its call, or a call without its result, which providers refuse, is left out as well.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from opentelemetry import trace

from mast_trace import semconv
from mast_trace.replay.live import UNANSWERED, in_live_call
from mast_trace.spans import open_chat

if TYPE_CHECKING:
    from mast_trace.replay.player import Live, Player

_SYSTEM = {"system", "developer"}

PAUSE: Final = 0.005
"""Seconds between two questions of a request that waits for the change."""
_PATIENCE: Final = 10.0
"""Seconds that a request of a parallel branch waits for the change."""
_OF_BODIES: Final = {"content-length", "transfer-encoding"}


def with_other_messages(request: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request of Chat Completions, Responses or Anthropic's Messages with its messages changed."""
    changed = dict(request)
    if system := change.get("system"):
        _set_system(changed, str(system))
    for key in ("messages", "input"):
        if isinstance(changed.get(key), list):
            changed[key] = _changed(changed[key], change)
    return changed


def _set_system(request: dict[str, Any], text: str) -> None:
    for key in ("instructions", "system"):
        if request.get(key):
            request[key] = text
            return
    for key in ("messages", "input"):
        items = request.get(key)
        if not isinstance(items, list):
            continue
        own = [each for each in items if _role(each) not in _SYSTEM]
        role = next((_role(each) for each in items if _role(each) in _SYSTEM), "system")
        request[key] = [{"role": role, "content": text}, *own]
        return


def _changed(items: list[Any], change: Mapping[str, Any]) -> list[Any]:
    system = [each for each in items if _role(each) in _SYSTEM]
    talk = [each for each in items if _role(each) not in _SYSTEM]
    task, rest = talk[:1], talk[1:]
    if change.get("restart"):
        rest = []
    rest = rest[int(change.get("oldest") or 0) :]
    rest = rest[: len(rest) - int(change.get("latest") or 0)]
    talk = [*task, *_matched(rest)]
    if sent := str(change.get("sent") or ""):
        # Some frameworks put what others have said into the text of the task.
        talk = [_with_text(each, sent, str(change.get("received") or "")) for each in talk]
    return [*system, *talk]


def _with_text(item: Any, sent: str, received: str) -> Any:
    """Return an item in whose text one text stands in place of another; calls and their results stay."""
    if not isinstance(item, dict) or _calls(item) or _results(item):
        return item
    content = item.get("content")
    if isinstance(content, str):
        return {**item, "content": content.replace(sent, received)}
    if not isinstance(content, list):
        return item
    blocks = [
        {**each, "text": each["text"].replace(sent, received)}
        if isinstance(each, dict) and isinstance(each.get("text"), str)
        else each
        for each in content
    ]
    return {**item, "content": blocks}


def _matched(items: list[Any]) -> list[Any]:
    """Return the items without results whose call is missing, and without calls whose result is missing."""
    called = {identity for each in items for identity in _calls(each)}
    answered = {identity for each in items for identity in _results(each)}
    whole = [
        each for each in items if set(_results(each)) <= called and set(_calls(each)) <= answered
    ]
    # A call that is left out leaves its other results without it.
    return whole if len(whole) == len(items) else _matched(whole)


def _role(item: Any) -> str:
    return str(item.get("role") or "") if isinstance(item, dict) else ""


def _calls(item: Any) -> list[str]:
    """Return the ids of the tool calls that an item asks for."""
    if not isinstance(item, dict):
        return []
    if item.get("type") == "function_call":
        return [str(item.get("call_id"))]
    asked = [str(each.get("id")) for each in item.get("tool_calls") or ()]
    return asked + [str(each.get("id")) for each in _blocks(item, "tool_use")]


def _results(item: Any) -> list[str]:
    """Return the ids of the tool calls that an item answers."""
    if not isinstance(item, dict):
        return []
    if item.get("type") == "function_call_output":
        return [str(item.get("call_id"))]
    if item.get("role") == "tool":
        return [str(item.get("tool_call_id"))]
    return [str(each.get("tool_use_id")) for each in _blocks(item, "tool_result")]


def _blocks(item: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    content = item.get("content")
    blocks = content if isinstance(content, list) else []
    return [each for each in blocks if isinstance(each, dict) and each.get("type") == kind]


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
