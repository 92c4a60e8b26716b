"""Answers model requests at the HTTP client, which the providers' SDKs share.

The method ``send`` of the client classes of ``httpx`` and ``httpx2`` is called for each attempt of each
client, streamed or not, also if the program has a transport of its own. Only POST requests to the paths
of model APIs are answered; the HTTP requests of tools reach the network.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import wrapt

from mast_trace.replay.player import Live, Pending
from mast_trace.spans import current_agent
from mast_trace_instrumentations.replay import anthropic_messages, chat_completions, responses
from mast_trace_instrumentations.replay.encoding import Encoded, failure
from mast_trace_instrumentations.replay.live_requests import (
    PAUSE,
    Patience,
    as_changed,
    live_call,
    mark_served,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mast_trace.messages import Message
    from mast_trace.replay.player import Player
    from mast_trace.replay.tape import Exchange

LIBRARIES = ("httpx", "httpx2")


class Interface(Protocol):
    """A provider's API, implemented by a module of this package."""

    def messages(self, request: Mapping[str, Any], /) -> list[Message]:
        """Return the messages that a request shows to the model."""

    def encode(
        self, request: Mapping[str, Any], exchange: Exchange, said: Message, number: int, /
    ) -> Encoded:
        """Encode an answer in the form that the request asks for."""


INTERFACES: dict[str, Interface] = {
    "/chat/completions": chat_completions,
    "/responses": responses,
    "/v1/messages": anthropic_messages,
}
"""Providers' APIs by the end of the request's path."""
REFUSED = ("/completions", "/embeddings", ":generateContent", ":streamGenerateContent")
"""Ends of paths of model APIs whose recorded requests cannot be replayed."""

_NO_JSON = "A model request is no JSON object."
_STATUS = re.compile(r"Error code: ([45]\d\d)\b")
"""The HTTP status at the beginning of the texts of OpenAI's and Anthropic's errors."""


class HTTPClients:
    """The patches of the HTTP libraries during a replay."""

    def __init__(self, player: Player) -> None:
        self._player = player
        self._numbers = itertools.count(1)
        self._undo: list[Callable[[], None]] = []
        self._on = False

    def start(self) -> None:
        """Patch the libraries that are imported, and the others when the program imports them."""
        self._on = True
        for library in LIBRARIES:
            wrapt.register_post_import_hook(self._patch, library)

    def stop(self) -> None:
        """Restore the original clients."""
        self._on = False
        while self._undo:
            self._undo.pop()()

    def _patch(self, library: Any) -> None:
        if not self._on:
            return
        for owner, wrapper in ((library.Client, self._send), (library.AsyncClient, self._asend)):
            original = owner.send
            owner.send = wrapt.FunctionWrapper(original, _answering(wrapper, library))
            self._undo.append(partial(setattr, owner, "send", original))

    def _send(self, library: Any, send: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        request = args[0] if args else kwargs.pop("request")
        interface = _interface(request)
        if interface is None:
            return send(request, *args[1:], **kwargs)
        body = request.read()
        patience = Patience()
        while (answer := self._answer(interface, request, body, patience)) is None:
            time.sleep(PAUSE)
        if isinstance(answer, Live):
            sent = as_changed(answer, library, request, body)
            with live_call(self._player, answer) as call:
                call.response = send(sent, *args[1:], **kwargs)
            return call.response
        return _response(library, request, answer)

    async def _asend(
        self, library: Any, send: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        request = args[0] if args else kwargs.pop("request")
        interface = _interface(request)
        if interface is None:
            return await send(request, *args[1:], **kwargs)
        body = await request.aread()
        await _let_others_run()
        patience = Patience()
        while (answer := self._answer(interface, request, body, patience)) is None:
            await _let_others_run(PAUSE)
        if isinstance(answer, Live):
            sent = as_changed(answer, library, request, body)
            with live_call(self._player, answer) as call:
                call.response = await send(sent, *args[1:], **kwargs)
            return call.response
        return _response(library, request, answer)

    def _answer(
        self, interface: Interface | str, request: Any, body: bytes, patience: Patience
    ) -> Encoded | Live | None:
        """Return the answer, or `Live` if the request is to be sent; None to wait and ask again."""
        agent = current_agent() or ""
        asked = _json(body)
        if isinstance(interface, str) or not isinstance(asked, dict):
            text = f"{request.url.path}: {interface}" if isinstance(interface, str) else _NO_JSON
            return self._player.opaque(asked, text, agent) or self._refusal()
        exchange = self._player.exchange(
            interface.messages(asked), agent, str(asked.get("model") or ""), waits=patience.lasts()
        )
        if isinstance(exchange, Pending):
            return None
        if isinstance(exchange, Live):
            return exchange
        if exchange is None:
            return self._refusal()
        mark_served()
        if exchange.answer is None:
            found = _STATUS.search(exchange.error)
            return failure(exchange.error, int(found[1]) if found else 400)
        return interface.encode(asked, exchange, exchange.answer, next(self._numbers))

    def _refusal(self) -> Encoded:
        report = self._player.report()
        if report.divergence is None and report.over_budget:
            return failure("mast-trace: the replay's live model calls are used up.", 400)
        return _stopped(report.divergence.text if report.divergence else "")


def _answering(wrapper: Any, library: Any) -> Any:
    def send(wrapped: Any, _instance: Any, args: Any, kwargs: Any) -> Any:
        return wrapper(library, wrapped, args, kwargs)

    return send


def _interface(request: Any) -> Interface | str | None:
    """Return the API that answers a request, the reason for a refusal, or None for the network."""
    if request.method != "POST":
        return None
    path = request.url.path.rstrip("/")
    for end, interface in INTERFACES.items():
        if path.endswith(end):
            return interface
    if path.endswith(REFUSED):
        return "requests of this interface cannot be answered from a recorded run."
    return None


def _response(library: Any, request: Any, answer: Encoded) -> Any:
    return library.Response(
        answer.status, headers=answer.headers, content=answer.body.encode(), request=request
    )


def _stopped(text: str) -> Encoded:
    # Clients do not retry after this status. Some frameworks would swallow an exception, others would
    # replace it by one of their own.
    return failure(f"mast-trace: the replay has diverged from the recorded run. {text}", 400)


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return None


async def _let_others_run(seconds: float = 0.0) -> None:
    """Suspend the task once, as a real request does, so that other tasks get their turn."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:  # another library's loop
        import anyio  # both HTTP libraries need it

        await anyio.sleep(seconds)
        return
    await asyncio.sleep(seconds)
