"""Refuses model requests of clients that are not answered from a tape, by the client's name.

These are `aiohttp`, `urllib3` and the clients on it (`requests`, `botocore`), everything else on Python's
`http.client`, and gRPC. `urllib3` connects to a secure host before it hands the request to `http.client`,
and where the network is closed no request would ever be seen there. Its gRPC channels lead nowhere then,
because Python does not see their connections.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import wrapt

from mast_trace.spans import current_agent
from mast_trace_instrumentations.replay.model_paths import answerable, refusal, refused

if TYPE_CHECKING:
    from mast_trace.replay.player import Player

logger = logging.getLogger("mast_trace")

_MODEL_SERVICES = re.compile(r"/google\.(ai\.generativelanguage|cloud\.aiplatform)\..*")
_CALLS = ("unary_unary", "unary_stream", "stream_unary", "stream_stream")
_NOWHERE = "ipv4:127.0.0.1:1"
_LOCAL = ("unix:", "unix-abstract:", "vsock:")


class Unanswerable(
    Exception
):  # the replay ends by it as it should, so the name has no suffix Error
    """A model request that no recorded run can answer; it was not sent."""


class PatchedClients:
    """Patches of client libraries during a replay."""

    def __init__(self, player: Player) -> None:
        self._player = player
        self._undo: list[Callable[[], None]] = []
        self._on = False

    def stop(self) -> None:
        """Restore the original clients."""
        self._on = False
        while self._undo:
            self._undo.pop()()


class OtherClients(PatchedClients):
    """The patches of client libraries whose model requests cannot be answered."""

    def __init__(self, player: Player) -> None:
        super().__init__(player)
        self._rows = (
            ("aiohttp.client", "ClientSession._request", self._aiohttp),
            ("urllib3.connectionpool", "HTTPConnectionPool.urlopen", self._urllib3),
            ("http.client", "HTTPConnection.putrequest", self._http_client),
            ("grpc._channel", "Channel.__init__", self._channel),
            ("grpc.aio._channel", "Channel.__init__", self._channel),
            *(("grpc._channel", f"Channel.{call}", self._grpc) for call in _CALLS),
            *(("grpc.aio._channel", f"Channel.{call}", self._grpc) for call in _CALLS),
        )

    def start(self) -> None:
        """Patch the libraries that are imported, and the others when the program imports them."""
        self._on = True
        for module, target, wrapper in self._rows:
            wrapt.register_post_import_hook(partial(self._patch, target, wrapper), module)

    def _patch(self, target: str, wrapper: Any, module: Any) -> None:
        if not self._on:
            return
        try:
            owner, attribute, original = wrapt.resolve_path(module, target)
        except AttributeError:
            return
        setattr(owner, attribute, wrapt.FunctionWrapper(original, wrapper))
        self._undo.append(partial(setattr, owner, attribute, original))

    def _aiohttp(self, send: Any, _session: Any, args: Any, kwargs: Any) -> Any:
        method, url = (
            *args,
            *(kwargs[name] for name in ("method", "str_or_url") if name in kwargs),
        )[:2]
        host, _, path = str(url).partition("://")[2].partition("/")
        self._check("aiohttp", str(method), host, f"/{path.partition('?')[0]}")
        return send(*args, **kwargs)

    def _urllib3(self, send: Any, pool: Any, args: Any, kwargs: Any) -> Any:
        # botocore has pools of its own; requests has not.
        client = "botocore" if type(pool).__module__.startswith("botocore.") else "urllib3"
        self._check_path(client, pool, args, kwargs)
        return send(*args, **kwargs)

    def _http_client(self, send: Any, connection: Any, args: Any, kwargs: Any) -> Any:
        self._check_path("http.client", connection, args, kwargs)
        return send(*args, **kwargs)

    def _check_path(self, client: str, to: Any, args: Any, kwargs: Any) -> None:
        """Check a request to a host and port whose URL is a path, or a whole one for a proxy."""
        method, url = (*args, *(kwargs[name] for name in ("method", "url") if name in kwargs))[:2]
        path = str(url).partition("://")[2].partition("/")[2] if "://" in str(url) else str(url)[1:]
        self._check(client, str(method), f"{to.host}:{to.port}", f"/{path.partition('?')[0]}")

    def _check(self, client: str, method: str, host: str, path: str) -> None:
        interface = refused(method, host, path) or (
            path if answerable(method, path) is not None else ""
        )
        if interface:
            self._refuse(client, interface)

    def _channel(self, make: Any, _channel: Any, args: Any, kwargs: Any) -> Any:
        network = self._player.network
        target = str(args[0] if args else kwargs.get("target"))
        if network is None or target.startswith(_LOCAL) or network.allows(_host(target)):
            return make(*args, **kwargs)
        logger.warning("The replay is offline: the gRPC channel to %s leads nowhere.", target)
        if args:
            return make(_NOWHERE, *args[1:], **kwargs)
        return make(**{**kwargs, "target": _NOWHERE})

    def _grpc(self, make: Any, _channel: Any, args: Any, kwargs: Any) -> Any:
        method = str(args[0] if args else kwargs.get("method"))
        if _MODEL_SERVICES.match(method):
            self._refuse("gRPC", method)
        return make(*args, **kwargs)

    def _refuse(self, client: str, interface: str) -> None:
        divergence = self._player.refuse(refusal(client, interface), current_agent() or "")
        raise Unanswerable(divergence.text)


def _host(target: str) -> str:
    """Return the host of a gRPC target, such as ``dns:///example.com:443`` or ``[::1]:50051``."""
    place = target.rpartition("/")[2] if "/" in target else target
    place = re.sub(r"^(dns|ipv4|ipv6):", "", place)
    if place.startswith("["):
        return place[1:].partition("]")[0]
    return place.rpartition(":")[0] or place
