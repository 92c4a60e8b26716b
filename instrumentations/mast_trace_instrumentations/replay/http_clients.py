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
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import wrapt

from mast_trace import semconv
from mast_trace.replay.live import in_live_call
from mast_trace.replay.order import in_asyncio
from mast_trace.replay.player import Live, Pending, Player
from mast_trace.spans import current_agent, open_chat
from mast_trace_instrumentations.replay.encoding import Encoded, failure
from mast_trace_instrumentations.replay.live_requests import (
    PAUSE,
    Patience,
    as_changed,
    live_call,
    mark_served,
)
from mast_trace_instrumentations.replay.model_paths import (
    EMBEDDINGS,
    Interface,
    answerable,
    refusal,
    refused,
)
from mast_trace_instrumentations.replay.other_clients import PatchedClients

if TYPE_CHECKING:
    from mast_trace.replay.tape import Exchange

LIBRARIES = ("httpx", "httpx2")


_NO_JSON = "A model request is no JSON object."
_STATUS = re.compile(r"Error code: ([45]\d\d)\b")
"""The HTTP status at the beginning of the texts of OpenAI's and Anthropic's errors."""


@dataclass(frozen=True)
class Found:
    """A request for which the tape has an answer."""

    interface: Interface
    asked: dict[str, Any]
    exchange: Exchange


class HTTPClients(PatchedClients):
    """The patches of the HTTP libraries during a replay."""

    def __init__(self, player: Player) -> None:
        super().__init__(player)
        self._numbers = itertools.count(1)

    def start(self) -> None:
        """Patch the libraries that are imported, and the others when the program imports them."""
        self._on = True
        for library in LIBRARIES:
            wrapt.register_post_import_hook(self._patch, library)

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
        if interface == EMBEDDINGS and self._player.runs_live(EMBEDDINGS):
            with self._open_network(request):
                return send(request, *args[1:], **kwargs)
        body = request.read()
        patience = Patience()
        while (answer := self._answer(interface, body, patience)) is None:
            time.sleep(PAUSE)
        if isinstance(answer, Live):
            sent = as_changed(answer, library, request, body)
            with self._open_network(request), live_call(self._player, answer) as call:
                call.response = send(sent, *args[1:], **kwargs)
            return call.response
        if isinstance(answer, Found):
            self._player.order.wait(answer.exchange)
        return _response(library, request, self._encoded(answer))

    async def _asend(
        self, library: Any, send: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        request = args[0] if args else kwargs.pop("request")
        interface = _interface(request)
        if interface is None:
            return await send(request, *args[1:], **kwargs)
        if interface == EMBEDDINGS and self._player.runs_live(EMBEDDINGS):
            with self._open_network(request):
                return await send(request, *args[1:], **kwargs)
        body = await request.aread()
        await _let_others_run()
        patience = Patience()
        while (answer := self._answer(interface, body, patience)) is None:
            await _let_others_run(PAUSE)
        if isinstance(answer, Live):
            sent = as_changed(answer, library, request, body)
            with self._open_network(request), live_call(self._player, answer) as call:
                call.response = await send(sent, *args[1:], **kwargs)
            return call.response
        if isinstance(answer, Found) and in_asyncio():
            await self._player.order.wait_async(answer.exchange)
        return _response(library, request, self._encoded(answer))

    @contextmanager
    def _open_network(self, request: Any) -> Iterator[None]:
        """Let the client connect to the server of a request while the block runs."""
        if self._player.network is not None:
            self._player.network.allow_lookup(request.url.host)
        token = in_live_call.set(True)
        try:
            yield
        finally:
            in_live_call.reset(token)

    def _answer(
        self, interface: Interface | str, body: bytes, patience: Patience
    ) -> Found | Encoded | Live | None:
        """Return the answer, or `Live` if the request is to be sent; None to wait and ask again."""
        agent = current_agent() or ""
        asked = _json(body)
        if isinstance(interface, str) or not isinstance(asked, dict):
            text = refusal("", interface) if isinstance(interface, str) else _NO_JSON
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
        # Compared as recorded: a framework's name of a model may be another than its server's.
        span = getattr(open_chat(), "attributes", None) or {}
        given = span.get(semconv.REQUEST_PARAMETERS, ())
        self._player.note_parameters(exchange, str(span.get(semconv.REQUEST_MODEL) or ""), given)
        return Found(interface, asked, exchange)

    def _encoded(self, found: Found | Encoded) -> Encoded:
        if isinstance(found, Encoded):
            return found
        exchange = found.exchange
        if exchange.answer is None:
            status = _STATUS.search(exchange.error)
            return failure(exchange.error, int(status[1]) if status else 400)
        number = next(self._numbers)
        return found.interface.encode(found.asked, exchange, exchange.answer, number)

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
    """Return the API that answers a request, the name of one that cannot, or None for the network."""
    url = request.url
    return answerable(request.method, url.path) or (
        refused(request.method, url.netloc.decode("ascii", "replace"), url.path) or None
    )


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
    if in_asyncio():
        await asyncio.sleep(seconds)
    else:
        import anyio  # both HTTP libraries need it

        await anyio.sleep(seconds)
